"""Pictures: a list of images, and Hugging Face datasets. Both are read item by item, like a torch Dataset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import torch
from PIL import Image

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.types import Batch, Ids
from roadworthy.datasets.image_files import Frame, rgb
from roadworthy.datasets.torch_data import TorchData


class _Items:
    """Image and label of each row, with PIL images resized and cropped."""

    def __init__(self, images: Any, labels: Any, rows: Sequence[int], frame: Frame) -> None:
        self.images, self.labels, self.rows, self.frame = images, labels, rows, frame

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> tuple[Any, Any]:
        image, label = self.images[self.rows[position]], self.labels
        if isinstance(image, Image.Image) and self.frame != Frame():
            image = self.frame(image if image.mode == "L" else rgb(image))
        return image, None if label is None else label[self.rows[position]]


@final
@dataclass(frozen=True, eq=False)
class Pictures:
    """A list of PIL images (or of arrays `(c, h, w)`) and their labels, class indices or names among `classes`.

    The shorter side is resized to `resize`, then `crop` × `crop` pixels are cut from the center. Ids are positions.
    """

    images: Sequence[Any] = field(repr=False)
    labels: Any = field(default=None, repr=False)
    classes: tuple[str, ...] = ()
    resize: int | None = None
    crop: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.labels is not None and len(self.labels) != len(self.images):
            raise ShapeError(f"{len(self.labels)} labels for {len(self.images)} images: give one label per image")
        if not len(self.images):
            raise ShapeError("no images: give at least one")

    @property
    def ids(self) -> Ids:
        return torch.arange(len(self))

    def __len__(self) -> int:
        return len(self.images)

    def batches(self, size: int) -> Iterator[Batch]:
        return self._read(range(len(self))).batches(size)

    def at(self, rows: Sequence[int]) -> Batch:
        (batch,) = self._read(rows).batches(len(rows))
        return Batch(torch.tensor(rows), batch.images, batch.labels)

    def _read(self, rows: Sequence[int]) -> TorchData:
        return TorchData(_Items(self.images, self.labels, rows, Frame(self.resize, self.crop)), self.classes)


@final
@dataclass(frozen=True, eq=False)
class HuggingFace:
    """A Hugging Face `Dataset` with a column of images and one of labels, whose class names are kept.

    `image` and `label` name the columns, where there are several that could be meant. `resize` and `crop` as in
    `Pictures`; ids are positions.
    """

    data: Any = field(repr=False)
    image: str | None = None
    label: str | None = None
    resize: int | None = None
    crop: int | None = None
    names: tuple[str, ...] = ()
    """class names, where the label column has none"""

    def __post_init__(self) -> None:
        _check_indexed(self.data)
        features = self.data.features
        object.__setattr__(self, "image", self.image or _column(features, "image", "Image", ("image", "img")))
        object.__setattr__(self, "label", self.label or _column(features, "label", "ClassLabel", ("label", "labels")))
        for name in (self.image, self.label):
            if name is not None and name not in features:
                raise InputError(f"no column {name!r}: the data set has {', '.join(features)}")
        if self.image is None:
            raise InputError(f"no column of images among {', '.join(features)}: name it, HuggingFace(data, image=...)")

    @property
    def classes(self) -> tuple[str, ...]:
        names = getattr(self.data.features.get(self.label), "names", None)
        return tuple(names) if names else self.names

    @property
    def ids(self) -> Ids:
        return torch.arange(len(self))

    def __len__(self) -> int:
        return len(self.data)

    def batches(self, size: int) -> Iterator[Batch]:
        return self._pictures.batches(size)

    def at(self, rows: Sequence[int]) -> Batch:
        return self._pictures.at(rows)

    @cached_property
    def _pictures(self) -> Pictures:
        labels = None if self.label is None else list(self.data.select_columns([self.label])[self.label])
        images: Any = _Column(self.data.select_columns([self.image]), self.image or "")
        return Pictures(images, labels, self.classes, self.resize, self.crop)


class _Column:
    """The images of a column, decoded one at a time."""

    def __init__(self, data: Any, name: str) -> None:
        self.data, self.name = data, name

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> Any:
        return self.data[int(row)][self.name]


def _check_indexed(data: Any) -> None:
    if isinstance(data, dict):
        splits = ", ".join(data)
        raise InputError(f"the data set has the splits {splits}: choose one, data[{next(iter(data), 'test')!r}]")
    if not hasattr(data, "__len__"):
        raise InputError("a streamed data set has no length: load it without streaming=True")
    if data.format["type"] == "custom":
        raise InputError(
            "the data set has a transform, which may normalize: take it off, data.with_format(None), and resize with "
            "rw.datasets.HuggingFace(data, resize=..., crop=...)"
        )


def _column(features: Any, kind: str, feature: str, names: tuple[str, ...]) -> str | None:
    """The only column of that feature; without any, the one that has one of the usual names."""
    candidates = [name for name, value in features.items() if type(value).__name__ == feature]
    candidates = candidates or [name for name in names if name in features]
    if len(candidates) > 1:
        raise InputError(
            f"the columns {', '.join(candidates)} could be the {kind}: choose one, "
            f'rw.datasets.HuggingFace(data, {kind}="{candidates[0]}")'
        )
    return candidates[0] if candidates else None
