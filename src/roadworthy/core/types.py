"""The values that pass through a run, and the protocols that built-in parts and user-defined ones implement.

images ─attribution► maps ─order► ranks ─fraction► removed ─imputer► imputed images ─evaluator► Predictions
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

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
"""int64 `(n, h, w)`, a permutation per image; rank 0 is removed first."""
Removed = Tensor
"""bool `(n, h, w)`, True = removed. The only mask, the only polarity."""

UNLABELED = -1


@dataclass(frozen=True)
class Batch:
    """Images with their ids and labels, all of length n."""

    ids: Ids
    images: Images
    labels: Labels

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice | Tensor) -> "Batch":
        return Batch(self.ids[rows], self.images[rows], self.labels[rows])

    def split(self, size: int) -> "Iterator[tuple[slice, Batch]]":
        """Consecutive pieces of at most `size` images, each with its rows."""
        for start in range(0, len(self), size):
            rows = slice(start, min(start + size, len(self)))
            yield rows, self[rows]

    def to(self, device: torch.device) -> "Batch":
        """The same batch with images and labels on `device`. Ids stay on the CPU, where random numbers are drawn."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))


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


class Imputer(Protocol):
    """Fills removed pixels. Any function `(batch, removed, key) -> images` is one."""

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        """Impute the removed pixels. Kept pixels stay bit-equal; the input is not modified."""


class Evaluator(Protocol):
    """Predicts on imputed images. ROAD and ROAR differ only in the evaluator."""

    def __call__(self, images: Images, removed: Removed) -> Tensor:
        """Probabilities `(n, classes)` on the CPU; `removed` is for models that can drop inputs."""


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
