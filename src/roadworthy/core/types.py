"""The values that climb through the house, and the seams where a part, or a user's plain function, fits in.

images ─attribution► maps ─order► ranks ─fraction► removed ─imputer► images' ─evaluator► Predictions
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from roadworthy.core.random import Key

Ids = Tensor
"""int64 `(n,)`: the image's index in its official split; keys all randomness, on subsets too."""
Images = Tensor
"""float32 `(n, c, h, w)` in pixel space [0, 1], any `c >= 1`."""
Labels = Tensor
"""int64 `(n,)`; `UNLABELED` where nobody said."""
Maps = Tensor
"""float32 `(n, h, w)`, higher = more relevant."""
Ranks = Tensor
"""int64 `(n, h, w)`, a permutation per image; 0 leaves first."""
Removed = Tensor
"""bool `(n, h, w)`, True = gone. The only mask, the only polarity."""

UNLABELED = -1


@dataclass(frozen=True)
class Batch:
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
        """The same batch with its tensors for the network on `device`; ids stay, randomness is drawn on the CPU."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))


class Model(Protocol):
    """What a method or an evaluator is given as a model: a classifier that normalizes its own input."""

    network: Any
    """takes normalized input"""

    def __call__(self, images: Images) -> Tensor:
        """Images in [0, 1] to logits `(n, classes)`."""

    def normalize(self, images: Images) -> Tensor: ...

    @property
    def device(self) -> torch.device: ...


class Attribution(Protocol):
    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        """Explain the class `batch.labels` of each image."""


@runtime_checkable
class Derived(Protocol):
    """An attribution made from a `source` that several may share: equal sources are computed once per batch."""

    @property
    def source(self) -> Any:
        """Called as `source(model, batch, key)`."""

    def finish(self, computed: Any, batch: Batch) -> Maps: ...


class Order(Protocol):
    def __call__(self, maps: Maps, ids: Ids, key: Key) -> Ranks: ...


class Imputer(Protocol):
    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        """Fill what is removed; kept pixels stay bit-equal, the input stays untouched."""


class Evaluator(Protocol):
    """Predicts on imputed images. ROAD and ROAR differ only in the evaluator."""

    def __call__(self, images: Images, removed: Removed) -> Tensor:
        """Probabilities `(n, classes)` on the CPU; `removed` is for models that can drop inputs."""


@runtime_checkable
class Dataset(Protocol):
    """Labeled images that can be streamed, again and again, in the same order."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, or () where unknown."""

    @property
    def ids(self) -> Ids:
        """The ids of all images, in the order in which they are streamed."""

    def __len__(self) -> int: ...

    def batches(self, size: int) -> Iterator[Batch]: ...
