"""Coverage and error rates of intervals, tests and early stopping on simulated studies with known truth.

Seeds are fixed. "False alarm": how often a correct implementation would fail the test with another seed.
"""

import numpy as np
import pytest
from scipy import stats

from roadworthy.statistics import Block, BlockKey, StoppingRule, betting_interval, holm, paired_comparisons


def images(generator, merits, count, ease=None):
    """Per-image srg of methods `(methods, images)`, whose means are exactly `merits`.

    At each of 9 fractions an image is correct with probability .5 + (merit + ease)/2 in LeRF and .5 − (merit + ease)/2
    in MoRF. All methods share its ease.
    """
    ease = generator.uniform(-0.2, 0.2, size=count) if ease is None else ease
    lean = (np.asarray(merits)[:, None] + ease) / 2
    return (generator.binomial(9, 0.5 + lean) - generator.binomial(9, 0.5 - lean)) / 9


def compared(values, draws=500, seed=0, stopping=None):
    runs = {f"m{row}": scores[None] if scores.ndim == 1 else scores for row, scores in enumerate(values)}
    block = Block(BlockKey("evaluator", "imputer"), {"srg": runs})
    return paired_comparisons(block, draws=draws, seed=seed, stopping=stopping)["srg"]


def test_score_intervals_cover_the_truth_93_to_97_times_in_100():
    # 1,500 studies of 60 images, a method each of merit .4 and of .75, near the end of the scale. Standard error of a
    # coverage of 95 %: .56 %, so the bounds are 3.5 of them away: false alarm below .1 %.
    generator = np.random.default_rng(0)
    held = []
    for study in range(1500):
        scores = compared(images(generator, (0.4, 0.75), 60), seed=study)
        held.append((scores.low <= [0.4, 0.75]) & (scores.high >= [0.4, 0.75]))
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
        _, low, high = compared(images(generator, merits, 50), seed=study).ranks
        held.append((low <= least).all() and (high >= most).all())
    assert np.mean(held) >= 0.95


def test_two_equal_methods_are_separated_5_times_in_100():
    # 2,000 studies: standard error .49 %, so 3.5 to 6.5 % are 3 of them: false alarm .3 %.
    generator = np.random.default_rng(2)
    p = [compared(images(generator, (0.3, 0.3), 40), draws=2).differences.p[0] for _ in range(2000)]
    assert 0.035 < np.mean(np.array(p) < 0.05) < 0.065


def test_holm_rejects_any_of_fifteen_true_hypotheses_at_most_5_times_in_100():
    # Six equal methods, 600 studies; Holm is conservative here, about 3.5 %: false alarm below 1 %.
    generator = np.random.default_rng(3)
    p = [compared(images(generator, (0.3,) * 6, 60), draws=2).differences.p for _ in range(600)]
    assert 0.005 < np.mean([holm(of_study).min() < 0.05 for of_study in p]) <= 0.055


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.2], ids=["no seed effect", "as large as the images'", "dominant"])
@pytest.mark.parametrize("seeds", [2, 5])
def test_intervals_and_tests_are_conservative_with_few_seeds(seeds, spread):
    # Two methods and an evaluator that trains: each run shifts a method's score by a normal effect. 300 studies of 60
    # images; coverage is 95 % or more, standard error 1.3 %: false alarm about 1 % at 92 %.
    generator = np.random.default_rng(4)
    held, rejected = [], []
    for study in range(300):
        effects = spread * generator.normal(size=(seeds, 2, 1))
        ease = generator.uniform(-0.2, 0.2, size=60)
        runs = np.stack([images(generator, (0.3, 0.3), 60, ease) for _ in range(seeds)]) + effects
        comparisons = compared(runs.swapaxes(0, 1), seed=study)
        held.append(comparisons.low[0] <= 0.3 <= comparisons.high[0])
        rejected.append(comparisons.differences.p[0] < 0.05)
    assert np.mean(held) >= 0.92
    assert np.mean(rejected) <= 0.085


def test_the_bootstrap_is_paired():
    # Two methods that differ by .05 on every image: no draw may reverse them.
    generator = np.random.default_rng(5)
    base = images(generator, (0.3,), 50)[0]
    noise = 0.001 * generator.normal(size=50)
    comparisons = compared(np.stack([base, base - 0.05 + noise]))
    assert comparisons.differences.probability[0] == 1
    assert comparisons.low[0] < comparisons.score[1]  # although each score alone is far more uncertain


def looks(images, first=32, growth=1.5):
    """How many images have been evaluated at each look."""
    counts = [first]
    while counts[-1] < images:
        counts.append(min(int(counts[-1] * growth), images))
    return counts


def stop(values, margin, confidence=0.95):
    """Stop once all pairs are decided. Returns the images used, the differences, and which of them are ties."""
    methods, count = values.shape
    rule = StoppingRule(confidence, margin, methods * (methods - 1) // 2)
    for used in looks(count):
        differences = compared(values[:, :used], stopping=rule).differences
        tied = np.maximum(abs(differences.low), abs(differences.high)) < margin
        if (tied | (differences.low > 0) | (differences.high < 0)).all():
            break
    return used, differences, tied


def test_betting_intervals_contain_the_mean_at_all_looks_simultaneously():
    # 500 sequences of values in [−1, 1] of mean .3, looked at 9 times; a plain t interval, looked at as often, misses
    # the mean at some look far more often than 5 times in 100. Ville's inequality makes 5 % a bound: false alarm 1 %.
    generator = np.random.default_rng(6)
    missed = {"betting": 0, "t": 0}
    for _ in range(500):
        values = images(generator, (0.3,), 800)[0]
        bets = [betting_interval(values[:n], (-1.0, 1.0), 0.05) for n in looks(800)]
        missed["betting"] += any(not low <= 0.3 <= high for low, high in bets)
        missed["t"] += any(stats.ttest_1samp(values[:n], 0.3).pvalue < 0.05 for n in looks(800))
    assert missed["betting"] / 500 <= 0.05
    assert missed["t"] / 500 > 0.1


def test_early_stopping_errs_at_most_at_its_stated_rate():
    # Three methods, two of them equal: calling one of those better is wrong. At a true difference of exactly the
    # margin, calling a tie is wrong. 300 studies each; the bound is 5 %, the rate well below it: false alarm < .1 %.
    generator = np.random.default_rng(7)
    wrong = {"better": 0, "tie": 0}
    for _ in range(300):
        _, differences, _ = stop(images(generator, (0.3, 0.3, 0.0), 600), margin=0.02)
        wrong["better"] += bool(differences.low[0] > 0 or differences.high[0] < 0)
        _, _, tied = stop(images(generator, (0.3, 0.2), 600), margin=0.1)
        wrong["tie"] += bool(tied[0])
    assert wrong["better"] / 300 <= 0.05
    assert wrong["tie"] / 300 <= 0.05


def test_early_stopping_uses_less_than_a_third_of_the_images_if_methods_differ_clearly():
    # Merits .15 apart, 2,000 images, 40 studies: every study stops early and orders all pairs correctly.
    generator = np.random.default_rng(8)
    used = []
    for _ in range(40):
        count, differences, _ = stop(images(generator, (0.5, 0.35, 0.2, 0.05), 2000), margin=0.02)
        used.append(count)
        assert (differences.low > 0).all()
    assert max(used) < 2000 / 3
