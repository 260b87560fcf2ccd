"""Which images each point classified correctly: kept beside the tables, so that intervals can be computed from them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduction.tables import POINT, Results
from roadworthy.core.results import Point, Predictions

Bits = dict[str, NDArray[np.uint8]]
"""id of a point to a bit per image, in the order of the test images"""


def bits_of(predictions: Mapping[Point, Predictions], ids: Mapping[Point, str]) -> Bits:
    return {ids[point]: np.packbits(one.correct) for point, one in predictions.items()}


def write_bits(bits: Bits, path: Path) -> None:
    """One row per point; all points of a plan have the same number of images."""
    items = sorted(bits)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, items=np.array(items), bits=np.stack([bits[item] for item in items]))


def read_bits(path: Path) -> Bits:
    if not path.exists():
        return {}
    with np.load(path) as file:
        return dict(zip(map(str, file["items"]), file["bits"], strict=True))


def bits_path(results: Results, plan: str) -> Path:
    return results.folder / "correct" / f"{plan}.npz"


def predictions_of(points: pd.DataFrame, bits: Bits, images: int | None = None) -> dict[Point, Predictions]:
    """Of the points in the table; of the classes only correct (1) or not (0) is known. `images`: the first ones."""
    predictions = {}
    for item, count, *place in points[["item", "images", *POINT]].itertuples(index=False, name=None):
        correct = np.unpackbits(bits[item], count=count).astype(np.int64)[:images]
        labels, probability = np.ones_like(correct), correct.astype(np.float32)
        predictions[Point(*place)] = Predictions(np.arange(len(correct)), labels, correct, probability)
    return predictions


def committed(results: Results, *plans: str, images: int | None = None) -> dict[Point, Predictions]:
    """The complete curves of the methods of these plans."""
    found: dict[Point, Predictions] = {}
    for plan in plans:
        points, bits = results.points(plan), read_bits(bits_path(results, plan))
        if len(points):
            # The point without removal is shared by all curves: of a control it alone is kept.
            curves = points["item"].isin(list(bits)).groupby([points[name] for name in POINT if name != "fraction"])
            whole = curves.transform("sum") == 1 + len(results.facts()[plan]["fractions"])
            found |= predictions_of(points[whole], bits, images)
    return found
