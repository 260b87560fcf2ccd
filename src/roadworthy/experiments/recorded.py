"""Predictions as arrays of an item, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from roadworthy.core.errors import StoreError
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.items import Arrays, Item
from roadworthy.experiments.stores import Store

_FIELDS = ("ids", "labels", "predicted", "probability")


def prediction_arrays(predictions: Predictions) -> dict[str, Any]:
    return {name: getattr(predictions, name) for name in _FIELDS}


def as_predictions(arrays: Arrays) -> Predictions:
    """A file may hold more: the training curve of its evaluator."""
    if missing := [name for name in _FIELDS if name not in arrays]:
        raise StoreError(f"stored predictions lack {', '.join(missing)}: run the plan into a new directory")
    return Predictions(**{name: arrays[name] for name in _FIELDS})


def read_predictions(points: Mapping[Point, tuple[Item, ...]], store: Store) -> dict[Point, Predictions]:
    """Of points that are complete, in the order of the images' rows."""
    cache: dict[str, Predictions] = {}
    joined: dict[tuple[str, ...], Predictions] = {}
    result = {}
    for point, items in points.items():
        key = tuple(item.id for item in items)
        if key not in joined:
            for item in items:
                if item.id not in cache:
                    cache[item.id] = as_predictions(store.read(item))
            joined[key] = _in_row_order([cache[item.id] for item in items], items)
        result[point] = joined[key]
    return result


def _in_row_order(parts: Sequence[Predictions], items: Sequence[Item]) -> Predictions:
    whole = Predictions.join(parts)
    rows = [row for item in items for row in (item.block.rows if item.block else ())]
    return whole if rows == sorted(rows) else whole.take(sorted(range(len(rows)), key=rows.__getitem__))
