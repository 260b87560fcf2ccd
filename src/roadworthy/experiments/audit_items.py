"""The leakage audit as items: what is measured, and the tables that follow.

masks: a classifier of one method's masks at one fraction · detector: a detector of imputed pixels, one per imputer ·
detection: that detector on the masks of one method · geometry: γ of one method's masks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from roadworthy.audit.debiasing import linear_leads
from roadworthy.audit.geometry import Geometry, Reconstruction, geometry_of
from roadworthy.audit.mask_detection import (
    RECIPE,
    TEST_PIXELS,
    TRAIN_PIXELS,
    WIDTH,
    detect,
    mask_detector,
    train_mask_detector,
    train_test_images,
)
from roadworthy.audit.mask_information import FOLDS, MASK_CLASSIFIERS, classify_masks
from roadworthy.audit.tables import DetectionSetting, audit_tables, most_relevant_share
from roadworthy.core.errors import InputError, RangeError
from roadworthy.core.masks import MASKS, checked_fractions, random_removal, removed_at
from roadworthy.core.random import Key
from roadworthy.core.results import Copy, MaskDetection, Predictions
from roadworthy.core.types import Dataset, Ids, Labels, Maps
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.orders import most_relevant_first, rank
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import Arrays, Block, Item
from roadworthy.experiments.recorded import as_predictions, prediction_arrays
from roadworthy.experiments.stores import Store
from roadworthy.experiments.worker import Computed, Inputs, Worker, block_of, of_kind

FRACTIONS = (0.1, 0.5, 0.9)
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "masks": ("masks",),
    "detection": ("detector", "detection"),
    "geometry": ("geometry",),
}
"""What an audit can ask, and the measures that answer it."""


def default_fractions(evaluated: Sequence[float]) -> tuple[float, ...]:
    """10, 50 and 90 % where these were evaluated; else the smallest, the middle and the largest that were.

    >>> default_fractions((0, 0.1, 0.3, 0.5, 0.9)), default_fractions((0, 0.2, 0.5, 0.8)), default_fractions((0, 0.4))
    ((0.1, 0.5, 0.9), (0.2, 0.5, 0.8), (0.4,))
    """
    inner = [fraction for fraction in evaluated if 0 < fraction < 1]
    if not inner or set(FRACTIONS) <= set(inner):
        return FRACTIONS
    return tuple(dict.fromkeys((inner[0], inner[len(inner) // 2], inner[-1])))


@dataclass(frozen=True)
class AuditSettings:
    """Fractions of removed pixels to look at, and the classifier of masks: "small" or the paper's "resnet18"."""

    fractions: tuple[float, ...] = FRACTIONS
    classifier: str = "small"
    questions: tuple[str, ...] = tuple(QUESTIONS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fractions", checked_fractions(self.fractions))
        if {0.0, 1.0} & set(self.fractions):
            raise RangeError("fractions 0 and 1: masks of nothing or of everything are all equal; give values between")
        if self.classifier not in MASK_CLASSIFIERS:
            raise InputError(f"classifier={self.classifier!r}: choose one of {', '.join(MASK_CLASSIFIERS)}")
        if unknown := [name for name in self.questions if name not in QUESTIONS]:
            raise InputError(f"question {unknown[0]!r}: choose from {', '.join(QUESTIONS)}")


class Measure(NamedTuple):
    """What an item of the audit is about; "" and 0 where that does not apply."""

    name: str
    method: str = ""
    imputer: str = ""
    fraction: float = 0.0
    """removed most relevant first"""


@dataclass(frozen=True, eq=False)
class AuditDesign:
    """The audit of an experiment on the images that it evaluated."""

    design: Design
    blocks: tuple[Block, ...]
    copies: Mapping[str, Copy]
    settings: AuditSettings
    _items: dict[Measure, Item] = field(default_factory=dict, init=False, repr=False)

    @property
    def methods(self) -> dict[str, Copy | None]:
        """All methods with maps of their own: inverted copies have those of their method."""
        blurred = {name: copy for name, copy in self.copies.items() if copy.how == "blurred"}
        return {**dict.fromkeys(self.design.base_methods), **blurred}

    @property
    def orders(self) -> list[str]:
        return list(dict.fromkeys(setting.order for setting in self.design.settings))

    @property
    def imputers(self) -> list[str]:
        return list(dict.fromkeys(setting.imputer for setting in self.design.settings))

    def measures(self) -> list[Measure]:
        names = {name for question in self.settings.questions for name in QUESTIONS[question]}
        found: dict[Measure, None] = {}
        for method in self.methods:
            for order, fraction in product(self.orders, self.settings.fractions):
                found[Measure("masks", method, fraction=most_relevant_share(order, fraction))] = None
            found[Measure("geometry", method)] = None
        for imputer in self.imputers:
            found[Measure("detector", imputer=imputer)] = None
            found |= dict.fromkeys(Measure("detection", method, imputer) for method in self.methods)
        return [measure for measure in found if measure.name in names]

    def items(self) -> dict[Measure, Item]:
        return {measure: self.item(measure) for measure in self.measures()}

    def item(self, measure: Measure) -> Item:
        if measure not in self._items:
            self._items[measure] = self._item(measure)
        return self._items[measure]

    def _item(self, measure: Measure) -> Item:
        design, settings = self.design, self.settings
        classifier = MASK_CLASSIFIERS[settings.classifier]
        fractions = {"fractions": list(settings.fractions)}
        orders = {"orders": {name: design.orders[name] for name in self.orders}}
        training = {
            "width": WIDTH,
            "learned": TRAIN_PIXELS,
            "tested": TEST_PIXELS,
            "recipe": RECIPE.spec,
            **fractions,
        }
        specs: dict[str, dict[str, Any]] = {
            "masks": {
                "fraction": measure.fraction,
                "classifier": settings.classifier,
                "side": classifier.side,
                "recipe": classifier.recipe.spec,
                "folds": FOLDS,
            },
            "geometry": {**orders, **fractions},
            "detector": {"imputer": design.imputers.get(measure.imputer), **training},
            "detection": {"imputer": design.imputers.get(measure.imputer), **orders, **training},
        }
        needs = [design.baseline(block) for block in self.blocks]
        if measure.method:
            copy = self.methods[measure.method]
            needs += [design.map_item(measure.method, block, copy) for block in self.blocks]
        if measure.imputer:
            needs += design.imputer_item(measure.imputer)
        if measure.name == "detection":
            needs.append(self.item(Measure("detector", imputer=measure.imputer)))
        label = {**measure._asdict(), "orders": self.orders, **fractions, "classifier": settings.classifier}
        spec = {"measure": measure.name, "seed": design.seeds[0], "threads": design.threads, **specs[measure.name]}
        return Item("audit", spec, label, tuple(needs))


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Subject(NamedTuple):
    """The images that were evaluated, in the order of their rows, with known labels."""

    data: Dataset
    ids: Ids
    labels: Labels
    key: Key


def measure(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None) -> Computed:
    for item in items:
        yield item, MEASURES[item.spec["measure"]](worker, item, inputs)


def _subject(worker: Worker, item: Item, inputs: Inputs) -> Subject:
    baselines = of_kind(item, "baseline")
    rows = [row for need in baselines for row in block_of(need).rows]
    order = np.argsort(rows)
    known = Predictions.join([as_predictions(inputs[need.id]) for need in baselines]).take(order.tolist())
    data = picked(worker.experiment.data, sorted(rows))
    return Subject(data, torch.from_numpy(known.ids), torch.from_numpy(known.labels), Key(item.spec["seed"]))


def _maps(item: Item, inputs: Inputs) -> Maps:
    needs = of_kind(item, "maps")
    rows = [row for need in needs for row in block_of(need).rows]
    return torch.from_numpy(np.concatenate([inputs[need.id]["maps"] for need in needs])[np.argsort(rows)])


def _masks(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject = _subject(worker, item, inputs)
    ranks = most_relevant_first(_maps(item, inputs), subject.ids, subject.key)
    removed = removed_at(ranks, item.label["fraction"])
    classifier = MASK_CLASSIFIERS[item.label["classifier"]]
    return prediction_arrays(
        classify_masks(removed, subject.labels, subject.ids, subject.key.fold("masks"), classifier)
    )


def _detector(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, imputer = _subject(worker, item, inputs), worker.imputer(item.label["imputer"], item, inputs)
    train, tested, _ = train_test_images(subject.data, subject.key)
    network = train_mask_detector(imputer, train, subject.key.fold("predictor"))
    found = {}
    for setting in _random_masks(item.label["imputer"], item.label["fractions"]):
        removed = random_removal(tested, setting.masks, setting.fraction, subject.key.fold("predictor", "test"))
        found[setting] = detect(network, imputer, tested, removed, subject.key)
    weights = {f"weights.{name}": tensor.numpy() for name, tensor in network.state_dict().items()}
    return {**weights, **_detection_arrays(found)}


def _detection(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, imputer = _subject(worker, item, inputs), worker.imputer(item.label["imputer"], item, inputs)
    _, tested, rows = train_test_images(subject.data, subject.key)
    network = mask_detector(tested.images.shape[1])
    arrays = inputs[of_kind(item, "audit")[0].id]
    network.load_state_dict(
        {
            name.removeprefix("weights."): torch.from_numpy(np.array(array))
            for name, array in arrays.items()
            if name.startswith("weights.")
        }
    )
    ranks = rank(_orders(worker, item), _maps(item, inputs)[rows], tested.ids, subject.key)
    found = {}
    for setting in _method_masks(item.label):
        removed = removed_at(ranks[setting.order], setting.fraction)
        found[setting] = detect(network.eval(), imputer, tested, removed, subject.key)
    return _detection_arrays(found)


def _geometry(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, method = _subject(worker, item, inputs), item.label["method"]
    maps = {method: lambda: _maps(item, inputs)}
    found = geometry_of(subject.data, subject.labels, maps, _orders(worker, item), item.label["fractions"], subject.key)
    sums = {
        f"{name} {row.order} {row.fraction}": getattr(row, name)
        for row in found.reconstructions
        for name in ("residual", "total")
    }
    return {"blur": found.blur[method], **sums}


MEASURES: Mapping[str, Callable[[Worker, Item, Inputs], Arrays]] = {
    "masks": _masks,
    "detector": _detector,
    "detection": _detection,
    "geometry": _geometry,
}


def _orders(worker: Worker, item: Item) -> dict[str, Any]:
    return {name: worker.experiment.orders[name] for name in item.label["orders"]}


def _random_masks(imputer: str, fractions: Sequence[float]) -> list[DetectionSetting]:
    return [DetectionSetting(imputer, pattern, "", fraction) for pattern, fraction in product(MASKS, fractions)]


def _method_masks(label: Mapping[str, Any]) -> list[DetectionSetting]:
    pairs = product(label["orders"], label["fractions"])
    return [DetectionSetting(label["imputer"], label["method"], order, fraction) for order, fraction in pairs]


def _detection_arrays(found: Mapping[DetectionSetting, MaskDetection]) -> dict[str, NDArray[Any]]:
    return {_name(setting, name): array for setting, row in found.items() for name, array in row._asdict().items()}


def _name(setting: DetectionSetting, field_name: str) -> str:
    return f"{field_name} {setting.order or setting.masks} {setting.fraction}"


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def tables_of(
    items: Iterable[Item], store: Store, curves: pd.DataFrame | None, chance: float
) -> dict[str, pd.DataFrame]:
    """masks, detection, geometry, leads and conclusions, from the items that are stored."""
    read: dict[tuple[str, float], Predictions] = {}
    detected: dict[DetectionSetting, MaskDetection] = {}
    shapes: list[Geometry] = []
    orders: dict[str, None] = {}
    fractions: dict[float, None] = {}
    for item in items:
        arrays, label, kind = store.read(item), item.label, item.spec["measure"]
        orders |= dict.fromkeys(label["orders"])
        fractions |= dict.fromkeys(label["fractions"])
        if kind == "masks":
            read[label["method"], label["fraction"]] = as_predictions(arrays)
        elif kind == "detector":
            detected |= dict(_detections(arrays, _random_masks(label["imputer"], label["fractions"])))
        elif kind == "detection":
            detected |= dict(_detections(arrays, _method_masks(label)))
        else:
            shapes.append(_geometry_from(arrays, label))
    tables = audit_tables(read, detected, shapes, list(orders), list(fractions))
    if curves is not None and len(tables["geometry"]):
        tables["leads"] = linear_leads(curves, tables["geometry"], chance)
    return tables


def _detections(
    arrays: Arrays, settings: Iterable[DetectionSetting]
) -> Iterator[tuple[DetectionSetting, MaskDetection]]:
    for setting in settings:
        yield setting, MaskDetection(*(arrays[_name(setting, name)] for name in MaskDetection._fields))


def _geometry_from(arrays: Arrays, label: Mapping[str, Any]) -> Geometry:
    reconstructions = [
        Reconstruction(
            label["method"], order, fraction, *(arrays[f"{name} {order} {fraction}"] for name in ("residual", "total"))
        )
        for order, fraction in product(label["orders"], label["fractions"])
    ]
    return Geometry(tuple(reconstructions), {label["method"]: arrays["blur"]})
