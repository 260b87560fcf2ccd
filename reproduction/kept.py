"""Which images each point classified correctly: kept beside the tables, so that intervals can be computed from them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduction.tables import HERE, METHODS
from roadworthy.core.results import Point, Predictions

CORRECT = HERE / "results" / "correct.npz"
Bits = dict[str, NDArray[np.uint8]]
"""id of a point to a bit per image, in the order of the test images"""


def bits_of(predictions: Mapping[Point, Predictions], ids: Mapping[Point, str]) -> Bits:
    """Of the paper's methods."""
    return {ids[point]: np.packbits(predictions[point].correct) for point in predictions if point.method in METHODS}


def write_bits(bits: Bits, path: Path = CORRECT) -> None:
    """One row per point; all points have the same number of images."""
    items = sorted(bits)
    np.savez_compressed(path, items=np.array(items), bits=np.stack([bits[item] for item in items]))


def read_bits(path: Path = CORRECT) -> Bits:
    with np.load(path) as file:
        return dict(zip(map(str, file["items"]), file["bits"], strict=True))


def predictions_of(points: pd.DataFrame, bits: Bits) -> tuple[dict[Point, Predictions], dict[Point, str]]:
    """The curves in the table of points whose images were all kept, and the ids of their points.

    Of the classes only correct (1) or not (0) is known.
    """
    fields = ["method", "order", "imputer", "evaluator", "fraction", "seed"]
    # The point without removal is shared by all curves, so it alone keeps none.
    complete = (
        points["item"].isin(list(bits)).groupby([points[name] for name in (*fields[:4], "seed")]).transform("all")
    )
    predictions, ids = {}, {}
    for item, images, *place in points.loc[complete, ["item", "images", *fields]].itertuples(index=False, name=None):
        correct = np.unpackbits(bits[item], count=images).astype(np.int64)
        labels, probability = np.ones(images, np.int64), correct.astype(np.float32)
        predictions[Point(*place)] = Predictions(np.arange(images), labels, correct, probability)
        ids[Point(*place)] = item
    return predictions, ids
