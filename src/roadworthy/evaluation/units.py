"""What is removed at a time: pixels, patches, regions of your own, superpixels or the tokens of a vision transformer.

Maps are pooled to units by a named rule, units are ranked, and fractions count units (docs/units.md).
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from roadworthy.core.errors import DataError, InputError, RangeError, ShapeError
from roadworthy.core.partitions import Partition, UnitReduction
from roadworthy.core.types import Batch, Dataset, Ids, Units
from roadworthy.evaluation.superpixels import load_slic, segments
from roadworthy.evaluation.unit_checks import check_labels

Size = int | tuple[int, int]


@final
@dataclass(frozen=True)
class Pixels:
    """Single pixels, the default."""

    name = "pixels"

    def __call__(self, batch: Batch) -> Tensor:
        height, width = batch.images.shape[-2:]
        return torch.arange(height * width).reshape(1, height, width)


@final
@dataclass(frozen=True)
class Patches:
    """Patches of `size` pixels, a side or (height, width); those at the lower and right edge may be smaller."""

    size: Size

    def __post_init__(self) -> None:
        given = self.size if isinstance(self.size, tuple | list) else (self.size, self.size)
        whole = [side for side in given if isinstance(side, int) and not isinstance(side, bool) and side >= 1]
        if len(given) != 2 or len(whole) != 2:
            raise RangeError(f"Patches({self.size!r}): give a side of 1 pixel or more, as in Patches(16), or (16, 8)")
        object.__setattr__(self, "size", self.size if isinstance(self.size, int) else tuple(given))

    @property
    def sides(self) -> tuple[int, int]:
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    @property
    def name(self) -> str:
        """
        >>> Patches(16).name, Patches((16, 8)).name
        ('patches 16', 'patches 16×8')
        """
        height, width = self.sides
        return f"patches {height}" if height == width else f"patches {height}×{width}"

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of patches.

        >>> Patches(16).grid(224, 230)
        (14, 15)
        """
        down, across = self.sides
        return -(-height // down), -(-width // across)

    def check(self, height: int, width: int) -> None:
        down, across = self.sides
        if down > height or across > width:
            raise RangeError(f"{self!r} is larger than images of {height}×{width} pixels: give smaller patches")

    def __call__(self, batch: Batch) -> Tensor:
        height, width = batch.images.shape[-2:]
        down, across = self.sides
        columns = self.grid(height, width)[1]
        rows = torch.arange(height) // down
        return (rows[:, None] * columns + torch.arange(width) // across)[None]


@final
@dataclass(frozen=True)
class Tokens:
    """The patches that a vision transformer reads as tokens; their size is that of the model."""

    size: Size | None = None
    """by default asked of the model"""

    name = "tokens"

    def grid(self, height: int, width: int) -> tuple[int, int]:
        return self._patches.grid(height, width)

    def check(self, height: int, width: int) -> None:
        self._patches.check(height, width)

    def __call__(self, batch: Batch) -> Tensor:
        return self._patches(batch)

    @property
    def sides(self) -> tuple[int, int]:
        return self._patches.sides

    @property
    def _patches(self) -> Patches:
        if self.size is None:
            raise InputError("Tokens() does not know its patch size yet: units_for(Tokens(), model) asks the model")
        return Patches(self.size)


@final
@dataclass(frozen=True, eq=False, repr=False)
class FeatureMask:
    """Regions of your own: labels `(h, w)` for all images, or `(n, h, w)` in the order of the images or by `ids`.

    Labels are integers from 0 to k − 1 without gaps; `numpy.unique(labels, return_inverse=True)[1]` makes such ones.
    """

    labels: Any
    ids: Ids | None = None

    name = "feature mask"

    def __repr__(self) -> str:
        shown = "" if self.ids is None else f", ids {', '.join(map(str, self.ids[:3].tolist()))} …"
        return f"FeatureMask(labels {tuple(self.labels.shape)}{shown})"

    def __post_init__(self) -> None:
        labels = torch.as_tensor(np.asarray(self.labels))
        if labels.ndim not in (2, 3):
            raise ShapeError(f"FeatureMask: labels {tuple(labels.shape)}: give (h, w), or (n, h, w) for each image")
        checked = check_labels("FeatureMask", labels if labels.ndim == 3 else labels[None])
        object.__setattr__(self, "labels", checked if labels.ndim == 3 else checked[0])
        if self.ids is not None:
            object.__setattr__(self, "ids", torch.as_tensor(self.ids))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read labels from a .npy file, or from a .npz file with `labels` and, if they are per image, `ids`."""
        try:
            content = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: no labels could be read ({error}): give a .npy or .npz file") from error
        if isinstance(content, np.ndarray):
            return cls(content)
        if "labels" not in content:
            raise DataError(f"{path} holds {', '.join(content) or 'nothing'}: name the array of labels 'labels'")
        return cls(content["labels"], content.get("ids"))

    @property
    def per_image(self) -> bool:
        return bool(self.labels.ndim == 3)

    def bound(self, ids: Ids) -> Self:
        """These labels with ids, checked to cover the images `ids`."""
        if not self.per_image:
            return self
        own = ids if self.ids is None else self.ids
        if len(own) != len(self.labels):
            raise ShapeError(f"FeatureMask: {len(self.labels)} label maps for {len(own)} images: give one per image")
        if len(torch.unique(own)) < len(own):
            raise InputError("FeatureMask: an id is given to several label maps: give one per image")
        missing = ids[~torch.isin(ids, own)]
        if len(missing):
            raise ShapeError(f"FeatureMask: no labels for image {int(missing[0])} ({len(missing)} are missing)")
        return replace(self, ids=own)

    def check(self, height: int, width: int) -> None:
        if tuple(self.labels.shape[-2:]) != (height, width):
            raise ShapeError(
                f"FeatureMask: labels {tuple(self.labels.shape)} do not fit images of {height}×{width} pixels: give "
                "one label per pixel"
            )

    def __call__(self, batch: Batch) -> Tensor:
        if not self.per_image:
            return self.labels[None]  # type: ignore[no-any-return]
        if self.ids is None:
            raise InputError(
                "FeatureMask: labels per image need ids=, or rw.compare, which gives them those of its data"
            )
        order = torch.argsort(self.ids)
        return self.labels[order[torch.searchsorted(self.ids[order], batch.ids.cpu())]]  # type: ignore[no-any-return]


@final
@dataclass(frozen=True)
class Superpixels:
    """About `count` superpixels per image, by SLIC of scikit-image: regions of similar color.

    `compactness`: larger values make them squarer. Images get as many as SLIC finds, so numbers of units differ.
    """

    count: int
    compactness: float = 10.0

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 2:
            raise RangeError(f"Superpixels({self.count!r}): give a whole number of 2 or more, such as 50")
        if not isinstance(self.compactness, int | float) or not 0 < self.compactness < float("inf"):
            raise RangeError(f"Superpixels(compactness={self.compactness!r}): give a number above 0, such as 10")

    @property
    def name(self) -> str:
        return f"superpixels {self.count}"

    def check(self, height: int, width: int) -> None:
        if self.count > height * width:
            raise RangeError(
                f"{self!r}: images of {height}×{width} have only {height * width} pixels; give fewer superpixels"
            )
        load_slic()

    def __call__(self, batch: Batch) -> Tensor:
        images = batch.images.cpu().permute(0, 2, 3, 1).contiguous().numpy()
        return torch.from_numpy(np.stack([segments(image, self.count, self.compactness) for image in images]))


# ── from a setting to the units of a batch ───────────────────────────────────────────────────────────────────────────


@final
@dataclass(frozen=True)
class UnitSetting:
    """The units of an experiment, and how maps are pooled to them: one for all of its curves."""

    units: Units = Pixels()
    reduction: UnitReduction = "mean"

    @property
    def name(self) -> str:
        """As tables have it.

        >>> UnitSetting().name, UnitSetting(Patches(4), "max").name
        ('pixels', 'patches 4 (max)')
        """
        return setting_name(unit_name(self.units), self.reduction)

    @property
    def pixels(self) -> bool:
        return isinstance(self.units, Pixels)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with its units; for pixels the batch itself."""
        if self.pixels:
            return batch
        height, width = batch.images.shape[-2:]
        if hasattr(self.units, "check"):
            self.units.check(height, width)
        labels = check_labels(unit_name(self.units), self.units(batch), batch)
        grid = self.units.grid(height, width) if hasattr(self.units, "grid") else None
        return replace(batch, units=Partition.of(labels, self.reduction, grid))


PIXELS = UnitSetting()


def setting_name(units: str, reduction: UnitReduction) -> str:
    return units if reduction == "mean" or units == Pixels.name else f"{units} ({reduction})"


def unit_name(units: Units) -> str:
    return str(getattr(units, "name", None) or getattr(units, "__name__", type(units).__name__))


def units_for(units: Units, model: Any, data: Dataset | None = None) -> Units:
    """Units that know what they need of the model (the patch size of tokens) and of the data (the ids of labels)."""
    if isinstance(units, Tokens) and units.size is None:
        transformer = getattr(model, "transformer", None)
        if transformer is None:
            network = getattr(getattr(model, "network", model), "network", model)
            raise InputError(
                f"units='tokens': {type(network).__name__} has no tokens, as it is not a vision transformer that is "
                "known here: remove patches instead, units=rw.Patches(16)"
            )
        return Tokens(tuple(transformer.patch_size))
    if isinstance(units, FeatureMask) and data is not None:
        return units.bound(data.ids)
    return units
