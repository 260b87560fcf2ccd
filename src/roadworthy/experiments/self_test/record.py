"""What a store holds of a self-test."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from roadworthy import statistics
from roadworthy.core.results import Degraded, Point, Predictions
from roadworthy.experiments.items import Arrays, Item
from roadworthy.experiments.pending import Survey
from roadworthy.experiments.recorded import as_predictions, prediction_arrays, read_predictions
from roadworthy.experiments.stores import Store
from roadworthy.experiments.stores.run_directory import RunDirectory, checksum


class SelfTestRecord(NamedTuple):
    """Complete curves of damaged copies, and what was measured of imputed images."""

    copies: Mapping[str, Degraded]
    predictions: Mapping[Point, Predictions]
    """their method is the name of a copy"""
    leaders: tuple[str, ...]
    negatives: tuple[str, ...]
    """of which the swapped copies lose nothing"""
    seed: int
    scope: Mapping[str, Arrays]
    """imputer to arrays"""
    orders: Mapping[str, tuple[str, ...]]
    """imputer to orders"""
    fractions: tuple[float, ...]
    gamma: Mapping[str, Arrays]
    """leading method or copy to sums of squares of its linear imputation"""
    linear: tuple[str, ...]
    """names of the linear imputer, which γ is about"""
    share: float | None = None
    """of the processor time of the run"""


def collect_self_test(state: Survey, store: Store) -> SelfTestRecord | None:
    """None where there is none, or nothing of it is done yet."""
    design = state.self_test
    if design is None:
        return None
    complete = {
        point: items
        for point, items in state.self_test_points.items()
        if all(item.id in state.stored for item in items)
    }
    predictions, _ = statistics.complete_curves(read_predictions(complete, store), state.self_test_points)
    scope_items = {name: item for name, item in design.scope_items().items() if item.id in state.stored}
    gamma_items = {name: item for name, item in design.gamma_items().items() if item.id in state.stored}
    if not predictions and not scope_items:
        return None
    return SelfTestRecord(
        {name: copy for name, copy in design.copies().items() if any(point.method == name for point in predictions)},
        predictions,
        design.leaders,
        tuple(copy.of for copy in design.negative()),
        design.design.seeds[0],
        {name: store.read(item) for name, item in scope_items.items()},
        {name: tuple(item.label["orders"]) for name, item in scope_items.items()},
        design.design.fractions,
        {name: store.read(item) for name, item in gamma_items.items()},
        design.linear,
        _share(state, store),
    )


def _share(state: Survey, store: Store) -> float | None:
    """Of the processor time: what the items of the self-test took that nothing else needed."""
    seconds = store.manifest().get("cpu_seconds", {})
    others = {item.id for items in state.points.values() for item in items}
    compared = {id for id, item in state.goals.items() if id in others or not _degraded(item, others)}
    total = sum(seconds.get(id, 0.0) for id in state.goals)
    own = sum(seconds.get(id, 0.0) for id in state.goals if id not in compared)
    return own / total if total else None


def _degraded(item: Item, others: set[str]) -> bool:
    """An item that only the self-test has: the scope, maps of damaged copies and what is predicted with them."""
    if item.kind == "audit":
        return True
    return item.id not in others and "\N{NO-BREAK SPACE}" in str(item.label.get("method", ""))


# ── saved comparisons ────────────────────────────────────────────────────────────────────────────────────────────────


def save_self_test(record: SelfTestRecord, store: RunDirectory) -> dict[str, Any]:
    """Write predictions and measurements; returns what describes them."""
    order, measured, shapes = [], [], []
    for point, predictions in record.predictions.items():
        arrays = prediction_arrays(predictions)
        item = Item("predictions", {**point._asdict(), "subject": checksum(arrays)}, point._asdict())
        store.write(item, arrays)
        order.append(item.id)
    for imputer, values in record.scope.items():
        item = Item(
            "audit", {"measure": "scope", "imputer": imputer, "subject": checksum(values)}, {"imputer": imputer}
        )
        store.write(item, values)
        measured.append({"imputer": imputer, "orders": record.orders[imputer], "item": item.id})
    for name, values in record.gamma.items():
        item = Item("audit", {"measure": "gamma", "method": name, "subject": checksum(values)}, {"method": name})
        store.write(item, values)
        shapes.append({"method": name, "item": item.id})
    return {
        "copies": [copy._asdict() for copy in record.copies.values()],  # a manifest sorts the names of a table
        "items": order,
        "scope": measured,
        "gamma": shapes,
        **{name: getattr(record, name) for name in ("leaders", "negatives", "seed", "fractions", "linear", "share")},
    }


def read_self_test(store: RunDirectory, facts: Mapping[str, Any] | None) -> SelfTestRecord | None:
    if not facts:
        return None
    predictions = {}
    for id in facts["items"]:
        header, arrays = store.read_file(store.path("predictions", id))
        predictions[Point(**header["label"])] = as_predictions(arrays)
    copies = [Degraded(**copy) for copy in facts["copies"]]
    return SelfTestRecord(
        {copy.name: copy for copy in copies},
        predictions,
        tuple(facts["leaders"]),
        tuple(facts["negatives"]),
        int(facts["seed"]),
        {row["imputer"]: store.read_file(store.path("audit", row["item"]))[1] for row in facts["scope"]},
        {row["imputer"]: tuple(row["orders"]) for row in facts["scope"]},
        tuple(facts["fractions"]),
        {row["method"]: store.read_file(store.path("audit", row["item"]))[1] for row in facts.get("gamma", ())},
        tuple(facts.get("linear", ())),
        facts["share"],
    )
