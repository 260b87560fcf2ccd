"""zarr and HDF5: maps are read by id, a few at a time."""

import numpy as np
import pytest
import torch

import roadworthy as rw
from libraries import library
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.experiments.adapt import as_method

zarr, h5py = library("zarr"), library("h5py")
KEY = Key(0)
MAPS = Key(0).uniform(range(6), (4, 4)).numpy()


def written(path, ids=None):
    if path.suffix == ".zarr":
        group = zarr.open_group(str(path), mode="w")
        group.create_array("maps", data=MAPS)
        if ids is not None:
            group.create_array("ids", data=ids)
        return path
    with h5py.File(path, "w") as file:
        file["maps"] = MAPS
        if ids is not None:
            file["ids"] = ids
    return path


def batch_of(ids):
    return Batch(torch.tensor(ids), torch.zeros(len(ids), 1, 4, 4), torch.zeros(len(ids), dtype=torch.int64))


@pytest.mark.parametrize("name", ["maps.zarr", "maps.h5", "maps.hdf5"])
def test_maps_are_matched_by_the_ids_in_the_file(tmp_path, name):
    path = written(tmp_path / name, ids=np.array([50, 40, 30, 20, 10, 0]))
    loaded = rw.attributions.PrecomputedMaps.load(path)
    # Out of order and repeated, which HDF5 itself refuses.
    assert torch.equal(loaded(None, batch_of([0, 50, 0]), KEY), torch.as_tensor(MAPS[[5, 0, 5]]))


@pytest.mark.parametrize("name", ["maps.zarr", "maps.h5"])
def test_an_open_array_is_a_method(tmp_path, name):
    path = written(tmp_path / name)
    opened = zarr.open(str(path), mode="r")["maps"] if path.suffix == ".zarr" else h5py.File(path, "r")["maps"]
    data = rw.datasets.Arrays(torch.zeros(6, 1, 4, 4), ids=range(10, 16))
    for given in (opened, path, str(path)):
        assert torch.equal(as_method("mine", given, data)(None, batch_of([12, 11]), KEY), torch.as_tensor(MAPS[[2, 1]]))


def test_an_array_without_a_group_is_read(tmp_path):
    zarr.save_array(str(tmp_path / "maps.zarr"), MAPS)
    loaded = rw.attributions.PrecomputedMaps.load(tmp_path / "maps.zarr", ids=torch.arange(6))
    assert torch.equal(loaded(None, batch_of([3]), KEY), torch.as_tensor(MAPS[[3]]))


@pytest.mark.parametrize("name", ["maps.zarr", "maps.h5"])
def test_a_missing_or_damaged_file_is_an_error_with_its_name(tmp_path, name):
    with pytest.raises(rw.errors.DataError, match=name):
        rw.attributions.PrecomputedMaps.load(tmp_path / name)
    (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(rw.errors.DataError, match=name):
        rw.attributions.PrecomputedMaps.load(tmp_path / name)
