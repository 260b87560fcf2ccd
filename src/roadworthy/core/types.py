"""The values that pass through a run, and the protocols that built-in parts and user-defined ones implement.

images ─attribution► maps ─order► ranks ─fraction► removed ─imputer► imputed images ─evaluator► Predictions
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from roadworthy.core.partitions import Partition
from roadworthy.core.random import Key

Ids = Tensor
"""int64 `(n,)`: the image's index in its official split, also in subsets. Ids key all randomness."""
Images = Tensor
"""float32 `(n, c, h, w)` in pixel space [0, 1], any `c >= 1`."""
Labels = Tensor
"""int64 `(n,)`; `UNLABELED` where unknown."""
Maps = Tensor
"""float32 `(n, h, w)`, higher = more relevant; float64 where float32 would lose the order."""
Ranks = Tensor
"""int64 `(n, h, w)`, a permutation per image; rank 0 is removed first. The pixels of a unit have one rank."""
Removed = Tensor
"""bool `(n, h, w)`, True = removed. The only mask, the only polarity."""

UNLABELED = -1


@dataclass(frozen=True)
class Batch:
    """Images with their ids and labels, all of length n."""

    ids: Ids
    images: Images
    labels: Labels
    units: Partition | None = None
    """what is removed at a time, `units.labels` for methods that explain regions; None for pixels"""

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice | Tensor) -> "Batch":
        units = None if self.units is None else self.units[rows]
        return Batch(self.ids[rows], self.images[rows], self.labels[rows], units)

    def split(self, size: int) -> "Iterator[tuple[slice, Batch]]":
        """Consecutive pieces of at most `size` images, each with its rows."""
        for start in range(0, len(self), size):
            rows = slice(start, min(start + size, len(self)))
            yield rows, self[rows]

    def repeated(self, times: int) -> "Batch":
        """All images again and again, without their units."""
        return Batch(self.ids.repeat(times), self.images.repeat(times, 1, 1, 1), self.labels.repeat(times))

    def to(self, device: torch.device) -> "Batch":
        """The same batch with images and labels on `device`. Ids stay on the CPU, where random numbers are drawn."""
        units = None if self.units is None else self.units.to(device)
        return replace(self, images=self.images.to(device), labels=self.labels.to(device), units=units)


class Model(Protocol):
    """A classifier that normalizes its own input: `model(images)` is `model.network(model.normalize(images))`."""

    @property
    def network(self) -> nn.Module:
        """Takes normalized input; attributions with a baseline or noise work on it."""

    @property
    def device(self) -> torch.device: ...

    def normalize(self, images: Images, /) -> Tensor:
        """Images in [0, 1] to the network's input space."""

    def __call__(self, images: Images, /) -> Tensor:
        """Images in [0, 1] to logits `(n, classes)`."""


class Attribution(Protocol):
    """A method: says which pixels matter. Any function `(model, batch, key) -> maps` is one."""

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        """Explain the class `batch.labels` of each image."""


@runtime_checkable
class Derived(Protocol):
    """An attribution computed from a `source` that others may share: equal sources are computed once per batch."""

    @property
    def source(self) -> Any:
        """Called as `source(model, batch, key)`."""

    def finish(self, computed: Any, batch: Batch) -> Maps:
        """The maps, from the output of `source`."""


class Order(Protocol):
    """In which order pixels are removed, from their relevance."""

    def __call__(self, maps: Maps, ids: Ids, key: Key) -> Ranks:
        """Rank the pixels of each image by when they are removed; break ties by key and id."""


class Units(Protocol):
    """What is removed at a time. Any function batch -> labels is one."""

    def __call__(self, batch: Batch, /) -> Tensor:
        """The unit of each pixel: integers `(n, h, w)`, or `(1, h, w)` for all images, from 0 to k − 1 without gaps.

        Images may be on any device and may have different numbers of units. The same image must get the same units.
        """


class Imputer(Protocol):
    """Fills removed pixels. Any function `(batch, removed, key) -> images` is one."""

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        """Impute the removed pixels. Kept pixels stay bit-equal; the input is not modified.

        The input is on the CPU, or for a part marked `on_device = True` where the model is; so is the result.
        """


class Evaluator(Protocol):
    """Predicts on imputed images. ROAD and ROAR differ only in the evaluator."""

    def __call__(self, images: Images, removed: Removed) -> Tensor:
        """Probabilities `(n, classes)` on any device; `removed` is for models that can drop inputs."""


@runtime_checkable
class Dataset(Protocol):
    """Labeled images that can be streamed repeatedly, always in the same order."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, or () if unknown."""

    @property
    def ids(self) -> Ids:
        """The ids of all images, in streaming order."""

    def __len__(self) -> int: ...

    def batches(self, size: int) -> Iterator[Batch]: ...
