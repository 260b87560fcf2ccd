"""Intervals, tests and early stopping on worlds whose truth is known: how often they are right.

Seeds are fixed. "False alarm" is how often a right implementation would fail the test under another seed.
"""

import numpy as np
import pytest
from scipy import stats

from roadworthy.experiments.study import looks
from roadworthy.statistics import Block, Stopping, betting_interval, contests, holm


def images(generator, merits, count, ease=None):
    """Per-image srg of methods `(methods, images)`, whose means are exactly `merits`.

    An image survives 9 fractions with probability .5 + (merit + ease)/2 each in LeRF and .5 − (merit + ease)/2 in MoRF;
    how easy it is, it has in common for all methods.
    """
    ease = generator.uniform(-0.2, 0.2, size=count) if ease is None else ease
    lean = (np.asarray(merits)[:, None] + ease) / 2
    return (generator.binomial(9, 0.5 + lean) - generator.binomial(9, 0.5 - lean)) / 9


def contest(values, draws=500, seed=0, stopping=None):
    runs = {f"m{row}": one[None] if one.ndim == 1 else one for row, one in enumerate(values)}
    return contests(Block("evaluator", "imputer", {"srg": runs}), draws=draws, seed=seed, stopping=stopping)["srg"]


def test_score_intervals_cover_the_truth_93_to_97_times_in_100():
    # 1,500 studies of 60 images, a method each of merit .4 and of .75, near the end of the scale. Standard error of a
    # coverage of 95 %: .56 %, so the bounds are 3.5 of them away: false alarm below .1 %.
    generator = np.random.default_rng(0)
    held = []
    for study in range(1500):
        found = contest(images(generator, (0.4, 0.75), 60), seed=study)
        held.append((found.low <= [0.4, 0.75]) & (found.high >= [0.4, 0.75]))
    coverage = np.mean(held, axis=0)
    assert (coverage > 0.93).all(), coverage
    assert (coverage < 0.97).all(), coverage


@pytest.mark.parametrize("merits", [(0.3,) * 5, (0.32, 0.3, 0.28, 0.1)], ids=["all equal", "near and far"])
def test_rank_intervals_hold_all_true_ranks_95_times_in_100(merits):
    # 600 studies of 50 images. True coverage with all equal is about 96.5 %, standard error .75 %: false alarm 2 %.
    generator = np.random.default_rng(1)
    least, most = 1 + np.array([[sum(o > m for o in merits), sum(o >= m for o in merits) - 1] for m in merits]).T
    held = []
    for study in range(600):
        _, low, high = contest(images(generator, merits, 50), seed=study).ranks
        held.append((low <= least).all() and (high >= most).all())
    assert np.mean(held) >= 0.95


def test_two_equal_methods_are_told_apart_5_times_in_100():
    # 2,000 studies: standard error .49 %, so 3.5 to 6.5 % are 3 of them: false alarm .3 %.
    generator = np.random.default_rng(2)
    found = [contest(images(generator, (0.3, 0.3), 40), draws=2).duels.p[0] < 0.05 for _ in range(2000)]
    assert 0.035 < np.mean(found) < 0.065


def test_holm_rejects_any_of_fifteen_true_hypotheses_at_most_5_times_in_100():
    # Six equal methods, 600 studies; Holm is on the safe side here, about 3.5 %: false alarm below 1 %.
    generator = np.random.default_rng(3)
    found = [(holm(contest(images(generator, (0.3,) * 6, 60), draws=2).duels.p) < 0.05).any() for _ in range(600)]
    assert 0.005 < np.mean(found) <= 0.055


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.2], ids=["no seed effect", "as large as the images'", "dominant"])
@pytest.mark.parametrize("seeds", [2, 5])
def test_with_few_seeds_intervals_and_tests_stay_on_the_safe_side(seeds, spread):
    # Two methods of a evaluator that trains: each run shifts a method's score by a normal effect. 300 studies of 60
    # images; coverage is 95 % or more, standard error 1.3 %: false alarm about 1 % at 92 %.
    generator = np.random.default_rng(4)
    held, rejected = [], []
    for study in range(300):
        effects = spread * generator.normal(size=(seeds, 2, 1))
        ease = generator.uniform(-0.2, 0.2, size=60)
        runs = np.stack([images(generator, (0.3, 0.3), 60, ease) for _ in range(seeds)]) + effects
        found = contest(runs.swapaxes(0, 1), seed=study)
        held.append(found.low[0] <= 0.3 <= found.high[0])
        rejected.append(found.duels.p[0] < 0.05)
    assert np.mean(held) >= 0.92
    assert np.mean(rejected) <= 0.085


def test_the_bootstrap_is_paired():
    # Two methods that differ by .05 on every image, whatever the images: no draw may turn them round.
    generator = np.random.default_rng(5)
    base = images(generator, (0.3,), 50)[0]
    noise = 0.001 * generator.normal(size=50)
    found = contest(np.stack([base, base - 0.05 + noise]))
    assert found.duels.probability[0] == 1
    assert found.low[0] < found.score[1]  # yet each score for itself is uncertain by far more


def stop(values, margin, level=0.95, first=32):
    """Look as `compare` does; images used, and the pairs at that moment."""
    methods, count = values.shape
    rule = Stopping(level, margin, methods * (methods - 1) // 2)
    for part in looks(count, first):
        duels = contest(values[:, : part.stop], stopping=rule).duels
        tied = np.maximum(abs(duels.low), abs(duels.high)) < margin
        if (tied | (duels.low > 0) | (duels.high < 0)).all():
            break
    return part.stop, duels, tied


def test_betting_intervals_hold_the_mean_at_all_looks_together():
    # 500 sequences of values in [−1, 1] of mean .3, looked at 9 times; a plain t interval, looked at as often, misses
    # the mean at some look far more often than in 5 of 100. Ville's inequality makes 5 % a bound: false alarm 1 %.
    generator = np.random.default_rng(6)
    missed = {"betting": 0, "t": 0}
    for _ in range(500):
        values = images(generator, (0.3,), 800)[0]
        at = [part.stop for part in looks(800, 32)]
        bets = [betting_interval(values[:n], (-1.0, 1.0), 0.05) for n in at]
        missed["betting"] += any(not low <= 0.3 <= high for low, high in bets)
        missed["t"] += any(stats.ttest_1samp(values[:n], 0.3).pvalue < 0.05 for n in at)
    assert missed["betting"] / 500 <= 0.05
    assert missed["t"] / 500 > 0.1


def test_early_stopping_decides_wrongly_at_most_at_its_stated_rate():
    # Three methods, two of them equal: to call one of those better is wrong. And at a true difference of exactly the
    # margin, to call a tie is wrong. 300 studies each; the bound is 5 %, the rate well below it: false alarm < .1 %.
    generator = np.random.default_rng(7)
    wrong = {"better": 0, "tie": 0}
    for _ in range(300):
        _, duels, _ = stop(images(generator, (0.3, 0.3, 0.0), 600), margin=0.02)
        wrong["better"] += bool(duels.low[0] > 0 or duels.high[0] < 0)
        _, _, tied = stop(images(generator, (0.3, 0.2), 600), margin=0.1)
        wrong["tie"] += bool(tied[0])
    assert wrong["better"] / 300 <= 0.05
    assert wrong["tie"] / 300 <= 0.05


def test_early_stopping_takes_under_a_third_of_the_images_where_methods_differ_plainly():
    # Merits .15 apart, 2,000 images at hand, 40 studies: every one stops early, and all pairs are right.
    generator = np.random.default_rng(8)
    used = []
    for _ in range(40):
        count, duels, _ = stop(images(generator, (0.5, 0.35, 0.2, 0.05), 2000), margin=0.02)
        used.append(count)
        assert (duels.low > 0).all()
    assert max(used) < 2000 / 3
