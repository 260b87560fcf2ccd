"""What to beware of, in plain language: from the tables, and from facts about images, maps and seeds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.statistics.curves import PER_IMAGE_NOISE, PointPredictions
from roadworthy.statistics.intervals import share_interval

FEW_IMAGES = 50
FEW_SEEDS = 3
MANY_TIES = 0.25

COLUMNS = ["kind", "method", "imputer", "evaluator", "text"]


class Ties(NamedTuple):
    """Of a method's maps, means over images."""

    tied: float
    """share of the pixels whose score another pixel of the image has too"""
    constant: float
    """share of the images whose score is the same everywhere"""


def warnings(
    predictions: PointPredictions,
    ranking: pd.DataFrame,
    pairs: pd.DataFrame,
    ties: Mapping[str, Ties] | None = None,
    classes: int = 0,
) -> pd.DataFrame:
    """kind: of the warning · method, imputer, evaluator: whom it is about, "" for all · text: what to beware of.

    `ranking` and `pairs` are the tables of the same predictions (`pairs` may be empty); `ties` is known where the maps
    were at hand; `classes` is how many the model knows, 0 for unknown.
    """
    rows = [
        *_few_images(predictions),
        *_near_chance(predictions, classes),
        *_few_seeds(predictions),
        *_gaps(ranking),
        *_against_controls(pairs),
        *_blurred(pairs),
        *_maps(ranking, ties or {}),
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


Row = tuple[str, str, str, str, str]


def _few_images(predictions: PointPredictions) -> list[Row]:
    images = len(next(iter(predictions.values())))
    if images >= FEW_IMAGES:
        return []
    return [
        ("few images", "", "", "", f"Only {images} images were evaluated: read intervals below {FEW_IMAGES} as rough.")
    ]


def _near_chance(predictions: PointPredictions, classes: int) -> list[Row]:
    rows: list[Row] = []
    for evaluator in dict.fromkeys(point.evaluator for point in predictions):
        plain = [one for point, one in predictions.items() if point.evaluator == evaluator and point.fraction == 0]
        if not plain:
            continue
        labels, counts = np.unique(plain[0].labels, return_counts=True)
        # Who always says the commonest class is right that often. With one class alone that would always be so.
        chance = counts.max() / counts.sum() if len(labels) > 1 else 1 / max(classes, 2)
        hits = np.mean([one.correct for one in plain], axis=0)[None]
        if share_interval(hits)[0] <= chance:
            text = (
                f"Before anything is removed the accuracy is {hits.mean():.0%}, not clearly above chance "
                f"({chance:.0%}): there is hardly anything to lose. Check the labels and the normalization."
            )
            rows.append(("near chance", "", "", evaluator, text))
    return rows


def _few_seeds(predictions: PointPredictions) -> list[Row]:
    seeds: dict[str, set[int]] = {}
    for point in predictions:
        seeds.setdefault(point.evaluator, set()).add(point.seed)
    return [
        (
            "few seeds",
            "",
            "",
            evaluator,
            f"{evaluator} was run with {_count(len(found), 'seed')}: "
            + ("how much runs differ is unknown." if len(found) == 1 else "how much runs differ is hardly known."),
        )
        for evaluator, found in seeds.items()
        if evaluator not in PER_IMAGE_NOISE and len(found) < FEW_SEEDS
    ]


def _gaps(ranking: pd.DataFrame) -> list[Row]:
    rows: list[Row] = []
    for (evaluator, imputer), block in _blocks(ranking):
        lead = lead_of(block)
        for method in block.loc[block[lead].isna(), "method"]:
            text = f"{method} was not evaluated in all orders{_where(ranking, imputer, evaluator)}, so it has no rank there."
            rows.append(("gap", method, imputer, evaluator, text))
    return rows


def _maps(ranking: pd.DataFrame, ties: Mapping[str, Ties]) -> list[Row]:
    rows: list[Row] = []
    for method in (name for name in ranking.loc[~ranking["control"], "method"].unique() if name in ties):
        found = ties[method]
        if found.constant > 0:
            text = f"{method}: {found.constant:.0%} of its maps are constant; there it is as good as random."
            rows.append(("constant maps", method, "", "", text))
        if found.tied > MANY_TIES and found.constant < 1:
            text = (
                f"{method}: {found.tied:.0%} of the pixels share their score with another pixel of the image; "
                "among them the order is drawn at random."
            )
            rows.append(("ties", method, "", "", text))
    return rows


class _Meeting(NamedTuple):
    """A method and a control on one leading score."""

    control: str
    method: str
    lost: bool
    """the control is clearly better"""
    won: bool
    """the method is clearly better"""


def _meetings(pairs: pd.DataFrame) -> list[_Meeting]:
    return [
        _Meeting(a, b, low > 0, False) if control_a else _Meeting(b, a, False, low > 0)
        for a, b, control_a, control_b, low in zip(
            *(pairs[name].tolist() for name in ("method_a", "method_b", "control_a", "control_b", "low")), strict=True
        )
        if control_a != control_b
    ]


def _against_controls(pairs: pd.DataFrame) -> list[Row]:
    """Controls that clearly beat a method, and those that it does not clearly beat.

    Of blurred and inverted copies only a method's own matter: those of a leader may well beat a weak method.
    """
    rows: list[Row] = []
    for (evaluator, imputer), block in _blocks(pairs):
        where, met = _where(pairs, imputer, evaluator), _meetings(block)
        plain = [one for one in met if not one.control.endswith((" blurred", " inverted"))]
        for controls, methods in _by_controls([one for one in plain if one.lost]):
            text = f"Clearly beaten by {controls}{where}: {methods}. Controls know nothing of the model."
            rows.append(("beaten by a control", methods, imputer, evaluator, text))
        for controls, methods in _by_controls([one for one in plain if not one.lost and not one.won]):
            text = f"Not clearly ahead of {controls}{where}: {methods}."
            rows.append(("not above a control", methods, imputer, evaluator, text))
        for control, method, lost, _ in met:
            if lost and control == f"{method} inverted":
                text = f"{method} upside down clearly beats {method}{where}: check the sign of its scores."
                rows.append(("beaten by its inverse", method, imputer, evaluator, text))
    return rows


def _by_controls(met: Sequence[_Meeting]) -> list[tuple[str, str]]:
    """Methods that met the same controls, in one breath."""
    controls = {one.method: tuple(sorted(other.control for other in met if other.method == one.method)) for one in met}
    return [
        (_controls(names), ", ".join(method for method, those in controls.items() if those == names))
        for names in dict.fromkeys(controls.values())
    ]


def _controls(names: Sequence[str]) -> str:
    return f"the control {names[0]}" if len(names) == 1 else f"the controls {', '.join(names[:-1])} and {names[-1]}"


def _blurred(pairs: pd.DataFrame) -> list[Row]:
    return [
        (
            "blurred copy wins",
            method,
            imputer,
            evaluator,
            f"Blurred, {method} clearly beats itself{_where(pairs, imputer, evaluator)}, though blur adds no information: "
            "smooth maps are favored here.",
        )
        for (evaluator, imputer), block in _blocks(pairs)
        for control, method, lost, _ in _meetings(block)
        if lost and control == f"{method} blurred"
    ]


def lead_of(ranking: pd.DataFrame) -> str:
    """The score that decides a ranking."""
    return next(name for name in ("srg", "morf", "lerf") if name in ranking and ranking[name].notna().any())


def _blocks(table: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    return [
        ((str(name[0]), str(name[1])), block) for name, block in table.groupby(["evaluator", "imputer"], sort=False)
    ]


def _where(table: pd.DataFrame, imputer: str, evaluator: str) -> str:
    """Said only where there are several."""
    names = [name for column, name in (("imputer", imputer), ("evaluator", evaluator)) if table[column].nunique() > 1]
    return f" ({', '.join(names)})" if names else ""


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
