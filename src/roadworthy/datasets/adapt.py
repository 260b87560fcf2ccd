"""Conversion of arrays, torch data and loaders to a Dataset."""

from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from roadworthy.core.errors import InputError
from roadworthy.core.types import Dataset
from roadworthy.datasets.arrays import Arrays
from roadworthy.datasets.subsets import First
from roadworthy.datasets.torch_data import TorchData


def as_dataset(data: Any) -> Dataset:
    """Wrap `(images, labels)`, images alone, a torch Dataset or a DataLoader; a Dataset is returned as it is."""
    if isinstance(data, TorchDataset | DataLoader):
        return TorchData(data)
    if isinstance(data, Dataset):
        return data
    if isinstance(data, tuple | list) and len(data) == 2:
        return Arrays(data[0], data[1])
    if isinstance(data, Tensor | np.ndarray):
        return Arrays(data)
    raise InputError(
        f"data is a {_type_name(data)}: give (images, labels), images alone, a torch Dataset, a DataLoader, "
        "or an object with classes, ids, __len__ and batches(size)"
    )


def first(data: Any, n: int) -> Dataset:
    """The first `n` images of anything `as_dataset` accepts; ids are kept, and no more images are read."""
    return First(as_dataset(data), n)


def _type_name(data: Any) -> str:
    return f"{type(data).__name__} of {len(data)}" if isinstance(data, tuple | list) else type(data).__name__
