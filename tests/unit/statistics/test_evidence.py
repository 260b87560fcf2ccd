"""Evidence by betting: who is best, what is the order, on the data set or beyond it."""

import numpy as np
import pytest

from roadworthy.statistics import StoppingRule
from roadworthy.statistics.anytime import anytime_bounds
from roadworthy.statistics.early_stopping import order_of_taking
from roadworthy.statistics.evidence import CAP, HORIZONS, best_evidence, bets, interval, pair_evidence, weakest_way

NAMES = ("a", "b", "c")


def scores(means, images, seed=0, spread=0.3):
    """Values `(methods, images)` in [−1, 1] that take −spread and +spread around the mean, independently."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(len(means), images))
    return np.asarray(means)[:, None] + spread * signs


def test_the_wealth_is_the_average_over_horizons_of_products():
    # Two values .5 and −.25 within ±1. Before the first, the spread is that of one value of ±.5: .5. Before the second:
    # (.25 + .25)/2 − (.5/2)² = .1875. Stakes sqrt(8/h)/spread, at most CAP.
    stakes = [np.minimum(np.sqrt(8 / HORIZONS) / spread, CAP) for spread in (0.5, np.sqrt(0.1875))]
    wealth = ((1 + stakes[0] * 0.5) * (1 - stakes[1] * 0.25)).mean()
    played = bets(np.array([0.5, -0.25]), 1.0)
    assert played.log_wealth()[-1] == pytest.approx(np.log(wealth))
    assert played.final_wealth(0.0) == pytest.approx(np.log(wealth))


def test_without_replacement_bets_are_against_the_mean_of_the_images_that_are_left():
    # Of 4 images with mean 0, the first scores .5: the mean of the 3 left is −1/6, so −.25 is only 1/12 below it.
    stakes = [np.minimum(np.sqrt(8 / HORIZONS) / spread, CAP) for spread in (0.5, np.sqrt(0.1875))]
    wealth = ((1 + stakes[0] * 0.5) * (1 - stakes[1] / 12)).mean()
    assert bets(np.array([0.5, -0.25]), 1.0, population=4).final_wealth(0.0) == pytest.approx(np.log(wealth))


def test_the_interval_ends_where_the_wealth_reaches_its_goal():
    values = scores([0.1], 400)[0]
    low, high = interval(values, 1.0, 0.05)
    assert bets(values, 1.0).final_wealth(low) == pytest.approx(np.log(40), abs=1e-3)
    assert bets(-values, 1.0).final_wealth(-high) == pytest.approx(np.log(40), abs=1e-3)
    assert low < values.mean() < high


def test_the_mean_of_a_finite_data_set_is_known_in_the_end():
    values = scores([0.1], 200)[0]
    assert interval(values, 1.0, 0.05, population=200) == pytest.approx((values.mean(), values.mean()))
    halfway, beyond = interval(values[:100], 1.0, 0.05, population=200), interval(values[:100], 1.0, 0.05)
    assert halfway[1] - halfway[0] < 0.9 * (beyond[1] - beyond[0])
    assert (best_evidence(scores([0.5, 0.1, 0.0], 50), 2.0, population=50)[0, 1:] == np.inf).all()


def test_the_best_needs_less_evidence_than_each_pair_alone():
    # b and c are worse than a; against each of them the bets are on a, so the evidence is about that of the pair.
    values = scores([0.3, 0.15, 0.1], 600)
    evidence, alone = best_evidence(values, 2.0), pair_evidence(values, 2.0)
    assert evidence[0, 1] == evidence[0, 2] > 3
    assert evidence[0, 1] > alone[0, 1] - 1  # the weaker of two pairs, less what was lost before a led
    assert (evidence[1:] == 0).all()
    rule = StoppingRule(0.95, 0.02, 351, "best", NAMES, images=600)
    ranked = rule._replace(until="ranked")
    # 2/.7 against 2 · 2/.5, and the bounds of a pair 2 · 3/.2
    assert (rule.decision_factor, ranked.decision_factor) == pytest.approx((20 / 7, 8))
    assert 1 / rule.error_of("a", "b") == pytest.approx(3 / (0.05 * 0.2))


def test_an_order_needs_every_way_to_be_refuted():
    # [a, b]: evidence that a is better than b. From c to a there are two ways: direct, refuted with 2, and by way of b,
    # where c → b is refuted with 8 and b → a with 9. "a better than c" has the evidence of the weaker way: 2.
    found = weakest_way(np.array([[np.inf, 9.0, 2.0], [0.0, np.inf, 8.0], [0.0, 0.0, np.inf]]))
    assert found[0, 2] == 2
    # The order b, c, a has the steps b → c, with no evidence against it, and c → a: only 2 speaks against b before a.
    assert found[0, 1] == 2
    # From c to b by way of a: c → a with 2, a → b with 0.
    assert found[1, 2] == 2


def test_shares_of_the_error_add_up_to_it():
    rule = StoppingRule(0.95, 0.02, 45, "best", ("a", "b", "c"), ("x", "y"), blocks=1)
    names = ("a", "b", "c", "x", "y", *(f"copy {n}" for n in range(5)))
    errors = [rule.error_of(p, q) for i, p in enumerate(names) for q in names[i + 1 :]]
    # 45 pairs of 10: 9 of candidates without the pair of the two controls, 36 others
    assert len(errors) == rule.comparisons
    assert sum(errors) == pytest.approx(0.05 * 0.3)
    assert rule.deciding_pairs == 9


def test_images_are_bet_on_in_the_order_in_which_they_were_taken():
    rule = StoppingRule(0.95, 0.02, 3, "best", NAMES, images=100, seed=4)
    values = scores([0.3, 0.2, 0.1], 60)
    order = order_of_taking(100, 4)[:60]
    by_row = values[:, np.argsort(order)]  # as results are stored
    assert (by_row[:, rule.taken(60)] == values).all()
    bounds, given = (
        anytime_bounds(NAMES, *part) for part in ((by_row, 2.0, rule), (values, 2.0, rule._replace(seed=None)))
    )
    assert bounds.low.tolist() == given.low.tolist()


def test_what_is_decided_excludes_zero():
    values = scores([0.3, 0.15, 0.14], 500)
    bounds = anytime_bounds(NAMES, values, 2.0, StoppingRule(0.95, 0.02, 3, "best", NAMES))
    assert (bounds.low[:2] > 0).all()  # a against b and c
    assert bounds.low[2] < 0 < bounds.high[2]  # b against c is not asked
    assert bounds.corrected is not None
    assert ((bounds.corrected < 0.05) == [True, True, False]).all()
    quick = anytime_bounds(NAMES, values, 2.0, StoppingRule(0.95, 0.02, 3, "best", NAMES), intervals=False)
    assert ((quick.low > 0) == (bounds.low > 0)).all()
    assert ((quick.high < 0) == (bounds.high < 0)).all()


@pytest.mark.parametrize("until", ["best", "ranked"])
@pytest.mark.parametrize("finite", [False, True])
def test_equal_methods_are_rarely_separated(until, finite):
    # Two equal best methods and a worse one, 200 studies of 300 images; with `finite`, of 600 whose means are equal. A
    # rate of 5 % is the bound (14 of 200 or more: once in 10 such tests); the rate is well below it.
    generator, wrong = np.random.default_rng(1), 0
    rule = StoppingRule(0.95, 0.02, 3, until, NAMES, images=600, finite=finite)
    for _ in range(200):
        values = np.clip(generator.normal([[0.2], [0.2], [-0.2]], 0.2, size=(3, 600)), -1, 1)
        values[1] += values[0].mean() - values[1].mean() if finite else 0.0
        bounds = anytime_bounds(NAMES, values[:, :300], 2.2, rule, intervals=False)
        wrong += bool(bounds.low[0] > 0 or bounds.high[0] < 0)
    assert wrong <= 14
