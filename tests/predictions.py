"""Small studies with known answers: predictions from tables of hits, shared by the tests of statistics and reports."""

import numpy as np

from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.results import Results

FRACTIONS = (0.0, 0.2, 0.4)

GOOD = {"morf": [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]], "lerf": [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]]}
BAD = {"morf": [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]], "lerf": [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]}

BLIND = ("random", "edges", "center")


def prediction(correct, probability=None, ids=None):
    """Predictions that are correct on the images where `correct` is true."""
    correct = np.asarray(correct)
    count = len(correct)
    return Predictions(
        ids=np.arange(count) if ids is None else np.asarray(ids),
        labels=np.ones(count, dtype=np.int64),
        predicted=correct.astype(np.int64),
        probability=np.asarray(correct if probability is None else probability, dtype=np.float32),
    )


def study(evaluator="no-retrain", **methods):
    """method = {order: three rows of per-image hits}"""
    return {
        Point(method, order, "linear", evaluator, fraction, 0): prediction(row)
        for method, orders in methods.items()
        for order, rows in orders.items()
        for fraction, row in zip(FRACTIONS, rows, strict=True)
    }


def curve_study(table, evaluator="no-retrain", seed=0, images=10):
    """{(order, imputer): {method: {fraction: accuracy}}}; the accuracies are exact on that many images."""
    return {
        Point(method, order, imputer, evaluator, fraction, seed): prediction(
            np.arange(images) < round(images * accuracy)
        )
        for (order, imputer), methods in table.items()
        for method, accuracies in methods.items()
        for fraction, accuracy in {0.0: 1.0, **accuracies}.items()
    }


def endurance_study(images=400, seed=0, imputer="linear", **methods):
    """method = (mean fraction up to which an image stays correct in MoRF, and in LeRF); it varies by image."""
    generator = np.random.default_rng(seed)
    common = 0.1 * generator.normal(size=images)
    predictions = {}
    for method, ends in methods.items():
        for order, end in zip(("morf", "lerf"), ends, strict=True):
            limit = end + common + 0.1 * generator.normal(size=images)
            for fraction in (0.0, 0.25, 0.5, 0.75):
                labels = np.arange(images) % 4
                hit = (limit > fraction) | (fraction == 0)
                point = Point(method.replace("_", " "), order, imputer, "no-retrain", fraction, 0)
                predicted = np.where(hit, labels, (labels + 1) % 4)
                predictions[point] = Predictions(np.arange(images), labels, predicted, hit.astype(np.float32))
    return predictions


def comparison(predictions, **facts):
    """Controls are recognized by their names."""
    methods = dict.fromkeys(point.method for point in predictions)
    controls = tuple(name for name in methods if name in (*BLIND, *facts.get("copies", ())))
    return Comparison(Results(predictions, controls, **{"preferred": ("no-retrain", "linear"), **facts}))
