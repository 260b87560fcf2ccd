"""A study: what was asked of a comparison, checked, rehearsed on a few images, then streamed batch by batch."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.attributions import PrecomputedMaps
from roadworthy.attributions.maps import Reduce, as_maps
from roadworthy.core.errors import InputError
from roadworthy.core.progress import Advance
from roadworthy.core.random import Key
from roadworthy.core.results import Point, Predictions
from roadworthy.core.types import UNLABELED, Attribution, Batch, Dataset, Imputer, Maps, Model, Order, Removal
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import NoRetrain, evaluator_batch, explain, prediction
from roadworthy.experiments.registry import part
from roadworthy.imputers import NoisyLinear
from roadworthy.models.prediction import labeled, predict
from roadworthy.statistics import Ties

Explained = Iterator[tuple[slice, Batch, Mapping[str, Maps]]]
_EVALUATOR = "no-retrain"


@dataclass(frozen=True, eq=False)
class Study:
    model: Model
    data: Dataset
    methods: Mapping[str, Attribution]
    imputers: Mapping[str, Imputer]
    orders: Mapping[str, Order]
    fractions: tuple[float, ...]
    """above 0; point 0 is the plain accuracy"""
    seeds: tuple[int, ...]
    explain_prediction: bool
    reduce: Reduce
    map_key: Key
    map_batch: int
    """images explained at once: a size of its own, so that `batch_size` cannot change a map in its last bits"""
    batch_size: int
    """images evaluated at once"""
    device: torch.device

    def blocks(self) -> Iterator[tuple[slice, Batch]]:
        """The images as they are loaded, with their rows in the data set: whole map batches, enough for one batch."""
        size = -(-self.batch_size // self.map_batch) * self.map_batch
        start = 0
        for block in self.data.batches(size):
            yield slice(start, start + len(block)), block
            start += len(block)

    def forwards(self, methods: int) -> int:
        """Images that the model evaluators for so many methods."""
        points = methods * len(self.imputers) * len(self.orders) * len(self.fractions) * len(self.seeds)
        return (1 + points) * len(self.data)


@dataclass(frozen=True, eq=False)
class Examples:
    """A few images with their maps, for pictures."""

    batch: Batch
    """every label known"""
    maps: Mapping[str, Maps]
    guessed: Tensor
    """bool `(n,)`: nobody gave a label, the model's prediction stands in"""


def rehearse(study: Study, images: int = 6) -> Examples:
    """Do everything once on the first images, so that what cannot work says so before long work starts."""
    for name, method in study.methods.items():
        if isinstance(method, PrecomputedMaps):
            _check_maps(name, method, study)
    batch = next(study.data.batches(min(images, len(study.data))))
    guessed = batch.labels == UNLABELED
    batch = labeled(batch, predict(study.model, batch.images, study.device))
    maps = explain(study.methods, study.model, batch, study.map_key, study.reduce)
    evaluator, hardest, key, two = NoRetrain(study.model), study.fractions[-1:], Key(study.seeds[0]), batch[:2]
    ranks = rank(study.orders, next(iter(maps.values()))[:2], two.ids, key)
    for order, imputer in product(study.orders, study.imputers.values()):
        removal = Removal(study.orders[order], imputer)
        for _ in evaluator_batch(evaluator, removal, ranks[order], two, two.labels, hardest, key, study.device):
            pass
    return Examples(batch, maps, guessed)


def _check_maps(name: str, maps: PrecomputedMaps, study: Study) -> None:
    """Ready maps are there already: all of them are looked at before the first is used."""
    (first,) = next(study.data.batches(1)).images
    for start in range(0, len(study.data), 256):
        ids = study.data.ids[start : start + 256]
        blank = first.expand(len(ids), *first.shape)
        as_maps(name, maps.rows(ids), ids, blank, study.reduce)


def evaluator_plain(study: Study, advance: Advance) -> tuple[Predictions, NDArray[np.int64]]:
    """The unmodified images: the Predictions at fraction 0, and each image's target class."""
    predictions = []
    for batch in study.data.batches(study.batch_size):
        probabilities = predict(study.model, batch.images, study.device)
        known = labeled(batch, probabilities)
        targets = probabilities.argmax(dim=1) if study.explain_prediction else known.labels
        predictions.append(prediction(known, targets, probabilities))
        advance(len(batch))
    plain = Predictions.join(predictions)
    return plain, plain.predicted if study.explain_prediction else plain.labels


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Images that were evaluated, and what it takes to evaluator further maps on them."""

    study: Study
    plain: Predictions
    targets: NDArray[np.int64]
    shelf: "Shelf"
    predictions: dict[Point, Predictions] = field(default_factory=dict)


def evaluator_study(study: Study, folder: Path, advance: Advance) -> Evaluated:
    """Explain and evaluator all images of the study; maps wait in `folder` for a second look."""
    plain, targets = evaluator_plain(study, advance)
    evaluated = Evaluated(study, plain, targets, Shelf(Path(mkdtemp(dir=folder)), len(study.data)))
    return replace(evaluated, predictions=evaluator_all(evaluated, explained(evaluated), advance))


def evaluator_until(
    study: Study, enough: Callable[[Mapping[Point, Predictions]], bool], folder: Path, advance: Advance
) -> list[Evaluated]:
    """Evaluator images in growing batches until what was found is `enough`, or all are done.

    The order is a permutation by key, so that a data set sorted by class is no trap.
    """
    order = Key(study.seeds[0]).fold("until ranked").permutation(0, len(study.data))
    done: list[Evaluated] = []
    for rows in looks(len(order), study.map_batch):
        piece = replace(study, data=picked(study.data, np.sort(order[rows]).tolist()))
        done.append(evaluator_study(piece, folder, advance))
        if enough(joined([one.predictions for one in done])):
            break
    return done


def looks(images: int, first: int, growth: float = 1.5) -> Iterator[slice]:
    """Consecutive slices after each of which one looks: so many images, then half as many again, and so on.

    >>> [part.stop for part in looks(1000, 64)]
    [64, 96, 144, 216, 324, 486, 729, 1000]
    """
    start, stop = 0, min(first, images)
    while start < images:
        yield slice(start, stop)
        start, stop = stop, min(max(stop + 1, int(stop * growth)), images)


def joined(parts: Sequence[Mapping[Point, Predictions]]) -> dict[Point, Predictions]:
    """The PointPredictions of several batches as those of one."""
    return {point: Predictions.join([part[point] for part in parts]) for point in parts[0]}


def joined_ties(parts: Sequence[Evaluated]) -> dict[str, Ties]:
    return {name: _ties([one for part in parts for one in part.shelf.ties[name]]) for name in parts[0].shelf.ties}


def _ties(parts: Sequence[NDArray[np.float64]]) -> Ties:
    return Ties(*(float(share) for share in np.concatenate(parts).mean(axis=0)))


def explained(evaluated: Evaluated) -> Explained:
    """Every block with the maps of every method, which are put on the shelf too."""
    study = evaluated.study
    for rows, block in study.blocks():
        asked = replace(block, labels=torch.from_numpy(evaluated.targets[rows]))
        parts = [
            explain(study.methods, study.model, batch, study.map_key, study.reduce)
            for _, batch in asked.split(study.map_batch)
        ]
        maps = {name: torch.cat([part[name] for part in parts]) for name in study.methods}
        evaluated.shelf.put(rows, maps)
        yield rows, block, maps


def evaluator_all(evaluated: Evaluated, explained: Explained, advance: Advance) -> dict[Point, Predictions]:
    """A Predictions per point; fraction 0 is shared by all."""
    study = evaluated.study
    parts: dict[Point, list[Predictions]] = defaultdict(list)
    evaluator = NoRetrain(study.model)
    for rows, block, maps in explained:
        known = replace(block, labels=torch.from_numpy(evaluated.plain.labels[rows]))
        wanted = torch.from_numpy(evaluated.targets[rows])
        for piece, batch in known.split(study.batch_size):
            for seed, method in product(study.seeds, maps):
                key, aims = Key(seed), wanted[piece]
                ranks = rank(study.orders, maps[method][piece], batch.ids, key)
                for order, imputer in product(study.orders, study.imputers):
                    removal = Removal(study.orders[order], study.imputers[imputer])
                    judged_points = evaluator_batch(
                        evaluator, removal, ranks[order], batch, aims, study.fractions, key, study.device
                    )
                    for fraction, one in zip(study.fractions, judged_points, strict=True):
                        parts[Point(method, order, imputer, _EVALUATOR, fraction, seed)].append(one)
                        advance(len(batch))
    return {point._replace(fraction=0.0): evaluated.plain for point in parts} | {
        point: Predictions.join(predictions) for point, predictions in parts.items()
    }


class Shelf:
    """Maps kept on disk for a second look at the leading methods; memory stays constant."""

    def __init__(self, folder: Path, images: int):
        self._folder, self._images = folder, images
        self._files: dict[str, NDArray[np.float32]] = {}
        self.ties: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
        """per method and image: the share of tied pixels, and whether all are"""

    def put(self, rows: slice, maps: Mapping[str, Maps]) -> None:
        for name, values in maps.items():
            if name not in self._files:
                path = self._folder / f"{len(self._files)}.npy"
                shape = (self._images, *values.shape[1:])
                self._files[name] = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
            self._files[name][rows] = values.numpy()
            self.ties[name].append(tied(values))

    def get(self, name: str, rows: slice) -> Maps:
        return torch.from_numpy(np.array(self._files[name][rows]))


def tied(maps: Maps) -> NDArray[np.float64]:
    """`(n, 2)`: the share of pixels whose score another pixel of the image has too, and 1 where all are equal.

    >>> tied(torch.tensor([[[1.0, 2.0], [3.0, 1.0]], [[5.0, 5.0], [5.0, 5.0]]])).tolist()
    [[0.5, 0.0], [1.0, 1.0]]
    """
    ordered = maps.flatten(1).sort(dim=1).values
    same = torch.nn.functional.pad(ordered[:, 1:] == ordered[:, :-1], (1, 1))  # with the one before
    share = (same[:, 1:] | same[:, :-1]).double().mean(dim=1)
    return torch.stack([share, (ordered[:, 0] == ordered[:, -1]).double()], dim=1).numpy()


def as_method(name: str, method: Any, data: Dataset) -> Attribution:
    """An attribution, a plain function, ready maps (arrays or a file), or the name of a part."""
    if isinstance(method, str) and not Path(method).suffix:
        built: Attribution = part("attributions", method).make()
        return built
    if isinstance(method, str | Path):
        method = PrecomputedMaps.load(method)
    if isinstance(method, np.ndarray | torch.Tensor):
        method = PrecomputedMaps(method)
    if isinstance(method, PrecomputedMaps):
        return method.bound(name, data.ids)
    if not callable(method):
        raise InputError(f"{name}: a {type(method).__name__} is no method: give an attribution, a function or maps")
    return method  # type: ignore[no-any-return]


def as_imputers(imputer: Any, data: Dataset) -> dict[str, Imputer]:
    """One imputer or several, as values, names of parts or {name: imputer}."""
    if isinstance(imputer, Mapping):
        return {name: _as_imputer(one, data) for name, one in imputer.items()}
    several: Sequence[Any] = imputer if isinstance(imputer, list | tuple) else [imputer]
    return as_imputers({_imputer_name(one): one for one in several}, data)


def _as_imputer(imputer: Any, data: Dataset) -> Imputer:
    if not isinstance(imputer, str):
        if not callable(imputer):
            raise InputError(f"imputer={imputer!r}: give an imputer such as rw.NoisyLinear(), or its name")
        return imputer  # type: ignore[no-any-return]
    named = part("imputers", imputer)
    try:
        built: Imputer = named.make(data) if named.needs_data else named.make()
    except TypeError as error:
        raise InputError(f"imputer={imputer!r} does not go by its name alone ({error}): give it built") from error
    return built


def _imputer_name(imputer: Any) -> str:
    if isinstance(imputer, NoisyLinear):
        return "linear"
    return imputer if isinstance(imputer, str) else getattr(imputer, "__name__", type(imputer).__name__)
