"""The toy experiment of the older supplement: uninformative orderings are ranked by their geometry, unless debiased."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import roadworthy as rw
from roadworthy.audit.debiasing import gamma_table
from roadworthy.audit.geometry import class_means, measure_geometry
from roadworthy.audit.toy import ToyWorld, best_gamma, exact_gamma, imputation_operator, logistic_regressions, run_toy
from roadworthy.core.random import Key
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first

UNINFORMATIVE = ["rand", "semi", "gauss"]


@pytest.fixture(scope="module", params=[0, 1], ids="seed {}".format)
def result(request):
    return run_toy(fractions=(0.1, 0.3, 0.5, 0.7, 0.9), seed=request.param)


def means(points, column):
    """Mean over fractions, ascending, per order."""
    table = points.groupby(["order", "method"])[column].mean()
    return table["morf"].sort_values(), table["lerf"].sort_values()


def test_a_regression_on_unmodified_images_has_an_accuracy_of_about_95_percent(result):
    assert result.curves.query("fraction == 0")["accuracy"].unique() == pytest.approx([0.95], abs=0.02)


def test_gauss_comes_second_in_morf_and_next_to_worst_in_lerf(result):
    morf, lerf = means(result.debiased(), "accuracy")
    assert list(morf.index[:2]) == ["true", "gauss"]  # the lower the better
    assert list(lerf.index[:2]) == ["worst", "gauss"]  # the higher the better


def test_debiasing_brings_the_three_uninformative_orderings_closer_together(result):
    points = result.debiased()
    uninformative = points[points["method"].isin(UNINFORMATIVE)]
    # Where retraining on imputed images is more accurate than on whole ones, by chance, nothing can be debiased.
    defined = uninformative["debiased"].notna().groupby([uninformative["order"], uninformative["fraction"]])
    known, uninformative = len(uninformative), uninformative[defined.transform("all")]
    assert len(uninformative) >= 0.8 * known
    for before, after in zip(means(uninformative, "accuracy"), means(uninformative, "debiased"), strict=True):
        assert np.ptp(after) < np.ptp(before)


def test_the_best_imputation_restores_more_than_the_linear_one(result):
    table = result.geometry
    assert (table["optimum"] < table["raw"]).all()
    # Scatter is mostly restored, a bump is not: γ orders the three as their accuracies do.
    gamma = table.groupby("method")["gamma"].mean()
    assert gamma["rand"] < gamma["semi"] < gamma["gauss"]


def test_measured_gamma_equals_its_exact_counterpart_within_sampling_error():
    world, count = ToyWorld(), 300
    pixels, labels = world.draw(count, Key(3))
    images = torch.from_numpy(pixels).float().reshape(count, 1, world.size, world.size)
    batch = rw.Batch(torch.arange(count), images, torch.from_numpy(labels))
    orderings = {name: torch.from_numpy(values)[None] for name, values in world.orderings(Key(4)).items()}
    untied = [name for name in orderings if name != "semi"]
    maps = {name: orderings[name].float().expand(count, -1, -1) for name in untied}
    orders = {"morf": most_relevant_first, "lerf": least_relevant_first}
    table = gamma_table(measure_geometry([(batch, maps)], class_means([batch]), orders, (0.2, 0.6), Key(0)))
    for row in table.itertuples():
        removed = rw.removal_mask(orderings[row.method].float(), row.fraction, row.order)[0].numpy()
        error = (row.high - row.low) / 2 / 1.968  # half-width divided by its t quantile, 299 degrees of freedom
        # 16 points: beyond 4 standard errors by chance in one of 1,000 such tests. The solver's 1e-4 is far smaller.
        assert abs(row.raw - exact_gamma(world.covariance, removed)) < 4 * error
        assert error < 0.05 * row.raw + 0.005  # the bound is not vacuous


def test_exact_gammas_are_the_traces_of_the_definition():
    world = ToyWorld(size=8)
    removed = rw.removal_mask(Key(0).uniform([0], (8, 8)), 0.4)[0].numpy()
    mask, sigma, operator = removed.ravel(), world.covariance, imputation_operator(removed)
    b = operator[np.ix_(mask, ~mask)]
    uu, uk, ku, kk = (sigma[np.ix_(a, c)] for a in (mask, ~mask) for c in (mask, ~mask))
    assert np.allclose(operator[np.ix_(mask, mask)], 0)  # removed values have no influence
    linear = np.trace(uu - b @ ku - uk @ b.T + b @ kk @ b.T) / np.trace(uu)
    assert exact_gamma(sigma, removed) == pytest.approx(linear, abs=1e-9)
    best = np.trace(uu - uk @ np.linalg.inv(kk) @ ku) / np.trace(uu)
    assert best_gamma(sigma, removed) == pytest.approx(best, abs=1e-9)


def test_the_regressions_minimize_their_loss():
    world = ToyWorld(size=6)
    images, labels = world.draw(2 * 30, Key(1))
    weights, offsets = logistic_regressions(images.reshape(2, 30, 36), labels.reshape(2, 30).astype(float))

    def loss(values, x, y):
        logits = x @ values[:-1] + values[-1]
        return np.sum(np.logaddexp(0, logits) - y * logits) + values[:-1] @ values[:-1] / 2

    for run, rows in enumerate((slice(0, 30), slice(30, 60))):
        expected = minimize(loss, np.zeros(37), (images[rows], labels[rows]), method="BFGS", options={"gtol": 1e-6})
        # BFGS with numerical gradients is accurate to about 1e-4.
        assert np.allclose([*weights[run], offsets[run]], expected.x, atol=1e-3)
