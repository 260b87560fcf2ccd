"""The leakage audit as items: what is measured, and the tables that follow.

masks: a classifier of one method's masks at one fraction · curve: the same, trained on fewer masks · detector: a
detector of imputed pixels, one per imputer · detection: that detector on the masks of one method · leak: a reader of
images that were imputed with the masks of others · geometry: γ of one method's masks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from roadworthy.audit.debiasing import linear_leads
from roadworthy.audit.geometry import Geometry, Reconstruction
from roadworthy.audit.leakage import ROUNDS
from roadworthy.audit.mask_detection import RECIPE, TEST_PIXELS, TRAIN_PIXELS, WIDTH
from roadworthy.audit.mask_information import MASK_CLASSIFIERS
from roadworthy.audit.reader import CURVE, FOLDS, PERMUTATIONS, RIDGE, Reading
from roadworthy.audit.tables import DetectionSetting, LeakageSetting, audit_tables, most_relevant_share
from roadworthy.core.errors import InputError, RangeError
from roadworthy.core.masks import checked_fractions
from roadworthy.core.results import Copy, MaskDetection, Predictions
from roadworthy.experiments.audit_measures import array_name, method_settings, random_settings
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import Arrays, Block, Item
from roadworthy.experiments.recorded import as_predictions
from roadworthy.experiments.stores import Store

FRACTIONS = (0.1, 0.5, 0.9)
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "leakage": ("detector", "leak"),
    "masks": ("masks", "curve"),
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
                for name in ("masks", "curve"):
                    found[Measure(name, method, fraction=most_relevant_share(order, fraction))] = None
            found[Measure("geometry", method)] = None
        for imputer in self.imputers:
            found[Measure("detector", imputer=imputer)] = None
            for name in ("detection", "leak"):
                found |= dict.fromkeys(Measure(name, method, imputer) for method in self.methods)
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
        masks = {
            "fraction": measure.fraction,
            "classifier": settings.classifier,
            "side": classifier.side,
            "recipe": classifier.recipe.spec,
            "folds": FOLDS,
        }
        reader = {"folds": FOLDS, "rounds": ROUNDS, "permutations": PERMUTATIONS, "ridge": RIDGE, "curve": list(CURVE)}
        specs: dict[str, dict[str, Any]] = {
            "masks": masks,
            "curve": {**masks, "curve": list(CURVE)},
            "leak": {"imputer": design.imputers.get(measure.imputer), **orders, **fractions, "reader": reader},
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
        if measure.name in ("detection", "leak"):
            needs.append(self.item(Measure("detector", imputer=measure.imputer)))
        label = {**measure._asdict(), "orders": self.orders, **fractions, "classifier": settings.classifier}
        spec = {"measure": measure.name, "seed": design.seeds[0], "threads": design.threads, **specs[measure.name]}
        spec |= design.unit_spec
        return Item("audit", spec, label, tuple(needs))


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def tables_of(
    items: Iterable[Item], store: Store, curves: pd.DataFrame | None, chance: float
) -> dict[str, pd.DataFrame]:
    """masks, leakage, detection, geometry, leads and conclusions, from the items that are stored."""
    masks: dict[tuple[str, float], list[Predictions]] = {}
    fewer: dict[tuple[str, float], list[Predictions]] = {}
    readings: dict[LeakageSetting, Reading] = {}
    detected: dict[DetectionSetting, MaskDetection] = {}
    shapes: list[Geometry] = []
    orders: dict[str, None] = {}
    fractions: dict[float, None] = {}
    for item in items:
        arrays, label, kind = store.read(item), item.label, item.spec["measure"]
        orders |= dict.fromkeys(label["orders"])
        fractions |= dict.fromkeys(label["fractions"])
        if kind == "masks":
            masks[label["method"], label["fraction"]] = [as_predictions(arrays)]
        elif kind == "curve":
            fewer[label["method"], label["fraction"]] = _curve_from(arrays)
        elif kind == "leak":
            readings |= _readings_from(arrays, label)
        elif kind == "detector":
            detected |= dict(_detections(arrays, random_settings(label["imputer"], label["fractions"])))
        elif kind == "detection":
            detected |= dict(_detections(arrays, method_settings(label)))
        else:
            shapes.append(_geometry_from(arrays, label))
    with_curves = {setting: [*fewer.get(setting, []), *last] for setting, last in masks.items()}
    tables = audit_tables(with_curves, readings, detected, shapes, list(orders), list(fractions))
    if curves is not None and len(tables["geometry"]):
        tables["leads"] = linear_leads(curves, tables["geometry"], chance)
    return tables


def _curve_from(arrays: Arrays) -> list[Predictions]:
    numbers = sorted({name.rpartition(" ")[2] for name in arrays})
    return [
        as_predictions(
            {name.removesuffix(f" {number}"): array for name, array in arrays.items() if name.endswith(f" {number}")}
        )
        for number in numbers
    ]


def _readings_from(arrays: Arrays, label: Mapping[str, Any]) -> dict[LeakageSetting, Reading]:
    return {
        LeakageSetting(setting.masks, setting.order, setting.imputer, setting.fraction): Reading(
            *(arrays[array_name(setting, name)] for name in Reading._fields)
        )
        for setting in method_settings(label)
    }


def _detections(
    arrays: Arrays, settings: Iterable[DetectionSetting]
) -> Iterator[tuple[DetectionSetting, MaskDetection]]:
    for setting in settings:
        yield setting, MaskDetection(*(arrays[array_name(setting, name)] for name in MaskDetection._fields))


def _geometry_from(arrays: Arrays, label: Mapping[str, Any]) -> Geometry:
    reconstructions = [
        Reconstruction(
            label["method"], order, fraction, *(arrays[f"{name} {order} {fraction}"] for name in ("residual", "total"))
        )
        for order, fraction in product(label["orders"], label["fractions"])
    ]
    return Geometry(tuple(reconstructions), {label["method"]: arrays["blur"]})
