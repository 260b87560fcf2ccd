"""What is removed at a time: labels, sizes and names that cannot be used."""

import numpy as np
import torch

import roadworthy as rw
from faults.rows_compare import IMAGES, LABELS, TRAIN, WORLD, argument, compare, mask
from faults.table import Row, each
from roadworthy.core.errors import InputError, RangeError, ShapeError, UnknownNameError

GRID = np.arange(144).reshape(12, 12) // 12
"""12 units, a row of pixels each"""


def labels(value):
    return lambda folder: rw.FeatureMask(value)


def made(kind, *options, **named):
    return lambda folder: kind(*options, **named)


def returning(value):
    return lambda batch: value


ROWS = [
    *argument("units", ("pixel", "", "patchs", "Tokens!"), UnknownNameError, "did you mean|Available"),
    *argument("units", ("superpixels", "patches", "feature-mask"), InputError, "give units=rw"),
    *argument("units", (None, 1, 16, [16], rw.Patches), InputError, "give 'pixels', 'tokens' or rw.Patches"),
    *argument("units", (GRID, torch.from_numpy(GRID)), InputError, r"rw.FeatureMask\(labels\)"),
    *argument("units", ("tokens", rw.Tokens()), InputError, r"no tokens.*rw.Patches\(16\)"),
    *argument("units", (rw.Patches(13), rw.Patches((13, 2)), rw.Patches((2, 100))), RangeError, "smaller patches"),
    *argument("units", (rw.Patches(12),), InputError, "at least two"),
    *argument("units", (rw.Superpixels(145), rw.Superpixels(10**6)), RangeError, "fewer superpixels"),
    *argument("units", (rw.FeatureMask(GRID[:6]), rw.FeatureMask(GRID[:, :6])), ShapeError, "one label per pixel"),
    *argument("units", (rw.FeatureMask(np.stack([GRID] * 5)),), ShapeError, "one per image"),
    *argument("units", (rw.FeatureMask(np.stack([GRID] * 8), ids=torch.arange(1, 9)),), ShapeError, "no labels for image 0"),
    *argument("units", (rw.FeatureMask(np.stack([GRID] * 8), ids=torch.zeros(8, dtype=torch.long)),), InputError, "several label maps"),
    Row("compare: labels of each image and training", compare(**TRAIN, methods={"G": "gradient"}, units=rw.FeatureMask(np.stack([GRID] * 8))),
        InputError, "labels \\(h, w\\)"),
    Row("compare: a fraction that removes all units", compare(units=rw.Patches(6), fractions=(0.2, 0.9)), RangeError, "smaller units"),
    # 4 units: floor(.1 · 4 + ½) = 0
    Row("compare: a fraction that removes no unit", compare(units=rw.Patches(6), fractions=(0.1, 0.5)), RangeError, "larger fractions"),
    *(
        Row(f"compare: a function of units that returns {what}", compare(units=returning(value)), error, cure)
        for what, value, error, cure in (
            ("None", None, ShapeError, "integer labels"),
            ("a list", [[0, 1]], ShapeError, "integer labels"),
            ("one map of labels without an axis of images", GRID, ShapeError, "for all images"),
            ("labels of too few images", np.stack([GRID] * 5), ShapeError, "for all images"),
            ("floats", np.stack([GRID] * 8).astype(float), InputError, "integers"),
            ("bools", np.stack([GRID] * 8) > 3, InputError, "integers"),
            ("labels below 0", GRID[None] - 1, RangeError, "0, 1, 2"),
            ("gaps", GRID[None] * 2, InputError, "without gaps"),
            ("one unit", GRID[None] * 0, InputError, "at least two"),
        )
    ),
    *argument("unit_reduction", ("median", "", None, "Mean", 1), InputError, "choose one", units=rw.Patches(2)),
    Row("compare: infinite maps in units", compare(units=rw.Patches(2), methods={"bad": WORLD.truth / 0}), InputError, "NaN|finite"),
    *each("FeatureMask", (GRID.astype(float), GRID > 3, GRID * 1j), labels, InputError, "integers"),
    *each("FeatureMask", (GRID - 1, -GRID), labels, RangeError, "0, 1, 2"),
    *each("FeatureMask", (GRID * 2, GRID + 1), labels, InputError, "without gaps"),
    *each("FeatureMask", (GRID * 0,), labels, InputError, "at least two"),
    *each("FeatureMask", (GRID[0], GRID[None, None], np.zeros((0, 3), int)), labels, ShapeError, "give"),
    *each("Patches", (0, -1, 2.5, "8", None, True, (4,), (4, 0), (4, 4, 4)), lambda v: made(rw.Patches, v), RangeError, "1 pixel or more"),
    *each("Superpixels", (0, 1, -5, 2.5, "50", None, True), lambda v: made(rw.Superpixels, v), RangeError, "2 or more"),
    *each("Superpixels: compactness", (0, -1, float("nan"), "high"), lambda v: made(rw.Superpixels, 50, v), RangeError, "above 0"),
    Row("FeatureMask: a file that is missing", lambda folder: rw.REGISTRY["units"]["feature-mask"].make(folder / "nowhere.npy"),
        rw.errors.DataError, "give a .npy"),
    *each("removal_mask: units", (rw.Superpixels(5), "tokens"), lambda v: mask(units=v), InputError, "rw.Patches"),
    *each("removal_mask: units", ("pixel",), lambda v: mask(units=v), UnknownNameError, "did you mean 'pixels'"),
    Row("removal_mask: unit_reduction", mask(units=rw.Patches(2), unit_reduction="median"), InputError, "choose one"),
    Row("road: units", lambda folder: rw.road(WORLD.model, IMAGES, LABELS, WORLD.truth, units="tokens"), InputError, "no tokens"),
]  # fmt: skip
