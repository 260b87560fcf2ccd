"""Conversion of arrays, lists of pictures, torch data and Hugging Face data to a Dataset."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from roadworthy.core.errors import InputError
from roadworthy.core.types import Dataset
from roadworthy.datasets.arrays import Arrays
from roadworthy.datasets.pictures import HuggingFace, Pictures
from roadworthy.datasets.subsets import First
from roadworthy.datasets.torch_data import TorchData


def as_dataset(data: Any, classes: Sequence[str] = ()) -> Dataset:
    """Wrap what is not a Dataset yet: `(images, labels)`, images alone, PIL images, torch or Hugging Face data.

    `classes` are the names of the model's outputs, for data without class names.
    """
    names = tuple(classes)
    if _is_hugging_face(data):
        return HuggingFace(data, names=names)
    if isinstance(data, TorchDataset | DataLoader):
        return TorchData(data, names)
    if isinstance(data, Dataset):
        return data
    if _are_pictures(data):
        return Pictures(data, classes=names)
    if isinstance(data, tuple | list) and len(data) == 2:
        return (Pictures if _are_pictures(data[0]) else Arrays)(data[0], data[1], classes=names)
    if isinstance(data, Tensor | np.ndarray):
        return Arrays(data, classes=names)
    raise InputError(
        f"data is a {_type_name(data)}: give (images, labels), images alone, a list of PIL images, a torch Dataset, a "
        "DataLoader, a Hugging Face Dataset, or an object with classes, ids, __len__ and batches(size)"
    )


def first(data: Any, n: int) -> Dataset:
    """The first `n` images of anything `as_dataset` accepts; ids are kept, and no more images are read."""
    return First(as_dataset(data), n)


def _is_hugging_face(data: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "datasets" for base in type(data).__mro__)


def _are_pictures(images: Any) -> bool:
    """A list of PIL images or of single images as arrays."""
    return (
        isinstance(images, tuple | list)
        and len(images) > 0
        and all(isinstance(image, Image.Image) or getattr(image, "ndim", None) == 3 for image in images)
    )


def _type_name(data: Any) -> str:
    return f"{type(data).__name__} of {len(data)}" if isinstance(data, tuple | list) else type(data).__name__
