"""Torch Datasets and DataLoaders as datasets."""

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.random import Key
from roadworthy.core.types import UNLABELED, Batch, Ids
from roadworthy.datasets.checks import as_pixels, check_kind, check_labels, check_pixels, class_indices
from roadworthy.datasets.image_files import rgb, scaled
from roadworthy.datasets.subsets import rechunked, spans

_SHUFFLERS = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)


@final
@dataclass(frozen=True, eq=False)
class TorchData:
    """A map-style Dataset of `(image, label)` or images, or a DataLoader that does not shuffle; ids are positions.

    An image is a tensor `(c, h, w)`, floats in [0, 1] or bytes, or a PIL image; an item may be a dict with `image` and
    `label`. Transforms must not be random: an id must refer to the same image on every pass.
    """

    data: Any
    names: tuple[str, ...] = ()
    """class names, where the Dataset has none"""

    def __post_init__(self) -> None:
        _check_map_style(_source(self.data))
        if isinstance(self.data, DataLoader):
            _check_loader(self.data)
        if len(self) == 0:
            raise ShapeError(f"{type(self.data).__name__} contains no images: give at least one")

    @property
    def classes(self) -> tuple[str, ...]:
        """The `classes` of the torch Dataset, if it has them as in torchvision."""
        names = getattr(_source(self.data), "classes", ())
        return tuple(map(str, names)) if isinstance(names, list | tuple) and names else self.names

    @property
    def ids(self) -> Ids:
        return torch.arange(len(self))

    def __len__(self) -> int:
        return _loader_length(self.data) if isinstance(self.data, DataLoader) else len(self.data)

    def batches(self, size: int) -> Iterator[Batch]:
        if isinstance(self.data, DataLoader):
            return rechunked(_of_one_shape(_loader_batches(self.data, self.classes)), size)
        return _of_one_shape(item_batch(self.data, span, self.classes) for span in spans(len(self), size))


def _source(data: Any) -> Any:
    return data.dataset if isinstance(data, DataLoader) else data


def _check_map_style(data: Any) -> None:
    if isinstance(data, IterableDataset) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise InputError(
            f"{type(data).__name__} has no length or no indexing: give a map-style Dataset "
            "(__len__ and __getitem__), or (images, labels) as arrays"
        )


def _check_loader(loader: DataLoader[Any]) -> None:
    if type(loader.batch_sampler) is not BatchSampler or not hasattr(loader.batch_sampler.sampler, "__len__"):
        raise InputError("the DataLoader has a custom batch sampler: give its dataset instead, loader.dataset")
    sampler = loader.batch_sampler.sampler
    shuffles = isinstance(sampler, _SHUFFLERS) or getattr(sampler, "shuffle", False)
    if shuffles or not getattr(loader, "in_order", True):
        raise InputError(
            f"the DataLoader shuffles ({type(sampler).__name__}), so ids would change from pass to pass: "
            "use shuffle=False, or give its dataset instead, loader.dataset"
        )


def _loader_length(loader: DataLoader[Any]) -> int:
    sampler: Any = loader.batch_sampler
    count = len(sampler.sampler)
    return count - count % sampler.batch_size if sampler.drop_last else count


def _loader_batches(loader: DataLoader[Any], classes: tuple[str, ...]) -> Iterator[Batch]:
    with Key(0).torch_rng():  # a DataLoader draws the seed of its workers from the global generator
        stream = iter(loader)
    start = 0
    for item in stream:
        images, labels = _pair(item, f"batch at image {start}")
        pixels = check_pixels(as_pixels(check_kind(images)), start)
        yield _batch(pixels, labels, classes, start)
        start += len(pixels)


def item_batch(data: Any, span: slice, classes: tuple[str, ...]) -> Batch:
    """The items at consecutive positions, which are their ids."""
    items = [_pair(data[index], f"item {index}") for index in range(span.start, span.stop)]
    images = [_image(image, span.start + offset) for offset, (image, _) in enumerate(items)]
    for offset, image in enumerate(images):
        _check_same_shape(images[0], span.start, image, span.start + offset)
    unlabeled = items[0][1] is None
    labels = None if unlabeled else [_label(label, span.start + offset) for offset, (_, label) in enumerate(items)]
    return _batch(check_pixels(torch.stack(images), span.start), labels, classes, span.start)


def _of_one_shape(batches: Iterable[Batch]) -> Iterator[Batch]:
    first: Tensor | None = None
    for batch in batches:
        first = batch.images[0] if first is None else first
        _check_same_shape(first, 0, batch.images[0], int(batch.ids[0]))
        yield batch


def _check_same_shape(first: Tensor, first_index: int, second: Tensor, second_index: int) -> None:
    if first.shape != second.shape:
        raise ShapeError(
            f"image {first_index} has shape {tuple(first.shape)}, image {second_index} {tuple(second.shape)}: "
            "resize or crop them to one size in the transform, or with resize= and crop= of rw.datasets.Pictures"
        )


def _batch(images: Tensor, labels: Any, classes: tuple[str, ...], start: int) -> Batch:
    count = len(images)
    ids = torch.arange(start, start + count)
    if labels is None:
        return Batch(ids, images, torch.full((count,), UNLABELED))
    return Batch(ids, images, check_labels(class_indices(labels, count, classes), classes, start))


def _pair(item: Any, name: str) -> tuple[Any, Any]:
    """`(image, label)`; the label is None if there is only an image."""
    if isinstance(item, Mapping):
        return _entry(item, ("image", "img", "pixel_values"), name), _entry(item, ("label", "labels"), name, None)
    if not isinstance(item, tuple | list):
        return item, None
    if len(item) not in (1, 2):
        raise InputError(f"{name} has {len(item)} parts: give (image, label) or the image alone")
    return item[0], item[1] if len(item) == 2 else None


def _entry(item: Mapping[str, Any], names: tuple[str, ...], what: str, *default: Any) -> Any:
    found = [name for name in names if name in item]
    if len(found) == 1:
        return item[found[0]]
    if not found and default:
        return default[0]
    raise InputError(
        f"{what} has the keys {', '.join(map(str, item))}: give one of {', '.join(names)}, or (image, label) pairs"
    )


def _image(image: Any, index: int) -> Tensor:
    if isinstance(image, Image.Image):
        pixels = np.atleast_3d(np.asarray(image if image.mode == "L" else rgb(image)))
        return scaled(pixels[None])[0]
    if not isinstance(image, Tensor | np.ndarray):
        raise InputError(f"item {index} is a {type(image).__name__}: give (image, label) with a tensor or PIL image")
    if image.ndim != 3:
        raise ShapeError(f"item {index} has shape {tuple(image.shape)}: give one image (c, h, w)")
    return as_pixels(check_kind(image[None]))[0]


def _label(label: Any, index: int) -> int | str:
    if isinstance(label, str):
        return label
    try:
        return operator.index(label)
    except TypeError:
        raise ShapeError(
            f"item {index} has a label of type {type(label).__name__}: give an integer or a class name"
        ) from None
