"""Files of maps: .npy, .safetensors, .zarr and HDF5 are read a few rows at a time; .npz is a zip, read at once."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from roadworthy.core.errors import DataError, InputError, MissingExtraError

SUFFIXES = (".npy", ".npz", ".safetensors", ".zarr", ".h5", ".hdf5")


class LazyRows:
    """An array in a file of which `[rows]` reads these rows only."""

    def __init__(self, shape: tuple[int, ...], read: Callable[[NDArray[np.int64]], Any]) -> None:
        self.shape, self._read = shape, read

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        unique, inverse = np.unique(np.asarray(rows), return_inverse=True)  # HDF5 needs increasing rows
        return np.asarray(self._read(unique))[inverse]


def read_maps(path: Path, name: str | None = None) -> tuple[Any, Any]:
    """The maps, and the ids beside them or None."""
    if path.suffix not in _READERS:
        raise DataError(f"{path}: maps must be a file of the kind {', '.join(SUFFIXES)}")
    try:
        return _READERS[path.suffix](path, name)
    except (OSError, ValueError, EOFError, KeyError, SafetensorError, BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise DataError(f"{path}: cannot read maps ({error}); save them again as .npy or .safetensors") from error


def lazy(array: Any) -> LazyRows:
    """An array of zarr or HDF5."""
    read = getattr(array, "oindex", array)  # zarr's own [rows] means something else for several axes
    return LazyRows(tuple(array.shape), lambda rows: read[rows])


def _npy(path: Path, name: str | None) -> tuple[Any, Any]:
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def _npz(path: Path, name: str | None) -> tuple[Any, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        names = list(arrays.files)
        return arrays[_array_name(path, names, name)], _ids(arrays, names)


def _safetensors(path: Path, name: str | None) -> tuple[Any, Any]:
    file: Any = safe_open(path, framework="pt")
    names = list(file.keys())
    array = file.get_slice(_array_name(path, names, name))
    ids = file.get_tensor("ids") if "ids" in names else None

    def read(rows: NDArray[np.int64]) -> Any:
        part = torch.cat([array[row : row + 1] for row in rows.tolist()])
        return (part.float() if part.dtype == torch.bfloat16 else part).numpy()  # NumPy has no bfloat16

    return LazyRows(tuple(array.get_shape()), read), ids


def _zarr(path: Path, name: str | None) -> tuple[Any, Any]:
    zarr = _library("zarr", "zarr", path)
    if not path.exists():
        raise FileNotFoundError("no such folder")
    file = zarr.open(str(path), mode="r")
    return _of_group(path, file, name) if hasattr(file, "keys") else (lazy(file), None)


def _hdf5(path: Path, name: str | None) -> tuple[Any, Any]:
    return _of_group(path, _library("h5py", "hdf5", path).File(path, "r"), name)


def _of_group(path: Path, group: Any, name: str | None) -> tuple[Any, Any]:
    names = list(group.keys())
    return lazy(group[_array_name(path, names, name)]), _ids(group, names)


def _ids(arrays: Any, names: list[str]) -> Any:
    return torch.as_tensor(np.asarray(arrays["ids"][:])) if "ids" in names else None


def _library(module: str, extra: str, path: Path) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{path} needs {module}: pip install 'roadworthy[{extra}]'") from error


def _array_name(path: Path, names: list[str], requested: str | None) -> str:
    arrays = [name for name in names if name != "ids"]
    if requested is None and len(arrays) == 1:
        return arrays[0]
    if requested not in names:
        raise InputError(f"{path} holds the arrays {', '.join(arrays)}: choose one with name=")
    return requested


_READERS: dict[str, Callable[[Path, str | None], tuple[Any, Any]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".zarr": _zarr,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
}
