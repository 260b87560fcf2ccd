"""What later papers ask, from the harvested points: filtered maps, explained class, other models."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduction.ids import points_id
from reproduction.kept import committed
from reproduction.tables import METHODS, Results, where
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics import Block

LABEL, PREDICTION, FILTERED = "cifar10-tables", "cifar10-tables-prediction", "cifar10-tables-filtered"
MODELS = {"ResNet-18": "cifar10-tables-carried", "ResNet-20": "cifar10-tables-resnet20"}
"""model that is evaluated to its plan; the maps of the other one are methods of their own there"""
SCORES = ("srg", "morf", "lerf")
MADE_RIGHT = 0.3
"""fraction removed, least relevant first, at which wrong predictions may become right"""


def later_tables(results: Results) -> dict[str, pd.DataFrame]:
    tables = {
        "filtered": filtered_table(results),
        "targets": target_table(results),
        "carried": carried_table(results),
        "carried-agreement": carried_agreement(results),
    }
    return {name: table for name, table in tables.items() if len(table)}


def scores_of(predictions: Mapping[Point, Predictions]) -> Block | None:
    """The scores of linear imputation without training, as far as they were measured."""
    wanted = {p: one for p, one in predictions.items() if (p.imputer, p.evaluator) == ("linear", "no-retrain")}
    found = [block for block in statistics.blocks(wanted) if "srg" in block.scores] if wanted else []
    return found[0] if found else None


def change(after: NDArray[np.float64], before: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean difference with its interval, paired over images."""
    difference = after - before
    return float(difference.mean()), *statistics.mean_interval(difference)


def points_of(results: Results, plan: str, *methods: str) -> list[str]:
    rows = where(results.points(plan), imputer="linear", evaluator="no-retrain")
    return list(rows[rows["method"].isin(methods)]["item"])


# ── blur and sharpen ─────────────────────────────────────────────────────────────────────────────────────────────────


def filtered_table(results: Results) -> pd.DataFrame:
    """How filtering the maps changes each score."""
    block, rows = scores_of(committed(results, FILTERED)), []
    for name in block.scores["srg"] if block else ():
        method, _, how = name.partition(", ")
        if block is None or not how or method not in block.scores["srg"]:
            continue
        items = points_id(points_of(results, FILTERED, method, name))
        for score in SCORES:
            values = block.scores[score]
            rows.append((method, how, score, *change(values[name], values[method]), values[name].shape[-1], items))
    return pd.DataFrame(rows, columns=["method", "filter", "score", "change", "low", "high", "images", "points"])


# ── label or prediction ──────────────────────────────────────────────────────────────────────────────────────────────


def target_table(results: Results) -> pd.DataFrame:
    """srg of maps of the label and of the prediction, its change, and the share of wrong predictions made right."""
    predictions = {plan: committed(results, plan) for plan in (LABEL, PREDICTION)}
    blocks = {plan: scores_of(part) for plan, part in predictions.items()}
    label, prediction = blocks[LABEL], blocks[PREDICTION]
    if label is None or prediction is None:
        return pd.DataFrame()
    rows = []
    for method in METHODS:
        before, after = label.scores["srg"][method], prediction.scores["srg"][method]
        made = [_made_right(predictions[plan], method) for plan in (LABEL, PREDICTION)]
        items = points_id(points_of(results, LABEL, method) + points_of(results, PREDICTION, method))
        means = (float(values.mean()) for values in (before, after))
        rows.append((method, *means, *change(after, before), *made, before.shape[-1], items))
    columns = ["method", "label", "prediction", "change", "low", "high", "right_label", "right_prediction", "images"]
    return pd.DataFrame(rows, columns=[*columns, "points"])


def _made_right(predictions: Mapping[Point, Predictions], method: str) -> float:
    whole, removed = (
        predictions[Point(method, "lerf", "linear", "no-retrain", fraction, 0)].correct
        for fraction in (0.0, MADE_RIGHT)
    )
    return float(removed[~whole].mean()) if not whole.all() else float("nan")


# ── other models ─────────────────────────────────────────────────────────────────────────────────────────────────────


def carried_table(results: Results) -> pd.DataFrame:
    """Each model evaluated with its own maps and with those of the other one."""
    rows = []
    for model, other in (("ResNet-18", "ResNet-20"), ("ResNet-20", "ResNet-18")):
        block = scores_of(committed(results, MODELS[model]))
        for method in METHODS if block else ():
            foreign = f"{method} of {other}"
            if block is None or foreign not in block.scores["srg"]:
                continue
            own, carried = block.scores["srg"][method], block.scores["srg"][foreign]
            items = points_id(points_of(results, MODELS[model], method, foreign))
            means = (float(values.mean()) for values in (own, carried))
            rows.append((model, method, *means, *change(carried, own), own.shape[-1], items))
    columns = ["model", "method", "own", "carried", "change", "low", "high", "images", "points"]
    return pd.DataFrame(rows, columns=columns)


def carried_agreement(results: Results) -> pd.DataFrame:
    """Agreement of the rankings of the methods, by model that is evaluated and model that is explained."""
    points: dict[Point, Predictions] = {}
    items: dict[str, list[str]] = {}
    for model, plan in MODELS.items():
        for point, one in committed(results, plan).items():
            method, _, explained = point.method.partition(" of ")
            setting = f"maps of {explained or model} on {model}"
            points[point._replace(method=method, model=setting)] = one
        rows = results.points(plan)
        for setting in {point.model for point in points if point.model.endswith(f"on {model}")}:
            own = f"maps of {model} " in setting
            chosen = rows[rows["method"].str.contains(" of ") != own] if len(rows) else rows
            items[setting] = list(chosen["item"])
    if len({point.model for point in points}) < 2:
        return pd.DataFrame()
    table = statistics.agreement_intervals(points)
    table = table[(table["order_a"] == table["order_b"]) & (table["model_a"] != table["model_b"])]
    names = [points_id(items[a] + items[b]) for a, b in zip(table["model_a"], table["model_b"], strict=True)]
    columns = ["order_a", "model_a", "model_b", "spearman", "low", "high", "fractions"]
    found = table[columns].rename(columns={"order_a": "order"})
    return found.assign(images=len(next(iter(points.values()))), points=names).reset_index(drop=True)
