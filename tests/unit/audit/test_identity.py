"""Leakage taken apart: the identity on random distributions, and the paper's examples by hand."""

import numpy as np
import pytest

import references
from roadworthy.audit.discrete import background, left_right, removal, reserved, top_bottom
from roadworthy.audit.identity import Identity
from roadworthy.core import errors

COINS = background((0, 1))


def terms(identity):
    return [identity.outcome, identity.feature, identity.mask, identity.mitigator]


def sums_up(identity):
    return identity.outcome == pytest.approx(identity.feature + identity.mask - identity.mitigator, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_identity_holds_on_any_distribution(seed):
    generator = np.random.default_rng(seed)
    joint = generator.exponential(size=(2, 3, 4)) * (generator.random((2, 3, 4)) < 0.6)
    found = Identity(joint / joint.sum())
    # Both sides are sums of some 24 terms below 2: rounding is about 1e-15.
    assert sums_up(found)
    assert found.leak == pytest.approx(found.revealed - found.revealed_within_class, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_each_term_is_what_entropies_say(seed):
    joint = np.random.default_rng(seed).dirichlet(np.full(24, 0.3)).reshape(3, 2, 4)
    expected = references.literal_identity(joint)
    for name, value in expected.items():
        assert getattr(Identity(joint), name) == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("world", [left_right(0.8), top_bottom(0.7, 0.9), top_bottom(0.9, 0.5), left_right()])
@pytest.mark.parametrize("order", ["morf", "lerf"])
@pytest.mark.parametrize("fill", [reserved, COINS])
@pytest.mark.parametrize("removed", [0, 1, 2])
def test_the_identity_holds_in_every_world_order_and_fill(world, order, fill, removed):
    found = removal(world, order, removed, fill)
    assert sums_up(found)
    assert min(terms(found)) > -1e-12


@pytest.mark.parametrize(
    ("order", "fill", "expected"),
    [
        # The object is gone, the background says nothing, but the hole stands where it was: the outcome is all leak.
        ("morf", reserved, [1, 0, 1, 0]),
        # Nothing shows the hole: nothing is left, as there should be; mask and mitigator cancel.
        ("morf", COINS, [0, 0, 1, 1]),
        # The object is kept and tells the class; the mask told it already, so features add nothing to it.
        ("lerf", reserved, [1, 0, 1, 0]),
        ("lerf", COINS, [1, 0, 1, 0]),
    ],
)
def test_an_object_left_or_right(order, fill, expected):
    assert terms(removal(left_right(), order, 1, fill)) == pytest.approx(expected, abs=1e-12)


def test_a_map_that_points_at_nothing_scores_best_if_the_hole_shows_and_badly_if_not():
    shown, hidden = (removal(top_bottom(told=0.75), "lerf", 1, fill) for fill in (reserved, COINS))
    assert terms(shown) == pytest.approx([1, 0, 1, 0], abs=1e-12)
    # One pixel is a coin, the other is the class with .75. The images (top, bottom) have p(x'|0) = ⅜ ⅛ ⅜ ⅛ and
    # p(x'|1) = ⅛ ⅛ ⅜ ⅜ for 00 01 10 11: 01 and 10 say nothing, 00 and 11 (together ½) leave H₂(¼) of doubt.
    outcome = (1 - (0.25 * 2 + 0.75 * np.log2(4 / 3))) / 2
    assert terms(hidden) == pytest.approx([outcome, 0, 1, 1 - outcome], abs=1e-12)
    assert hidden.revealed_within_class == pytest.approx(0, abs=1e-12)  # minimally revealing
    assert hidden.leak == pytest.approx(hidden.revealed, abs=1e-12)


def test_the_map_of_nothing_starts_at_the_top_for_the_first_class_and_at_the_bottom_for_the_other():
    # Least relevant first: the top, pixel 0, has the lower score where the class is 0.
    assert {(case.label, int(np.argmin(case.scores))) for case in top_bottom(leak=1)} == {(0, 0), (1, 1)}
    assert {(case.label, int(np.argmin(case.scores))) for case in top_bottom(leak=0)} == {(0, 1), (1, 0)}


def test_the_image_with_a_reserved_value_shows_the_mask_so_the_mitigator_is_gone():
    for order in ("morf", "lerf"):
        assert removal(top_bottom(0.8, 0.9), order, 1, reserved).mitigator == pytest.approx(0, abs=1e-12)


def test_a_map_that_knows_no_class_has_no_mask_information():
    found = removal(top_bottom(told=0.75, leak=0.5), "morf", 1, reserved)
    # The kept pixel is the class with .75, and the mask is a coin: all of the outcome, 1 − H₂(¼), is features.
    expected = 1 - (0.25 * 2 + 0.75 * np.log2(4 / 3))
    assert terms(found) == pytest.approx([expected, expected, 0, 0], abs=1e-12)


def test_most_and_least_relevant_first_are_told_apart():
    # 0.9 of the objects are there. MoRF takes them away, LeRF keeps them.
    morf, lerf = (removal(left_right(seen=0.9), order, 1, COINS) for order in ("morf", "lerf"))
    assert morf.outcome == pytest.approx(0, abs=1e-12)
    assert lerf.outcome == pytest.approx(0.9, abs=1e-12)


def test_ties_leave_every_choice_equally_likely():
    # No object, no map: the one removed pixel is either, so the mask is a coin of 1 bit that a reserved value shows.
    assert removal(left_right(seen=0), "morf", 1, reserved).revealed == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Identity(np.full((2, 2), 0.25)), "three axes"),
        (lambda: Identity(np.full((2, 2, 2), 0.25)), "sum 2"),
        (lambda: Identity(np.array([[[1.5, -0.5]]])), "minimum -0.5"),
        (lambda: removal(left_right(), "middle", 1, reserved), "'morf' or 'lerf'"),
        (lambda: removal(left_right(), "morf", 3, reserved), "2 pixels"),
        (lambda: top_bottom(told=1.2), "told=1.2"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words):
    with pytest.raises(errors.InputError, match=words):
        call()
