"""Remove, impute, predict: what is shared changes nothing."""

import numpy as np
import pytest
import torch

import worlds
from roadworthy.attributions import Gradient, paper_methods
from roadworthy.core.errors import ShapeError
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation import sweep as module
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first
from roadworthy.evaluation.sweep import Curve, explain, imputed, source_of, sweep, tied
from roadworthy.imputers import Constant, NoisyLinear
from roadworthy.models.normalized import as_model

WORLD = worlds.quadrants(n=7)
BATCH = Batch(torch.arange(7), WORLD.images, WORLD.labels)
MODEL = as_model(WORLD.model)
ORDERS = {"morf": most_relevant_first, "lerf": least_relevant_first}


# ── maps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_methods_with_a_common_source_compute_it_once():
    passes = []
    model = as_model(lambda images: passes.append(len(images)) or WORLD.model(images))
    methods = paper_methods(steps=2, ig_samples=3)
    together = explain({name: methods[name] for name in ("IG-SG", "IG-SQ", "IG-Var")}, model, BATCH, Key(0))
    shared = sum(passes)
    passes.clear()
    alone = explain({"IG-SQ": methods["IG-SQ"]}, model, BATCH, Key(0))
    assert sum(passes) == shared
    assert torch.equal(together["IG-SQ"], alone["IG-SQ"])
    assert source_of(methods["IG-SG"]) == source_of(methods["IG-Var"]) != source_of(methods["IG"])


def test_equal_methods_have_equal_sources_and_unhashable_ones_their_own():
    assert source_of(Gradient()) == source_of(Gradient())

    class Unhashable(list):
        def __call__(self, model, batch, key):
            return batch.images

    method = Unhashable()
    assert source_of(method) == source_of(method) != source_of(Unhashable())
    assert torch.equal(explain({"m": method}, MODEL, BATCH, Key(0))["m"], WORLD.images.sum(dim=1))


def test_an_error_names_the_method():
    def broken(model, batch, key):
        raise KeyError("oops")

    with pytest.raises(KeyError) as caught:
        explain({"fine": Gradient(), "mine": broken}, MODEL, BATCH, Key(0))
    assert "'mine'" in caught.value.__notes__[0]


# ── imputation ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 1 << 30])
def test_fractions_imputed_together_are_those_imputed_alone(monkeypatch, limit):
    monkeypatch.setattr(module, "IMPUTED_AT_ONCE", limit)
    ranks = most_relevant_first(WORLD.truth, BATCH.ids, Key(0))
    fractions = (0.0, 0.1, 0.5, 0.9)
    for fraction, (removed, images) in zip(
        fractions, imputed(NoisyLinear(), BATCH, ranks, fractions, Key(0)), strict=True
    ):
        assert torch.equal(removed, removed_at(ranks, fraction))
        assert torch.equal(images, NoisyLinear()(BATCH, removed, Key(0)))


def test_an_imputer_must_return_an_image_for_each():
    ranks = most_relevant_first(WORLD.truth, BATCH.ids, Key(0))
    for wrong, text in ((lambda batch, removed, key: batch.images[:, :1], r"\(14, 1, 12, 12\)"),
                        (lambda batch, removed, key: batch.images.numpy(), "a ndarray")):  # fmt: skip
        with pytest.raises(ShapeError, match=rf"<lambda> returned {text} for images \(14, 3, 12, 12\)"):
            list(imputed(wrong, BATCH, ranks, (0.1, 0.2), Key(0)))


# ── predictions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def swept(curves, batch_size=3, targets=WORLD.labels):
    imputers = {"linear": NoisyLinear(), "black": Constant(0.0)}
    evaluators = dict.fromkeys(curves, NoRetrain(MODEL))
    return {
        (curve, fraction): predictions
        for curve, fraction, predictions in sweep(
            curves, ORDERS, imputers, evaluators, WORLD.truth, BATCH, targets, batch_size
        )
    }


def test_curves_evaluated_together_are_those_evaluated_alone():
    curves = {
        Curve("morf", "linear", "no-retrain", 1): [0.2, 0.7],
        Curve("lerf", "linear", "no-retrain", 0): [0.5],
        Curve("morf", "black", "no-retrain", 0): [0.9],
    }
    together = swept(curves)
    assert len(together) == 4
    for curve, fractions in curves.items():
        for (_, fraction), alone in swept({curve: fractions}, batch_size=7).items():
            assert np.array_equal(together[curve, fraction].predicted, alone.predicted)
            assert np.allclose(together[curve, fraction].probability, alone.probability, atol=1e-6)
            assert together[curve, fraction].ids.tolist() == list(range(7))


def test_predictions_are_those_of_the_model_on_the_imputed_images():
    curve = Curve("morf", "black", "no-retrain", 3)
    targets = (WORLD.labels + 1) % 4
    (predictions,) = swept({curve: [0.3]}, targets=targets).values()
    removed = removed_at(most_relevant_first(WORLD.truth, BATCH.ids, Key(3)), 0.3)
    expected = WORLD.model(torch.where(removed[:, None], 0.0, WORLD.images)).softmax(dim=1)
    assert predictions.predicted.tolist() == expected.argmax(dim=1).tolist()
    assert np.allclose(predictions.probability, expected.gather(1, targets[:, None])[:, 0], atol=1e-6)
    assert predictions.labels.tolist() == WORLD.labels.tolist()  # accuracy is against the label, not the target


def test_an_order_and_its_reverse_are_sorted_once():
    sorts = []

    def counting(maps, ids, key):
        sorts.append(len(maps))
        return most_relevant_first(maps, ids, key)

    orders = {"morf": counting, "lerf": type(least_relevant_first)(counting)}
    curves = {Curve(order, "black", "no-retrain", seed): [0.1, 0.2] for order in orders for seed in (0, 1)}
    list(sweep(curves, orders, {"black": Constant(0.0)}, dict.fromkeys(curves, NoRetrain(MODEL)), WORLD.truth, BATCH,
               WORLD.labels, 4))  # fmt: skip
    assert sorts == [4, 4, 3, 3]  # two batches, two seeds


def test_ties_are_counted_per_image():
    # 1 2 / 3 1: two of four pixels have the same value; all zero: all do, and the map is constant; distinct: none.
    maps = torch.tensor([[[1.0, 2], [3, 1]], [[0, 0], [0, 0]], [[1, 2], [3, 4]]])
    assert tied(maps).tolist() == [[0.5, 0], [1, 1], [0, 0]]
