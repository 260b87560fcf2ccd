"""The values that climb through the house, and the seams where a part, or a user's plain function, fits in.

images ─attribution► scores ─order► ranks ─fraction► removed ─imputer► images' ─judge► Verdict
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from roadworthy.errors import ModelError, RangeError, ShapeError
from roadworthy.keys import Key

Ids = Tensor
"""int64 `(n,)`: the image's index in its official split; keys all randomness, on subsets too."""
Images = Tensor
"""float32 `(n, c, h, w)` in pixel space [0, 1], any `c >= 1`."""
Labels = Tensor
"""int64 `(n,)`; `UNLABELLED` where nobody said."""
Scores = Tensor
"""float32 `(n, h, w)`, higher = more relevant."""
Ranks = Tensor
"""int64 `(n, h, w)`, a permutation per image; 0 leaves first."""
Removed = Tensor
"""bool `(n, h, w)`, True = gone. The only mask, the only polarity."""

UNLABELLED = -1


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


class Logits(nn.Module):
    """A user's network, callable or Module, that answers with a plain `(n, classes)` tensor or says why it cannot."""

    def __init__(self, network: Any):
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        answer = self.network(inputs)
        logits = getattr(answer, "logits", answer)
        if not isinstance(logits, Tensor):
            raise ModelError(
                f"the model returned {type(answer).__name__}: return logits (n, classes), or an object with .logits"
            )
        if logits.ndim != 2 or len(logits) != len(inputs) or logits.shape[1] < 2:
            raise ModelError(
                f"the model returned shape {tuple(logits.shape)} for {len(inputs)} images: one row of logits per image "
                "and at least two columns are needed (for a single sigmoid output z return stack([0·z, z], 1))"
            )
        return logits


class Normalised(nn.Module):
    """A classifier that normalises its own input: images in [0, 1] ► (x − mean)/std ► network ► logits.

    Attributions with a baseline or noise work on `network`, in the normalised space.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: Any, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0):
        super().__init__()
        if np.any(np.asarray(std) <= 0):
            raise RangeError(f"std {std}: every channel's standard deviation must be above 0")
        self.network = Logits(network)
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).reshape(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).reshape(-1, 1, 1), persistent=False)

    def normalise(self, images: Images) -> Tensor:
        if len(self.mean) not in (1, images.shape[1]):
            raise ShapeError(f"the model normalises {len(self.mean)} channels, the images have {images.shape[1]}")
        return (images - self.mean.to(images.device)) / self.std.to(images.device)

    def forward(self, images: Images) -> Tensor:
        return self.network(self.normalise(images))  # type: ignore[no-any-return]

    @property
    def device(self) -> torch.device:
        """Where the user's parameters live; the CPU for a bare callable."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))


Model = Normalised
"""What parts are given as a model. `as_model` makes one from a Module or any callable."""


def as_model(model: Any) -> Model:
    """A bare network or callable means identity normalisation."""
    if isinstance(model, Normalised):
        return model
    if not callable(model):
        raise ModelError(f"the model is a {type(model).__name__}: give a torch Module or a callable images -> logits")
    return Normalised(model)


class Attribution(Protocol):
    def __call__(self, model: Model, batch: Batch, key: Key) -> Scores:
        """Explain the class `batch.labels` of each image."""


@runtime_checkable
class Derived(Protocol):
    """An attribution made from a `source` that several may share: equal sources are computed once per batch."""

    @property
    def source(self) -> Any:
        """Called as `source(model, batch, key)`."""

    def finish(self, computed: Any, batch: Batch) -> Scores: ...


class Order(Protocol):
    def __call__(self, scores: Scores, ids: Ids, key: Key) -> Ranks: ...


class Imputer(Protocol):
    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        """Fill what is removed; kept pixels stay bit-equal, the input stays untouched."""


@dataclass(frozen=True)
class Removal:
    order: Order
    imputer: Imputer


class Judge(Protocol):
    """ROAD and ROAR differ only in who judges."""

    def model_for(self, removal: Removal, fraction: float, key: Key) -> Model: ...


@runtime_checkable
class Dataset(Protocol):
    """Labelled images that can be streamed, again and again, in the same order."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, or () where unknown."""

    @property
    def ids(self) -> Ids:
        """The ids of all images, in the order in which they are streamed."""

    def __len__(self) -> int: ...

    def batches(self, size: int) -> Iterator[Batch]: ...


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a judge said of each image: never only a mean, so that every statistic can be redone later."""

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    probability: NDArray[np.float32]
    """of the target class"""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def correct(self) -> NDArray[np.bool_]:
        return np.equal(self.predicted, self.labels)

    @staticmethod
    def join(verdicts: "Sequence[Verdict]") -> "Verdict":
        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(verdict, name) for verdict in verdicts])

        return Verdict(joined("ids"), joined("labels"), joined("predicted"), joined("probability"))


class Recovered(NamedTuple):
    """How well it can be told which pixels were filled, per image `(n,)`."""

    error: NDArray[np.float64]
    """share of the pixels that the imputation predictor tells wrongly"""
    auc: NDArray[np.float64]
    """how often a filled pixel looks more filled to it than a kept one"""
    inverse: NDArray[np.float64]
    """share told wrongly by who calls every pixel of the fill's colour filled; NaN where the fill has no one colour"""


class Dot(NamedTuple):
    """One point of one curve: what a Verdict is about."""

    method: str
    order: str
    imputer: str
    judge: str
    fraction: float
    seed: int
