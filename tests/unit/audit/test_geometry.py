"""γ and blurriness against slow references; debiased accuracies and leads against numbers derived by hand."""

import numpy as np
import pandas as pd
import pytest
import torch

import references
import roadworthy as rw
import worlds
from roadworthy.audit.debiasing import debiased, gamma_table, leads
from roadworthy.audit.geometry import (
    Geometry,
    Reconstruction,
    blurriness,
    class_means,
    geometry_of,
    measure_geometry,
)
from roadworthy.core.random import Key
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first

ORDERS = {"morf": most_relevant_first, "lerf": least_relevant_first}
IMAGES, LABELS = Key(0).uniform(range(9), (2, 7, 6)), torch.tensor([0, 1, 2, 0, 1, 0, 0, 1, 1])
DATA = rw.datasets.Arrays(IMAGES, LABELS)
RELEVANCE = {"scatter": Key(1).uniform(range(9), (7, 6)), "rows": torch.arange(42.0).reshape(7, 6).expand(9, 7, 6)}
MAPS = {name: lambda name=name: RELEVANCE[name] for name in RELEVANCE}


def measured(size=64, imputer=rw.NoisyLinear()):  # noqa: B008
    return gamma_table(geometry_of(DATA, LABELS, MAPS, ORDERS, (0.0, 0.3, 0.7), Key(0), imputer, size))


def test_gamma_follows_its_definition():
    gammas = measured().set_index(["method", "order", "fraction"])["raw"]
    assert len(gammas) == 8  # two maps, two orders, two fractions: 0 removes nothing
    for (method, order, fraction), gamma in gammas.items():
        removed = rw.removal_mask(RELEVANCE[method], fraction, order)
        expected = references.literal_gamma(IMAGES.numpy(), LABELS.numpy(), removed.numpy())
        # Imputation is accurate to 1e-4 where a pixel deviates by about .25: a relative 1e-3 per term at worst.
        assert gamma == pytest.approx(expected, rel=1e-3)


def test_gamma_does_not_depend_on_batch_size_or_imputation_noise():
    whole = measured()
    for other in (measured(size=1), measured(size=4), measured(imputer=rw.NoisyLinear(noise=0.3))):
        # Sums of squares in another order: float64 rounding; the imputed images are the same bytes.
        pd.testing.assert_frame_equal(other, whole, rtol=1e-12)


def test_progress_counts_the_images_of_every_method():
    sizes = []
    geometry_of(DATA, LABELS, MAPS, ORDERS, (0.3,), Key(0), size=4, advance=sizes.append)
    assert sizes == [4, 4, 1, 4, 4, 1]


def test_differences_between_classes_are_not_geometry():
    # An offset per class, added to every image of the class, vanishes with the class mean.
    offsets = Key(5).uniform(range(3), (2, 7, 6))
    shifted = rw.datasets.Arrays((IMAGES + offsets[LABELS]) / 2, LABELS)
    table = gamma_table(geometry_of(shifted, LABELS, MAPS, ORDERS, (0.3, 0.7), Key(0)))
    # The solver's 1e-4 applies to deviations of half the size, else equal.
    assert np.allclose(table["raw"], measured()["raw"], rtol=2e-3)


def test_planes_are_restored_so_gamma_is_near_zero_and_clipped():
    planes = worlds.ramp(9, 9) * torch.linspace(0.1, 1, 6).reshape(6, 1, 1, 1)
    inner = torch.zeros(6, 9, 9)
    inner[:, 1:-1, 1:-1] = 1
    batches = [(rw.Batch(torch.arange(6), planes, torch.zeros(6, dtype=torch.int64)), {"inner": inner})]
    means = class_means(batch for batch, _ in batches)
    table = gamma_table(measure_geometry(batches, means, {"morf": most_relevant_first}, [49 / 81], Key(0)))
    assert table["raw"].item() < 1e-6
    assert table["gamma"].item() == 0.05
    assert table["clipped"].item()


def test_the_interval_of_gamma_is_that_of_a_ratio():
    point = Reconstruction("m", "morf", 0.5, np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 4.0]))
    row = gamma_table(Geometry((point,), {"m": np.zeros(3)})).iloc[0]
    # γ = 6/10; deviations 1 − 1.2, 2 − 2.4, 3 − 2.4 = −.2, −.4, .6: error = sqrt(3/2 · .56)/10 = .0917; t(2) = 4.303.
    assert row["raw"] == pytest.approx(0.6)
    assert row["low"] == pytest.approx(0.6 - 4.303 * 0.09165, abs=1e-4)
    assert row["high"] == pytest.approx(0.6 + 4.303 * 0.09165, abs=1e-4)
    assert np.isnan(row["optimum"])


def test_blurriness_is_near_one_for_smooth_maps_zero_for_scatter_and_negative_for_a_checkerboard():
    size, ids = 16, torch.arange(50)
    down, right = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    smooth, checks = (down + 0.01 * right)[None].float(), ((down + right) % 2)[None].float()
    scatter = Key(0).uniform(ids, (size, size))

    def blur(maps):
        return blurriness(most_relevant_first(maps, torch.arange(len(maps)), Key(0))).mean()

    # Ascending rows: neighbors in a row are 1 of 256 ranks apart, rows 16; 1 − mean squared step/(2 variance) is
    # 1 − (.5·1 + .5·256)/(2·5461) = .988, minus the bias of the border.
    assert blur(smooth) == pytest.approx(0.988, abs=0.12)
    # −1/255 expected; one image has a standard deviation of about 1/sqrt(480 pairs) = .046, the mean of 50 has .0065.
    assert blur(scatter) == pytest.approx(-1 / 255, abs=5 * 0.0065)
    # All neighbors belong to the other half: the halves' means are ±64 of a variance 5461: −64²/5461 = −.75.
    assert blur(checks) == pytest.approx(-0.75, abs=0.05)
    assert blur(torch.exp(9 * scatter)) == blur(scatter)  # independent of scale
    assert blur(-scatter) == pytest.approx(blur(scatter), abs=1e-12)  # and of direction


def curves(**methods):
    """method = {order: accuracies at 0, .2, .4}"""
    return pd.DataFrame(
        [
            (method, order, "linear", "retrain", fraction, accuracy)
            for method, orders in methods.items()
            for order, row in orders.items()
            for fraction, accuracy in zip((0.0, 0.2, 0.4), row, strict=True)
        ],
        columns=["method", "order", "imputer", "evaluator", "fraction", "accuracy"],
    )


def gammas(**methods):
    return pd.DataFrame(
        [
            (method, order, fraction, gamma, False)
            for method, row in methods.items()
            for order in ("morf", "lerf")
            for fraction, gamma in zip((0.2, 0.4), row, strict=True)
        ],
        columns=["method", "order", "fraction", "gamma", "clipped"],
    )


def test_a_debiased_drop_is_the_drop_divided_by_gamma_and_undefined_below_chance():
    points = debiased(curves(a={"morf": [0.9, 0.8, 0.6]}), gammas(a=[0.5, 0.4]), chance=0.5)
    # .9 − .1/.5 = .7; .9 − .3/.4 = .15 is below chance.
    assert points["debiased"].tolist() == [pytest.approx(0.7), pytest.approx(np.nan, nan_ok=True)]
    assert points["applies"].all()
    # With chance .1 it is defined.
    points = debiased(curves(a={"morf": [0.9, 0.8, 0.6]}), gammas(a=[0.5, 0.4]), chance=0.1)
    assert points["debiased"].tolist() == pytest.approx([0.7, 0.15])


def test_a_debiased_accuracy_of_exactly_chance_is_defined_despite_rounding():
    points = debiased(curves(a={"morf": [0.9, 0.7, 0.7]}), gammas(a=[0.5, 0.5]), chance=0.5)
    # .9 − .2/.5 = .5, which is 0.4999999999999999 in floating point.
    assert points["debiased"].tolist() == pytest.approx([0.5, 0.5])


def test_debiasing_applies_to_retrained_evaluators_only():
    table = curves(a={"morf": [0.9, 0.8, 0.6]}).assign(evaluator="no-retrain")
    assert not debiased(table, gammas(a=[0.5, 0.4]), chance=0.5)["applies"].any()


def test_one_lead_is_all_geometry_and_another_none():
    table = curves(blob={"morf": [0.9, 0.7, 0.7]}, dust={"morf": [0.9, 0.85, 0.85]}, flat={"morf": [0.9, 0.9, 0.9]})
    result = leads(debiased(table, gammas(blob=[0.8, 0.8], dust=[0.2, 0.2], flat=[0.2, 0.2]), chance=0.5))
    # blob drops .2 = .8·.25, dust .05 = .2·.25: the same debiased loss of .25, so the lead is (.8 − .2)·.25 = .15.
    # dust over flat: equal γ, so none of its .05 is geometry.
    assert result["method"].tolist() == ["blob", "dust"]
    assert result["lead"].tolist() == pytest.approx([0.15, 0.05])
    assert result["geometry"].tolist() == pytest.approx([0.15, 0.0], abs=1e-12)
    assert "a lead of 15.0 percentage points" in result["text"][0]
    assert "none of it due to geometry" in result["text"][1]


def test_in_lerf_the_smaller_drop_leads_and_dust_gains_by_geometry():
    table = curves(blob={"lerf": [0.9, 0.7, 0.7]}, dust={"lerf": [0.9, 0.87, 0.87]})
    (row,) = leads(debiased(table, gammas(blob=[0.8, 0.8], dust=[0.2, 0.2]), chance=0.5)).to_dict("records")
    # Losses .2/.8 = .25 and .03/.2 = .15; lead .2 − .03 = .17; geometry (.8 − .2)·(.25 + .15)/2 = .12 of it, 71 %.
    assert row["method"] == "dust"
    assert row["lead"] == pytest.approx(0.17)
    assert row["geometry"] == pytest.approx(0.12)
    assert row["text"].startswith("dust over blob in LeRF: on average a lead of 17.0")
    assert "12.0 of them (71%) due to geometry (γ 0.20 vs 0.80)" in row["text"]


def test_geometry_larger_than_the_lead_is_all_of_it():
    table = curves(blob={"morf": [0.9, 0.7, 0.7]}, dust={"morf": [0.9, 0.84, 0.84]})
    (text,) = leads(debiased(table, gammas(blob=[0.8, 0.8], dust=[0.2, 0.2]), chance=0.5))["text"]
    # Losses .2/.8 = .25 and .06/.2 = .3: dust lost more; geometry (.8 − .2)·(.25 + .3)/2 = .165 of a lead of .14.
    assert "a lead of 14.0" in text
    assert "all of it due to geometry, which alone gives 16.5" in text


def test_a_lead_that_vanishes_where_debiasing_is_defined_is_reported_as_none():
    table = curves(late={"morf": [0.9, 0.85, 0.5]}, early={"morf": [0.9, 0.8, 0.8]})
    (text,) = leads(debiased(table, gammas(late=[0.5, 0.5], early=[0.5, 0.5]), chance=0.5))["text"]
    # Drops .05 and .4 against .1 and .1: late leads. But .9 − .4/.5 = .1 is below chance; at .2 it is .05 behind.
    assert "at 1 of 2 fractions no lead (-5.0 percentage points; γ 0.50 vs 0.50)" in text


def test_an_accuracy_above_that_of_whole_images_has_no_debiased_one():
    # Measured: IG-SG in LeRF at 30 % removed, .53 with .51 on whole images; γ = .06 turned a gain of .02 into .33.
    # Where γ is clipped it is the same. A debiased accuracy equal to that of whole images is defined.
    points = debiased(curves(a={"lerf": [0.51, 0.53, 0.51]}), gammas(a=[0.06, 0.05]), chance=0.1)
    assert points["debiased"].tolist() == pytest.approx([np.nan, 0.51], nan_ok=True)
    assert "above that of whole images" in points["note"][0]
    clipped = gammas(a=[0.05, 0.05]).assign(clipped=True)
    points = debiased(curves(a={"lerf": [0.51, 0.53, 0.5]}), clipped, chance=0.1)
    assert points["debiased"].tolist() == pytest.approx([np.nan, 0.31], nan_ok=True)  # .51 − .01/.05
    assert "above that of whole images" in points["note"][0]
    assert "clipped" in points["note"][1]


def test_a_debiased_accuracy_above_1_is_undefined():
    # Accuracy may rise without the least relevant pixels: .8 + .1/.2 = 1.3 is not a valid accuracy.
    points = debiased(curves(a={"lerf": [0.8, 0.9, 0.8]}), gammas(a=[0.2, 0.5]), chance=0.1)
    assert points["debiased"].tolist() == pytest.approx([np.nan, 0.8], nan_ok=True)


def test_the_sentence_says_when_no_debiased_accuracy_is_defined():
    table = curves(blob={"morf": [0.9, 0.5, 0.5]}, dust={"morf": [0.9, 0.85, 0.85]})
    (text,) = leads(debiased(table, gammas(blob=[0.1, 0.1], dust=[0.2, 0.2]), chance=0.5))["text"]
    assert "undefined" in text


def test_invalid_inputs_raise_errors_that_name_the_problem():
    one_each = torch.arange(9)
    with pytest.raises(rw.errors.InputError, match="one image only"):
        geometry_of(DATA, one_each, MAPS, ORDERS, (0.3,), Key(0))
    with pytest.raises(rw.errors.ShapeError, match="m: 8 maps and 9 labels for 9 images"):
        geometry_of(DATA, LABELS, {"m": lambda: torch.rand(8, 7, 6)}, ORDERS, (0.3,), Key(0))
    with pytest.raises(rw.errors.InputError, match="a fraction above 0"):
        geometry_of(DATA, LABELS, MAPS, ORDERS, (0.0,), Key(0))
    same = rw.datasets.Arrays(torch.full((4, 1, 5, 5), 0.5))
    with pytest.raises(rw.errors.InputError, match="γ is undefined"):
        gamma_table(geometry_of(same, torch.zeros(4), {"m": lambda: torch.rand(4, 5, 5)}, ORDERS, (0.4,), Key(0)))
    with pytest.raises(rw.errors.RangeError, match="chance=10"):
        debiased(curves(a={"morf": [1, 1, 1]}), gammas(a=[1, 1]), chance=10)
    both = pd.concat([curves(a={"morf": [1, 1, 1]}), curves(a={"morf": [1, 1, 1]}).assign(imputer="fixed")])
    with pytest.raises(rw.errors.InputError, match="2 imputers"):
        debiased(both, gammas(a=[1, 1]), chance=0.5)
