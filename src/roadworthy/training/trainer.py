"""Training a classifier on imputed images: the validation split, imputation on the fly, and model selection."""

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
from roadworthy.models.prediction import eval_mode, predict
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.loop import EpochRecord, Loss, best_epoch, fit
from roadworthy.training.recipe import Recipe

Fill = Callable[[Batch, Tensor, Key], Images]
"""(train images, their rows in the split, the key of the epoch) -> the imputed images to train on"""
Augment = Callable[[Images, Ids, Key], Images]
"""(imputed images, their ids, the key of the epoch) -> augmented images; may draw from torch's global generator"""
Filled = Iterable[tuple[Images, Labels]]

_MAX_CACHED = 2**31
"""bytes of images that are kept in memory rather than read or imputed again"""


class TrainingResult(NamedTuple):
    """A trained model and its training curve."""

    model: Normalized
    records: tuple[EpochRecord, ...]

    @property
    def epoch(self) -> int:
        """The epoch whose weights were kept."""
        return best_epoch(self.records)


class Readable(Dataset, RandomAccess, Protocol):
    """A dataset whose images can be read in any order."""


def readable(data: Dataset) -> Readable:
    """A randomly accessible version of `data`: the dataset itself if it is one and large, else a copy in memory."""
    source = data.data if isinstance(data, First) else data
    shape = next(data.batches(1)).images.shape
    if isinstance(data, Arrays):
        return data
    if isinstance(source, RandomAccess) and len(data) * math.prod(shape) * 4 > _MAX_CACHED:
        return _Head(source, data)
    batches = list(data.batches(256))
    images, labels, ids = (
        torch.cat([getattr(batch, field) for batch in batches]) for field in ("images", "labels", "ids")
    )
    return Arrays(images, labels, ids=ids, classes=data.classes)


class _Head:
    """The first images of a randomly accessible dataset."""

    def __init__(self, source: RandomAccess, data: Dataset):
        self.at, self.batches, self.ids, self.classes = source.at, data.batches, data.ids, data.classes

    def __len__(self) -> int:
        return len(self.ids)


class Trainer(NamedTuple):
    """Everything that defines a training but the network."""

    recipe: Recipe
    data: Readable
    fill: Fill
    key: Key
    loss: Loss = cross_entropy
    augment: Augment | None = None
    test: Callable[[], Filled] | None = None
    """the imputed test set, used by select="best-on-test" only"""
    checkpoint: CheckpointFile | None = None
    on_epoch: Callable[[EpochRecord], object] | None = None

    def train(self, model: Normalized) -> TrainingResult:
        """Train `model` in place; divergence or non-finite values raise a ModelError."""
        train_rows, held_out = split(len(self.data), self.recipe, self.key)
        trainer = self._replace(fill=_cached(self.fill, self.data, self.key))
        measures: dict[str, Callable[[], float] | None] = {
            "last": None,
            "validation": lambda: accuracy(model, trainer._imputed(held_out, self.key.fold("validation"))),
            "best-on-test": lambda: accuracy(model, self.test() if self.test else ()),
        }
        records = fit(
            model,
            lambda epoch: trainer._epoch(train_rows, epoch),
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

    def _epoch(self, train_rows: NDArray[np.int64], epoch: int) -> Iterator[tuple[Images, Labels]]:
        """Every image once, shuffled by epoch. Augmentation runs here, where `fit` has seeded torch's generator."""
        rows = train_rows[self.key.fold("shuffle", epoch).permutation(0, len(train_rows))]
        for batch, images in self._stream(rows, self.recipe.batch_size, self.key.fold("epoch", epoch)):
            if self.augment:
                images = self.augment(images, batch.ids, self.key.fold("augment", epoch))
            yield images, batch.labels

    def _imputed(self, rows: NDArray[np.int64], key: Key) -> Iterator[tuple[Images, Labels]]:
        for batch, images in self._stream(rows, 256, key):
            yield images, batch.labels

    def _stream(self, rows: NDArray[np.int64], size: int, key: Key) -> Iterator[tuple[Batch, Images]]:
        def imputed() -> Iterator[tuple[Batch, Images]]:
            for span in spans(len(rows), size):
                batch = self.data.at(rows[span].tolist())
                yield batch, self.fill(batch, torch.from_numpy(rows[span]), key)

        return _prefetched(imputed())


def split(images: int, recipe: Recipe, key: Key) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows held out for validation, drawn by key: all points of a seed share them."""
    if recipe.select != "validation":
        return np.arange(images), np.arange(0)
    if images < 2:
        raise RangeError(f'{images} train image(s): validation needs at least 2; add images or use select="last"')
    shuffled = key.fold("validation").permutation(0, images)
    count = min(images - 1, max(1, round(images * recipe.validation)))
    return np.sort(shuffled[count:]), np.sort(shuffled[:count])


def accuracy(model: Normalized, batches: Filled) -> float:
    correct, images = 0, 0
    with eval_mode(model) as device:
        for inputs, labels in batches:
            correct += int((predict(model, inputs, device).argmax(dim=1) == labels).sum())
            images += len(labels)
    return correct / max(1, images)


def _prefetched(batches: Iterator[Any]) -> Iterator[Any]:
    """Prepare the next batch on another thread while the current one is used. One thread of torch means one in all."""
    if torch.get_num_threads() == 1:
        yield from batches
        return
    with ThreadPoolExecutor(1) as worker:
        pending = worker.submit(next, batches, None)
        while (batch := pending.result()) is not None:
            pending = worker.submit(next, batches, None)
            yield batch


def _cached(fill: Fill, data: Readable, key: Key) -> Fill:
    """If the imputation is the same in every epoch and fits into memory, impute all images once."""
    sample = data.at(list(range(min(4, len(data)))))
    rows = torch.arange(len(sample))
    first, second = (fill(sample, rows, key.fold("epoch", epoch)) for epoch in (0, 1))
    if not torch.equal(first, second) or len(data) * sample.images[0].numel() * 4 > _MAX_CACHED:
        return fill
    imputed, start = torch.empty(len(data), *first.shape[1:]), 0
    for batch in data.batches(256):
        end = start + len(batch)
        imputed[start:end] = fill(batch, torch.arange(start, end), key)
        start = end
    return lambda batch, rows, key: imputed[rows]


def _check_converged(model: Normalized, data: Readable, records: list[EpochRecord], loss: Loss) -> None:
    if not all(torch.isfinite(tensor).all() for tensor in model.state_dict().values()):
        raise ModelError("the weights became infinite or NaN: lower the learning rate")
    with eval_mode(model) as device:
        classes = predict(model, data.at([0]).images, device).shape[1]
    last = records[-1]
    if loss is cross_entropy and last.loss > 2 * math.log(classes):
        raise ModelError(
            f"the loss was {last.loss:.3g} in epoch {last.epoch}, more than twice that of guessing among {classes} "
            "classes: training diverged; lower the learning rate"
        )
