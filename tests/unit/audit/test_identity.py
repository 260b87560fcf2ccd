"""The leakage identity on random distributions, and the paper's examples by hand."""

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
    identity = Identity(joint / joint.sum())
    # Both sides are sums of 24 terms below 2: rounding is about 1e-15.
    assert sums_up(identity)
    assert identity.leak == pytest.approx(identity.revealed - identity.revealed_within_class, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_each_term_equals_its_definition_by_entropies(seed):
    joint = np.random.default_rng(seed).dirichlet(np.full(24, 0.3)).reshape(3, 2, 4)
    expected = references.literal_identity(joint)
    for name, value in expected.items():
        assert getattr(Identity(joint), name) == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("world", [left_right(0.8), top_bottom(0.7, 0.9), top_bottom(0.9, 0.5), left_right()])
@pytest.mark.parametrize("order", ["morf", "lerf"])
@pytest.mark.parametrize("imputer", [reserved, COINS])
@pytest.mark.parametrize("removed", [0, 1, 2])
def test_the_identity_holds_in_every_world_with_every_order_and_imputer(world, order, imputer, removed):
    identity = removal(world, order, removed, imputer)
    assert sums_up(identity)
    assert min(terms(identity)) > -1e-12


@pytest.mark.parametrize(
    ("order", "imputer", "expected"),
    [
        # The object is removed, the background is uninformative, but the mask is where it was: the outcome is leakage.
        ("morf", reserved, [1, 0, 1, 0]),
        # The mask is hidden: no information is left, as it should be; mask and mitigator cancel.
        ("morf", COINS, [0, 0, 1, 1]),
        # The object is kept and determines the class; so does the mask, so features add nothing to it.
        ("lerf", reserved, [1, 0, 1, 0]),
        ("lerf", COINS, [1, 0, 1, 0]),
    ],
)
def test_an_object_on_the_left_or_right(order, imputer, expected):
    assert terms(removal(left_right(), order, 1, imputer)) == pytest.approx(expected, abs=1e-12)


def test_a_map_that_points_at_nothing_scores_best_if_the_mask_is_revealed_and_badly_if_hidden():
    revealed, hidden = (removal(top_bottom(match=0.75), "lerf", 1, imputer) for imputer in (reserved, COINS))
    assert terms(revealed) == pytest.approx([1, 0, 1, 0], abs=1e-12)
    # One pixel is a coin, the other is the class with .75. The images (top, bottom) have p(x'|0) = ⅜ ⅛ ⅜ ⅛ and
    # p(x'|1) = ⅛ ⅛ ⅜ ⅜ for 00 01 10 11: 01 and 10 are uninformative, 00 and 11 (together ½) leave an entropy of H₂(¼).
    outcome = (1 - (0.25 * 2 + 0.75 * np.log2(4 / 3))) / 2
    assert terms(hidden) == pytest.approx([outcome, 0, 1, 1 - outcome], abs=1e-12)
    assert hidden.revealed_within_class == pytest.approx(0, abs=1e-12)  # minimally revealing
    assert hidden.leak == pytest.approx(hidden.revealed, abs=1e-12)


def test_the_map_of_nothing_starts_at_the_top_for_class_0_and_at_the_bottom_for_class_1():
    # Least relevant first: the top, pixel 0, is less relevant for class 0.
    assert {(case.label, int(np.argmin(case.relevance))) for case in top_bottom(leak=1)} == {(0, 0), (1, 1)}
    assert {(case.label, int(np.argmin(case.relevance))) for case in top_bottom(leak=0)} == {(0, 1), (1, 0)}


def test_a_reserved_value_reveals_the_mask_so_the_mitigator_is_zero():
    for order in ("morf", "lerf"):
        assert removal(top_bottom(0.8, 0.9), order, 1, reserved).mitigator == pytest.approx(0, abs=1e-12)


def test_a_map_independent_of_the_class_has_no_mask_information():
    identity = removal(top_bottom(match=0.75, leak=0.5), "morf", 1, reserved)
    # The kept pixel is the class with .75, and the mask is a coin: all of the outcome, 1 − H₂(¼), is features.
    expected = 1 - (0.25 * 2 + 0.75 * np.log2(4 / 3))
    assert terms(identity) == pytest.approx([expected, expected, 0, 0], abs=1e-12)


def test_morf_removes_the_object_and_lerf_keeps_it():
    # The object is visible with probability 0.9.
    morf, lerf = (removal(left_right(visible=0.9), order, 1, COINS) for order in ("morf", "lerf"))
    assert morf.outcome == pytest.approx(0, abs=1e-12)
    assert lerf.outcome == pytest.approx(0.9, abs=1e-12)


def test_ties_are_broken_with_equal_probability():
    # No object and a constant map: either pixel is removed, so the mask is a fair coin, revealed by a reserved value.
    assert removal(left_right(visible=0), "morf", 1, reserved).revealed == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Identity(np.full((2, 2), 0.25)), "three axes"),
        (lambda: Identity(np.full((2, 2, 2), 0.25)), "sum 2"),
        (lambda: Identity(np.array([[[1.5, -0.5]]])), "minimum -0.5"),
        (lambda: removal(left_right(), "middle", 1, reserved), "'morf' or 'lerf'"),
        (lambda: removal(left_right(), "morf", 3, reserved), "2 pixels"),
        (lambda: top_bottom(match=1.2), "match=1.2"),
    ],
)
def test_invalid_arguments_raise_errors_that_name_them(call, words):
    with pytest.raises(errors.InputError, match=words):
        call()
