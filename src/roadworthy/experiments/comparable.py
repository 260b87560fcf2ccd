"""Whether two runs can be compared: the same data set, and what differs otherwise.

What is known of a run depends on how it was made. A plan's manifest holds fingerprints of weights and of every block of
images. A saved comparison holds ids, labels, class names and predictions only.
"""

import hashlib

import numpy as np

from roadworthy.core.errors import InputError
from roadworthy.core.results import Predictions
from roadworthy.experiments.items import combined
from roadworthy.experiments.results import Results

SHOWN = 12
"""digits of a fingerprint that are shown"""


def check_same_data(before: Results, after: Results) -> None:
    """Raise if the two evaluated different data sets; other images of the same one are fine.

    Checked, as far as both runs hold it: class names; the labels of the images with the same ids; for plans the
    fingerprints of the images, where both cut the same images into the same blocks; and the name of the data set, if
    the two share no image.
    """
    if reason := _data_difference(before, after):
        raise InputError(
            f"the data sets differ: {_named(before)} and {_named(after)} ({reason}); compare runs on the same data set"
        )


def data_fingerprint(results: Results) -> str:
    """Of the images of a plan; of ids and labels, sorted by id, where a run holds no more."""
    if blocks := results.manifest.get("fingerprints", {}).get("data"):
        return combined(blocks)
    images = _images(results)
    order = np.argsort(images.ids, kind="stable")
    return hashlib.sha256(images.ids[order].tobytes() + images.labels[order].tobytes()).hexdigest()


def model_difference(before: Results, after: Results) -> str:
    """A sentence if the models differ, else nothing. Weights are compared, or else predictions on unmodified images."""
    weights = [str(each.manifest.get("fingerprints", {}).get("model", "")) for each in (before, after)]
    if all(weights):
        first, second = (f"weights {each[:SHOWN]}" for each in weights)
        return "" if weights[0] == weights[1] else f"the models differ: {first} before, {second} after"
    old, new = (_plain(each) for each in (before, after))
    if old is None or new is None:
        return ""
    _, rows, others = np.intersect1d(old.ids, new.ids, return_indices=True)
    changed = ~np.isclose(old.probability[rows], new.probability[others], atol=1e-3, rtol=0)
    changed |= old.predicted[rows] != new.predicted[others]
    if not changed.any():
        return ""
    return f"the models differ: other predictions on {changed.sum():,} of {len(rows):,} unmodified images"


def image_difference(before: Results, after: Results) -> str:
    """A sentence if the two evaluated other images, else nothing."""
    old, new = _images(before).ids, _images(after).ids
    shared = len(np.intersect1d(old, new))
    if shared == len(old) == len(new):
        return ""
    return f"the images differ: {len(old):,} before, {len(new):,} after, {shared:,} of them in both"


def _data_difference(before: Results, after: Results) -> str:
    if _has_names(before) and _has_names(after) and before.classes != after.classes:
        return f"classes {_some(before.classes)} and {_some(after.classes)}"
    old, new = _images(before), _images(after)
    _, rows, others = np.intersect1d(old.ids, new.ids, return_indices=True)
    # Without labels, predictions stand in for them, and those depend on the model.
    if not (before.unlabeled or after.unlabeled):
        wrong = int((old.labels[rows] != new.labels[others]).sum())
        if wrong:
            return f"{wrong:,} of {len(rows):,} images with the same id have other labels"
    prints = [each.manifest.get("fingerprints", {}) for each in (before, after)]
    cuts = [(each.get("block_size"), each.get("images"), len(each.get("data", ()))) for each in prints]
    same_cut = all(prints) and cuts[0] == cuts[1] and not (before.stopping or after.stopping)
    if same_cut and np.array_equal(old.ids, new.ids) and list(prints[0]["data"]) != list(prints[1]["data"]):
        return "the same ids, but other images"
    names = [each.about.get("Data", "").split(" (")[0] for each in (before, after)]
    if not len(rows) and names[0] != names[1]:
        return f"{names[0] or 'unnamed data'} and {names[1] or 'unnamed data'}, no image in both"
    return ""


def _named(results: Results) -> str:
    name = results.about.get("Data", "").split(" (")[0]
    return f"{name or 'data'} with fingerprint {data_fingerprint(results)[:SHOWN]}"


def _images(results: Results) -> Predictions:
    return next(iter(results.predictions.values()))


def _plain(results: Results) -> Predictions | None:
    """Predictions on unmodified images."""
    points = (point for point in results.predictions if point.evaluator == "no-retrain" and point.fraction == 0)
    return next((results.predictions[point] for point in points), None)


def _has_names(results: Results) -> bool:
    """Numbers stand in for the names of classes that nobody gave."""
    return any(not name.isdigit() for name in results.classes)


def _some(names: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")
