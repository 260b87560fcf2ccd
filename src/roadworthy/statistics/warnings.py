"""Warnings in plain language, from the tables and from properties of images, maps and seeds."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.core.results import Copy, Point
from roadworthy.statistics.curves import PER_IMAGE_NOISE, PointPredictions
from roadworthy.statistics.early_stopping import StoppingRule
from roadworthy.statistics.intervals import CONFIDENCE, share_interval
from roadworthy.statistics.plain_accuracy import plain_accuracy
from roadworthy.statistics.raised_accuracy import RaisedAccuracy, raised_accuracies
from roadworthy.statistics.scores import leading_score, table_blocks

_ORDERS = {"morf": "MoRF", "lerf": "LeRF"}
FEW_IMAGES = 50
FEW_SEEDS = 3
MANY_TIES = 0.25

COLUMNS = ["kind", "method", "imputer", "evaluator", "model", "units", "text"]
_PLACE = ("imputer", "evaluator", "model", "units")


class Ties(NamedTuple):
    """Ties in a method's maps, averaged over images."""

    tied: float
    """proportion of pixels, or units, with the same value as another of the image"""
    constant: float
    """proportion of images whose map is constant"""


def percent(share: float, digits: int = 0) -> str:
    """
    >>> percent(0.926, 1), percent(0.3)
    ('92.6 %', '30 %')
    """
    return f"{100 * share:.{digits}f} %"


class _Warning(NamedTuple):
    """What is left empty is not specific: the warning applies to all of them."""

    kind: str
    text: str
    method: str = ""
    imputer: str = ""
    evaluator: str = ""
    model: str = ""
    units: str = ""


def warnings(
    predictions: PointPredictions,
    ranking: pd.DataFrame,
    pairwise: pd.DataFrame,
    ties: Mapping[str, Ties] | None = None,
    classes: int = 0,
    copies: Mapping[str, Copy] = MappingProxyType({}),
    target: str = "label",
    confidence: float = CONFIDENCE,
    stopping: StoppingRule | None = None,
) -> pd.DataFrame:
    """One row per warning.

    kind: of the warning · method, imputer, evaluator, model, units: what it is about, "" for all · text: the warning.

    `ranking` and `pairwise` are the tables of the same predictions (`pairwise` may be empty). `ties`: by method, where
    the maps are known. `classes`: how many the model has, 0 if unknown. `copies`: controls made from a method's maps.
    `target`: the class that was explained. `confidence`: of the tables. `stopping`: the rule of early stopping.
    """
    controls = set(ranking.loc[ranking["control"], "method"])
    rows = [
        *([] if stopping else _few_images(predictions)),  # its intervals hold at any number of images
        *_near_chance(predictions, classes, confidence, stopping),
        *_removal_raises_accuracy(predictions, raised_accuracies(predictions, controls, confidence, stopping), target),
        *_few_seeds(predictions),
        *_missing_orders(ranking),
        *_controls(pairwise, copies),
        *_blurred_copies(pairwise, copies),
        *_tied_maps(ranking, ties or {}),
    ]
    return pd.DataFrame(rows, columns=_Warning._fields)[COLUMNS]


def _few_images(predictions: PointPredictions) -> list[_Warning]:
    images = len(next(iter(predictions.values())))
    if images >= FEW_IMAGES:
        return []
    number = "1 image was" if images == 1 else f"{images} images were"
    text = f"Only {number} evaluated: intervals from fewer than {FEW_IMAGES} images are rough."
    return [_Warning("few images", text)]


def _near_chance(
    predictions: PointPredictions, classes: int, confidence: float, stopping: StoppingRule | None
) -> list[_Warning]:
    labels, counts = np.unique(next(iter(predictions.values())).labels, return_counts=True)
    # The accuracy of always predicting the most frequent class. With a single class that would always be 100 %.
    chance = counts.max() / counts.sum() if len(labels) > 1 else 1 / max(classes, 2)
    table = plain_accuracy(predictions, confidence, stopping)
    varying, rows = _varying_points(predictions), []
    for row in table[table["low"] <= chance].drop_duplicates(["evaluator", "model"]).to_dict("records"):
        place = {"evaluator": row["evaluator"], "model": row["model"]}
        where, accuracy = _where(place, varying), row["accuracy"]
        text = f"Before removal, the accuracy{where} is {percent(accuracy)}"
        if _clear_on_more_images(accuracy, chance, confidence):
            images = "1 image" if row["images"] == 1 else f"{row['images']} images"
            text += f" on {images}: too few to show that it is above chance ({percent(chance)})."
            rows.append(_Warning("few images", text, **place))
            continue
        text += (
            f", not clearly above chance ({percent(chance)}): there is hardly any accuracy to lose. "
            "Check the labels and the normalization."
        )
        rows.append(_Warning("near chance", text, **place))
    return rows


def _clear_on_more_images(accuracy: float, chance: float, confidence: float) -> bool:
    """The same accuracy would be clearly above chance on a moderate number of images."""
    hits = np.arange(FEW_IMAGES) < round(accuracy * FEW_IMAGES)
    return share_interval(hits[None].astype(np.float64), confidence)[0] > chance


_WHY_RAISED = {
    "label": "Maps of the true label know it, and removing pixels by them adds label information, which the scores "
    'reward: compare again with target="prediction".',
    "prediction": "The maps explain the predictions and know no label, so this is no label information: the accuracy "
    "is against the labels, and the removed pixels misled the model.",
}


def _removal_raises_accuracy(
    predictions: PointPredictions, raised: Sequence[RaisedAccuracy], target: str
) -> list[_Warning]:
    varying, rows = _varying_points(predictions), []
    for worst in raised:
        more = len(worst.methods) - 1
        others = f"; so it is for {more} more method{'s' if more > 1 else ''}" if more else ""
        text = (
            f"Removing pixels raises the accuracy{_where(worst.key._asdict(), varying)}: {worst.method}, "
            f"{_ORDERS.get(worst.order, worst.order)}, {percent(worst.accuracy, 1)} after removing "
            f"{percent(worst.fraction)}, {percent(worst.plain, 1)} before{others}. "
        )
        wrong_sign = "Its most relevant pixels speak against the class: check the sign of the maps."
        text += wrong_sign if worst.order == "morf" else _WHY_RAISED[target]
        rows.append(_Warning("removal raises accuracy", text, ", ".join(worst.methods), **worst.key._asdict()))
    return rows


def _few_seeds(predictions: PointPredictions) -> list[_Warning]:
    seeds: dict[tuple[str, str, str], set[int]] = {}
    for point in predictions:
        seeds.setdefault((point.evaluator, point.model, point.units), set()).add(point.seed)
    varying, rows = _varying_points(predictions), []
    for (evaluator, model, units), used in seeds.items():
        if evaluator in PER_IMAGE_NOISE or len(used) >= FEW_SEEDS:
            continue
        where = _where({"model": model, "units": units}, varying)
        number, known = ("1 seed", "unknown") if len(used) == 1 else (f"{len(used)} seeds", "poorly known")
        text = f"{evaluator}{where} was run with {number}: the variance between runs is {known}."
        rows.append(_Warning("few seeds", text, evaluator=evaluator, model=model, units=units))
    return rows


def _missing_orders(ranking: pd.DataFrame) -> list[_Warning]:
    varying, rows = _varying_columns(ranking), []
    for key, block in table_blocks(ranking).items():
        for method in block.loc[block[leading_score(block)].isna(), "method"]:
            where = _where(key._asdict(), varying)
            text = f"{method} was not evaluated in all orders{where}, so it is not ranked there."
            rows.append(_Warning("gap", text, method, **key._asdict()))
    return rows


def _tied_maps(ranking: pd.DataFrame, ties: Mapping[str, Ties]) -> list[_Warning]:
    rows, thing = [], "pixel" if (ranking["units"] == Point._field_defaults["units"]).all() else "unit"
    for method in (name for name in ranking.loc[~ranking["control"], "method"].unique() if name in ties):
        tied, constant = ties[method]
        if constant > 0:
            text = (
                f"{method}: {percent(constant)} of its maps are constant; on those images it is no better than random."
            )
            rows.append(_Warning("constant maps", text, method))
        if tied > MANY_TIES and constant < 1:
            text = (
                f"{method}: {percent(tied)} of the {thing}s have the same value as another {thing} of the image; "
                "the order among them is random."
            )
            rows.append(_Warning("ties", text, method))
    return rows


class _ControlPair(NamedTuple):
    """A method and a control, compared on the leading score."""

    control: str
    method: str
    lost: bool
    """the control is clearly better"""
    won: bool
    """the method is clearly better"""


def _control_pairs(pairwise: pd.DataFrame) -> list[_ControlPair]:
    columns = (pairwise[name].tolist() for name in ("method_a", "method_b", "control_a", "control_b", "low"))
    return [
        _ControlPair(a, b, low > 0, False) if control_a else _ControlPair(b, a, False, low > 0)
        for a, b, control_a, control_b, low in zip(*columns, strict=True)
        if control_a != control_b
    ]


def _controls(pairwise: pd.DataFrame, copies: Mapping[str, Copy]) -> list[_Warning]:
    """Controls that clearly beat a method, and those that the method does not clearly beat.

    Of the blurred and inverted copies only a method's own count: those of a good method may well beat a weak one.
    """
    varying, rows = _varying_columns(pairwise), []
    for key, block in table_blocks(pairwise).items():
        where, pairs = _where(key._asdict(), varying), _control_pairs(block)
        blind = [pair for pair in pairs if pair.control not in copies]
        for controls, methods in _by_controls([pair for pair in blind if pair.lost]):
            text = f"Clearly beaten by {controls}{where}: {methods}. Controls do not use the model."
            rows.append(_Warning("beaten by a control", text, methods, **key._asdict()))
        for controls, methods in _by_controls([pair for pair in blind if not pair.lost and not pair.won]):
            text = f"Not clearly better than {controls}{where}: {methods}."
            rows.append(_Warning("not above a control", text, methods, **key._asdict()))
        for control, method, lost, _ in pairs:
            if lost and copies.get(control) == Copy(method, "inverted"):
                text = f"The inverted copy of {method} clearly beats {method}{where}: check the sign of its maps."
                rows.append(_Warning("beaten by its inverse", text, method, **key._asdict()))
    return rows


def _by_controls(pairs: Sequence[_ControlPair]) -> list[tuple[str, str]]:
    """Controls and the methods paired with exactly those controls."""
    controls = {
        pair.method: tuple(sorted(other.control for other in pairs if other.method == pair.method)) for pair in pairs
    }
    return [
        (_control_names(names), ", ".join(method for method, others in controls.items() if others == names))
        for names in dict.fromkeys(controls.values())
    ]


def _control_names(names: Sequence[str]) -> str:
    return f"the control {names[0]}" if len(names) == 1 else f"the controls {', '.join(names[:-1])} and {names[-1]}"


def _blurred_copies(pairwise: pd.DataFrame, copies: Mapping[str, Copy]) -> list[_Warning]:
    varying = _varying_columns(pairwise)
    return [
        _Warning(
            "blurred copy wins",
            f"The blurred copy of {method} clearly beats {method}{_where(key._asdict(), varying)}, although blurring "
            "adds no information: smoother maps of it are favored here.",
            method,
            **key._asdict(),
        )
        for key, block in table_blocks(pairwise).items()
        for control, method, lost, _ in _control_pairs(block)
        if lost and copies.get(control) == Copy(method, "blurred")
    ]


def _varying_columns(table: pd.DataFrame) -> list[str]:
    return [field for field in _PLACE if table[field].nunique() > 1]


def _varying_points(predictions: PointPredictions) -> list[str]:
    return [field for field in _PLACE if len({getattr(point, field) for point in predictions}) > 1]


def _where(place: Mapping[str, str], varying: Collection[str]) -> str:
    """` (fixed, retrain)`: the parts of the place that vary in the study."""
    names = [place[field] for field in _PLACE if field in varying and field in place]
    return f" ({', '.join(names)})" if names else ""
