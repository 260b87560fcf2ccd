"""The leakage audit as items of work: what is measured, by whom, and as what it is recorded.

masks: a classifier of one method's masks at one share · predictor: one per imputer, trained on random masks ·
recovery: a predictor on the masks of one method · geometry: γ of one method's masks. A further measure is an entry of
`MEASURES` and of `audit_items`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.audit.geometry import Geometry, Refill, geometry_of
from roadworthy.audit.mask_detection import (
    LEARNED,
    RECIPE,
    TESTED,
    WIDTH,
    predictor,
    recover,
    rows_apart,
    train_predictor,
)
from roadworthy.audit.mask_information import FOLDS, READERS, read_masks
from roadworthy.audit.tables import Hole, most_relevant_share
from roadworthy.core.errors import InputError, RangeError
from roadworthy.core.masks import MASKS, checked_fractions, random_removal, removed_at
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions, Recovered
from roadworthy.core.types import UNLABELED, Batch, Dataset, Ids, Imputer, Labels, Maps
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.orders import most_relevant_first
from roadworthy.experiments.build import Context, imputer_for
from roadworthy.experiments.items import Fingerprints, Item, imputer_spec, map_items
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.registry import part
from roadworthy.experiments.stores.run_directory import prediction_arrays
from roadworthy.models.prediction import evaluating, labeled, predict

Arrays = Mapping[str, NDArray[Any]]
FRACTIONS = (0.1, 0.5, 0.9)


def usual_fractions(evaluated: Sequence[float]) -> tuple[float, ...]:
    """10, 50 and 90 % where these were evaluated; else the least, the middle and the largest share that were.

    >>> usual_fractions((0, 0.1, 0.3, 0.5, 0.9)), usual_fractions((0, 0.2, 0.5, 0.8)), usual_fractions((0, 0.4))
    ((0.1, 0.5, 0.9), (0.2, 0.5, 0.8), (0.4,))
    """
    there = [fraction for fraction in evaluated if 0 < fraction < 1]
    if not there or set(FRACTIONS) <= set(there):
        return FRACTIONS
    return tuple(dict.fromkeys((there[0], there[len(there) // 2], there[-1])))


@dataclass(frozen=True)
class Settings:
    """Shares of removed pixels to look at, and who reads masks: "small" or the paper's "resnet18"."""

    fractions: tuple[float, ...] = FRACTIONS
    reader: str = "small"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fractions", checked_fractions(self.fractions))
        if {0.0, 1.0} & set(self.fractions):
            raise RangeError("fractions 0 and 1: masks of nothing or of everything are all equal; give shares between")
        if self.reader not in READERS:
            raise InputError(f"reader={self.reader!r}: masks are read by one of {', '.join(READERS)}")


class Measure(NamedTuple):
    """What an item of the audit is about; "" and 0 where that does not apply."""

    name: str
    method: str = ""
    imputer: str = ""
    share: float = 0.0
    """removed most relevant first"""


@dataclass(frozen=True, eq=False)
class AuditTask:
    """One item of the audit, with the method's maps and the imputer's predictor where it needs them."""

    plan: Plan
    settings: Settings
    item: Item
    measure: Measure
    maps: NDArray[np.float32] | None = None
    weights: Arrays | None = None
    painter: Arrays | None = None
    """the weights of an imputer that was trained here"""


def audit_items(plan: Plan, prints: Fingerprints, settings: Settings) -> dict[Measure, Item]:
    """Every item of the audit, told by all that its answer depends on."""
    maps, seed = map_items(plan, prints), {"seed": plan.seeds[0], "threads": plan.threads}
    reader = READERS[settings.reader]
    reading = {"reader": settings.reader, "side": reader.side, "recipe": asdict(reader.recipe), "folds": FOLDS}
    looking = {
        "predictor": {"width": WIDTH, "learned": LEARNED, "tested": TESTED, "recipe": asdict(RECIPE)},
        "fractions": list(settings.fractions),
    }
    found: dict[Measure, dict[str, Any]] = {}
    for method in plan.maps:
        for order, fraction in product(plan.orders, settings.fractions):
            share = most_relevant_share(order, fraction)
            found[Measure("masks", method, share=share)] = {"map": maps[method].spec, "share": share, **reading}
        shape = {"map": maps[method].spec, "orders": list(plan.orders), "fractions": list(settings.fractions)}
        found[Measure("geometry", method)] = shape
    data = next(iter(maps.values())).spec["dataset"]
    for imputer in plan.imputers:
        spec = imputer_spec(plan, prints, imputer)
        found[Measure("predictor", imputer=imputer)] = {"dataset": data, "imputer": spec, **looking}
        for method in plan.maps:
            shown = {"map": maps[method].spec, "orders": list(plan.orders), "imputer": spec, **looking}
            found[Measure("recovery", method, imputer)] = shown
    return {
        measure: Item("audit", {"measure": measure.name, **spec, **seed}, measure._asdict())
        for measure, spec in found.items()
    }


def measured(task: AuditTask, context: Context) -> Arrays:
    return MEASURES[task.measure.name](task, context)


def _masks(task: AuditTask, context: Context) -> Arrays:
    ids, labels = known_labels(context)
    key = Key(task.plan.seeds[0])
    return prediction_arrays(read_share(_maps(task), task.measure.share, labels, ids, key, task.settings))


def read_share(maps: Maps, share: float, labels: Labels, ids: Ids, key: Key, settings: Settings) -> Predictions:
    """What the reader says of the masks of a method, this share removed, most relevant first."""
    removed = removed_at(most_relevant_first(maps, ids, key), share)
    return read_masks(removed, labels, ids, key.fold("masks"), READERS[settings.reader])


def _predictor(task: AuditTask, context: Context) -> Arrays:
    key, imputer = Key(task.plan.seeds[0]), imputer_for(context, task.measure.imputer, task.painter)
    learned, tested, _ = apart(context.data, key)
    network = train_predictor(imputer, learned, key.fold("predictor"))
    found = dict(recovered_patterns(network, task.measure.imputer, imputer, tested, task.settings.fractions, key))
    weights = {f"weights.{name}": tensor.numpy() for name, tensor in network.state_dict().items()}
    return {**weights, **recovered_arrays(found)}


def _recovery(task: AuditTask, context: Context) -> Arrays:
    key, imputer = Key(task.plan.seeds[0]), imputer_for(context, task.measure.imputer, task.painter)
    _, tested, rows = apart(context.data, key)
    network = predictor(tested.images.shape[1])
    weights = {name: array for name, array in (task.weights or {}).items() if name.startswith("weights.")}
    network.load_state_dict(
        {name.removeprefix("weights."): torch.from_numpy(np.array(array)) for name, array in weights.items()}
    )
    holes = method_holes(task.measure.imputer, task.measure.method, task.plan.orders, task.settings.fractions)
    ranks = {order: part("orders", order).make()(_maps(task)[rows], tested.ids, key) for order in task.plan.orders}
    return recovered_arrays(
        {
            hole: recover(network.eval(), imputer, tested, removed_at(ranks[hole.order], hole.fraction), key)
            for hole in holes
        }
    )


def _geometry(task: AuditTask, context: Context) -> Arrays:
    _, labels = known_labels(context)
    orders = {name: part("orders", name).make() for name in task.plan.orders}
    maps = {task.measure.method: lambda: _maps(task)}
    found = geometry_of(context.data, labels, maps, orders, task.settings.fractions, Key(task.plan.seeds[0]))
    sums = {
        f"{field} {one.order} {one.fraction}": getattr(one, field)
        for one in found.refills
        for field in ("missed", "spread")
    }
    return {"blur": found.blur[task.measure.method], **sums}


def geometry_from(arrays: Arrays, method: str, orders: Sequence[str], fractions: Sequence[float]) -> Geometry:
    refills = [
        Refill(method, order, fraction, *(arrays[f"{field} {order} {fraction}"] for field in ("missed", "spread")))
        for order, fraction in product(orders, fractions)
    ]
    return Geometry(tuple(refills), {method: arrays["blur"]})


MEASURES: Mapping[str, Callable[[AuditTask, Context], Arrays]] = {
    "masks": _masks,
    "predictor": _predictor,
    "recovery": _recovery,
    "geometry": _geometry,
}


def apart(data: Dataset, key: Key) -> tuple[Batch, Batch, list[int]]:
    """Images to learn from, other images to test on, and the rows of these; the same for all imputers and methods."""
    height, width = next(data.batches(1)).images.shape[-2:]
    learned, tested = rows_apart(len(data), (height, width), key.fold("predictor"))
    first, second = (next(picked(data, rows).batches(len(rows))) for rows in (learned, tested))
    return first, second, tested


def recovered_patterns(
    network: torch.nn.Module, name: str, imputer: Imputer, tested: Batch, fractions: Sequence[float], key: Key
) -> Iterator[tuple[Hole, Recovered]]:
    for hole in pattern_holes(name, fractions):
        removed = random_removal(tested, hole.masks, hole.fraction, key.fold("predictor", "test"))
        yield hole, recover(network, imputer, tested, removed, key)


def pattern_holes(imputer: str, fractions: Sequence[float]) -> list[Hole]:
    return [Hole(imputer, pattern, "", fraction) for pattern, fraction in product(MASKS, fractions)]


def method_holes(imputer: str, method: str, orders: Sequence[str], fractions: Sequence[float]) -> list[Hole]:
    return [Hole(imputer, method, order, fraction) for order, fraction in product(orders, fractions)]


def known_labels(context: Context) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and classes of all images; without a label the model's prediction stands in."""
    labels = []
    with evaluating(context.model) as device:
        for batch in context.data.batches(256):
            unknown = bool((batch.labels == UNLABELED).any())
            known = labeled(batch, predict(context.model, batch.images, device)) if unknown else batch
            labels.append(known.labels)
    return context.data.ids, torch.cat(labels)


def recovered_arrays(found: Mapping[Hole, Recovered]) -> dict[str, NDArray[Any]]:
    return {_name(hole, field): array for hole, one in found.items() for field, array in one._asdict().items()}


def recovered_from(arrays: Arrays, holes: Sequence[Hole]) -> dict[Hole, Recovered]:
    return {hole: Recovered(*(arrays[_name(hole, field)] for field in Recovered._fields)) for hole in holes}


def _name(hole: Hole, field: str) -> str:
    return f"{field} {hole.masks if not hole.order else hole.order} {hole.fraction}"


def _maps(task: AuditTask) -> torch.Tensor:
    if task.maps is None:
        raise InputError(f"{task.measure.name}: the maps of {task.measure.method!r} are needed")
    return torch.from_numpy(task.maps)
