"""What a user may give as a method: arrays in any layout, functions with and without key, and clear refusals."""

from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import roadworthy as rw
from roadworthy.attributions.layouts import channels_first
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.experiments.adapt import as_method
from roadworthy.models.normalized import as_model

KEY = Key(0)
IMAGES = Key(1).uniform(range(4), (3, 6, 8))
BATCH = Batch(torch.arange(4), IMAGES, torch.tensor([0, 1, 1, 0]))
DATA = rw.datasets.Arrays(IMAGES, BATCH.labels)
MODEL = as_model(nn.Sequential(nn.Flatten(), nn.Linear(3 * 6 * 8, 2)))


def maps_of(method):
    return explain({"mine": as_method("mine", method, DATA)}, MODEL, BATCH, KEY)["mine"]


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
def test_arrays_are_recognized_in_three_layouts(kind):
    channels = Key(2).normal(range(4), (3, 6, 8))
    expected = channels.sum(dim=1)
    for given in (expected, expected[:, None], channels, channels.permute(0, 2, 3, 1), expected[..., None]):
        assert torch.allclose(maps_of(kind(given)), expected, atol=1e-6), given.shape


@pytest.mark.parametrize(
    ("maps", "images", "expected"),
    [
        ((2, 7, 7, 3), (2, 3, 32, 32), (2, 3, 7, 7)),  # a coarse map with channels last
        ((2, 1, 3, 3), (2, 3, 16, 16), (2, 1, 3, 3)),  # a grid of 3×3, not one row of 3 with 3 channels
        ((2, 7, 10, 1), (2, 3, 224, 320), (2, 1, 7, 10)),
        ((2, 3, 8, 3), (2, 3, 8, 3), (2, 3, 8, 3)),  # images 3 pixels wide: only channels first has their size
    ],
)
def test_coarse_maps_are_read_in_the_shape_of_the_images(maps, images, expected):
    assert tuple(channels_first("mine", torch.zeros(maps), images).shape) == expected


def test_two_possible_readings_are_an_error_that_an_option_cures():
    images = torch.zeros(2, 3, 3, 3)
    data = rw.datasets.Arrays(images, [0, 1])
    batch = Batch(torch.arange(2), images, torch.tensor([0, 1]))
    maps = Key(0).uniform(range(2), (3, 3, 3))
    with pytest.raises(rw.errors.ShapeError, match='layout="nchw"'):
        explain({"mine": as_method("mine", maps, data)}, MODEL, batch, KEY)
    for layout, axis in (("nchw", 1), ("nhwc", 3)):
        given = as_method("mine", rw.attributions.PrecomputedMaps(maps, layout=layout), data)
        assert torch.allclose(explain({"mine": given}, MODEL, batch, KEY)["mine"], maps.sum(dim=axis))


def test_a_list_of_maps_is_an_array():
    maps = Key(2).normal(range(4), (6, 8))
    assert torch.equal(maps_of(list(maps)), maps)
    assert torch.equal(maps_of([one.numpy() for one in maps]), maps)
    with pytest.raises(rw.errors.ShapeError, match=r"mine: maps of several shapes, \(3, 4\) and \(6, 8\)"):
        maps_of([maps[0], maps[0, :3, :4]])


def test_a_function_may_leave_the_key_out_and_is_seeded_then():
    def random(model, batch):
        return torch.rand(len(batch), *batch.images.shape[-2:])

    def keyed(model, batch, *, scale=2.0):
        return scale * batch.images[:, 0]

    assert torch.equal(maps_of(random), maps_of(random))
    assert torch.equal(maps_of(keyed), 2 * IMAGES[:, 0])
    assert torch.equal(maps_of(partial(keyed, scale=3.0)), 3 * IMAGES[:, 0])
    assert torch.equal(maps_of(lambda model, batch, key: batch.images[:, 1]), IMAGES[:, 1])
    assert torch.equal(maps_of(lambda *arguments: arguments[1].images[:, 2]), IMAGES[:, 2])


def test_a_function_of_one_argument_is_refused_with_the_line_to_write():
    with pytest.raises(rw.errors.InputError, match=r"takes \(images\): write def method\(model, batch, key\)"):
        as_method("mine", lambda images: images, DATA)


@pytest.mark.parametrize(
    "value", [3, None, object(), {"a": 1}, [1, 2], [], int, nn.ReLU()], ids=lambda v: type(v).__name__
)
def test_what_cannot_be_a_method_is_refused_before_the_first_call(value):
    with pytest.raises(rw.errors.InputError, match=r"mine: .* is not a method: give .*docs/bridges.md"):
        as_method("mine", value, DATA)


def test_safetensors_are_read_by_id_and_keep_their_precision(tmp_path):
    maps = torch.rand(6, 4, 4, dtype=torch.float64)
    save_file({"maps": maps, "ids": torch.arange(6) * 10}, tmp_path / "maps.safetensors")
    loaded = rw.attributions.PrecomputedMaps.load(tmp_path / "maps.safetensors")
    batch = Batch(torch.tensor([50, 0, 50]), torch.zeros(3, 1, 4, 4), torch.zeros(3, dtype=torch.int64))
    assert torch.equal(loaded(None, batch, KEY), maps[[5, 0, 5]])
    save_file({"maps": maps.bfloat16()}, tmp_path / "half.safetensors")
    half = rw.attributions.PrecomputedMaps.load(tmp_path / "half.safetensors", ids=torch.arange(6))
    assert torch.equal(half.rows(torch.tensor([2])), maps[[2]].bfloat16().float())
