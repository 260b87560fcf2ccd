"""Training on imputed images: which rows are learned from, how they are filled as they are needed, who is chosen."""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from roadworthy.core.errors import ModelError, RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Ids, Images, Labels
from roadworthy.datasets import Arrays
from roadworthy.datasets.subsets import First, RandomAccess, spans
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import evaluating, predict
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.loop import EpochRecord, Loss, Recipe, chosen, fit

Fill = Callable[[Batch, Tensor, Key], Images]
"""(some train images, their rows in the split, the key of the epoch) -> what is learned from instead"""
Augment = Callable[[Images, Ids, Key], Images]
"""(filled images, their ids, the key of the epoch) -> the images as the network sees them; torch may be drawn from"""
Filled = Iterable[tuple[Images, Labels]]

_HOLD = 2**31
"""bytes of images that are held in memory rather than read or filled again"""


class TrainingResult(NamedTuple):
    """A model after its training."""

    model: Normalized
    records: tuple[EpochRecord, ...]

    @property
    def epoch(self) -> int:
        """whose weights it has"""
        return chosen(self.records)


class Readable(Dataset, RandomAccess, Protocol):
    """A data set whose images can be read in any order."""


def readable(data: Dataset) -> Readable:
    """The data set itself where it can be read at random and is large, or all of its images in memory."""
    source = data.data if isinstance(data, First) else data
    shape = next(data.batches(1)).images.shape
    if isinstance(data, Arrays):
        return data
    if isinstance(source, RandomAccess) and len(data) * math.prod(shape) * 4 > _HOLD:
        return _Head(source, data)
    batches = list(data.batches(256))
    images, labels, ids = (torch.cat([getattr(one, name) for one in batches]) for name in ("images", "labels", "ids"))
    return Arrays(images, labels, ids=ids, classes=data.classes)


class _Head:
    """The first images of what can be read at random."""

    def __init__(self, source: RandomAccess, data: Dataset):
        self.at, self.batches, self.ids, self.classes = source.at, data.batches, data.ids, data.classes

    def __len__(self) -> int:
        return len(self.ids)


class Trainer(NamedTuple):
    """Everything about a training but the network."""

    recipe: Recipe
    data: Readable
    fill: Fill
    key: Key
    loss: Loss = cross_entropy
    augment: Augment | None = None
    test: Callable[[], Filled] | None = None
    """the imputed test set, looked at for "best-on-test" alone"""
    checkpoint: CheckpointFile | None = None
    on_epoch: Callable[[EpochRecord], object] | None = None

    def train(self, model: Normalized) -> TrainingResult:
        """Train `model` in place; what diverges or becomes non-finite is an error, never a evaluator."""
        learned, held = split(len(self.data), self.recipe, self.key)
        trainer = self._replace(fill=_made_once(self.fill, self.data, self.key))
        measures: dict[str, Callable[[], float] | None] = {
            "last": None,
            "validation": lambda: accuracy(model, trainer._filled(held, self.key.fold("validation"))),
            "best-on-test": lambda: accuracy(model, self.test() if self.test else ()),
        }
        records = fit(
            model,
            lambda epoch: trainer._epoch(learned, epoch),
            self.recipe,
            key=self.key,
            loss=self.loss,
            on_epoch=self.on_epoch,
            measure=measures[self.recipe.select],
            start=self.checkpoint.read() if self.checkpoint else None,
            on_checkpoint=self.checkpoint.write if self.checkpoint else None,
        )
        _check_converged(model, self.data, records, self.loss)
        return TrainingResult(model.eval(), tuple(records))

    def _epoch(self, learned: NDArray[np.int64], epoch: int) -> Iterator[tuple[Images, Labels]]:
        """Every image once, in the epoch's own order; augmentation draws here, where torch's generator is keyed."""
        rows = learned[self.key.fold("shuffle", epoch).permutation(0, len(learned))]
        for batch, images in self._stream(rows, self.recipe.batch_size, self.key.fold("epoch", epoch)):
            seen = self.augment(images, batch.ids, self.key.fold("augment", epoch)) if self.augment else images
            yield seen, batch.labels

    def _filled(self, rows: NDArray[np.int64], key: Key) -> Iterator[tuple[Images, Labels]]:
        for batch, images in self._stream(rows, 256, key):
            yield images, batch.labels

    def _stream(self, rows: NDArray[np.int64], size: int, key: Key) -> Iterator[tuple[Batch, Images]]:
        def filled() -> Iterator[tuple[Batch, Images]]:
            for span in spans(len(rows), size):
                batch = self.data.at(rows[span].tolist())
                yield batch, self.fill(batch, torch.from_numpy(rows[span]), key)

        return _ahead(filled())


def split(images: int, recipe: Recipe, key: Key) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from and rows held out for validation, by key: all points of a seed share them."""
    if recipe.select != "validation":
        return np.arange(images), np.arange(0)
    if images < 2:
        raise RangeError(f'{images} train image(s): validation needs at least 2; give more, or take select="last"')
    mixed = key.fold("validation").permutation(0, images)
    held = min(images - 1, max(1, round(images * recipe.validation)))
    return np.sort(mixed[held:]), np.sort(mixed[:held])


def accuracy(model: Normalized, batches: Filled) -> float:
    right, images = 0, 0
    with evaluating(model) as device:
        for inputs, labels in batches:
            right += int((predict(model, inputs, device).argmax(dim=1) == labels).sum())
            images += len(labels)
    return right / max(1, images)


def _ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """The next batch is made, on another core, while this one is learned from."""
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = worker.submit(next, batches, None)
            yield batch


def _made_once(fill: Fill, data: Readable, key: Key) -> Fill:
    """Where a fill is the same in every epoch, the images are filled once and kept, if there is room."""
    few = data.at(list(range(min(4, len(data)))))
    rows = torch.arange(len(few))
    first, second = (fill(few, rows, key.fold("epoch", epoch)) for epoch in (0, 1))
    if not torch.equal(first, second) or len(data) * few.images[0].numel() * 4 > _HOLD:
        return fill
    made, start = torch.empty(len(data), *first.shape[1:]), 0
    for batch in data.batches(256):
        here = slice(start, start + len(batch))
        made[here] = fill(batch, torch.arange(start, start + len(batch)), key)
        start += len(batch)
    return lambda batch, rows, key: made[rows]


def _check_converged(model: Normalized, data: Readable, records: list[EpochRecord], loss: Loss) -> None:
    if not all(torch.isfinite(tensor).all() for tensor in model.state_dict().values()):
        raise ModelError("the weights became infinite or NaN: lower the learning rate")
    with evaluating(model) as device:
        classes = predict(model, data.at([0]).images, device).shape[1]
    last = records[-1]
    if loss is cross_entropy and last.loss > 2 * math.log(classes):
        raise ModelError(
            f"the loss was {last.loss:.3g} in epoch {last.epoch}, more than twice that of guessing among {classes} "
            "classes: the training diverged; lower the learning rate"
        )
