"""Bits from accuracies, against joint distributions whose mutual information is summed term by term."""

import numpy as np
import pytest

from roadworthy.audit.information import (
    binary_entropy,
    bits_at_least,
    bits_if_optimal,
    entropy,
    inverse_binary_entropy,
    optimal_accuracy,
)


def joints(classes, number=300):
    """Random joint distributions p(class, mask), from nearly independent to nearly deterministic."""
    rng = np.random.default_rng(classes)
    for _ in range(number):
        weights = rng.dirichlet(np.full(classes * 5, 10 ** rng.uniform(-1.5, 1))).reshape(classes, 5)
        yield weights / weights.sum()


def information(joint):
    """I(C;M), by its definition."""
    by_class, by_mask = joint.sum(axis=1), joint.sum(axis=0)
    return sum(
        joint[c, m] * np.log2(joint[c, m] / (by_class[c] * by_mask[m]))
        for c in range(joint.shape[0])
        for m in range(joint.shape[1])
        if joint[c, m] > 0
    )


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_bounds_of_the_best_classifier_contain_the_mutual_information(classes):
    for joint in joints(classes):
        shares, best = joint.sum(axis=1), joint.max(axis=0).sum()
        assert bits_at_least(best, shares) <= information(joint) + 1e-9
        assert bits_if_optimal(best, shares) >= information(joint) - 1e-9


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_lower_bound_holds_for_any_classifier(classes):
    rng = np.random.default_rng(7)
    for joint in joints(classes):
        guesses = rng.integers(classes, size=5)
        accuracy = joint[guesses, np.arange(5)].sum()
        assert bits_at_least(accuracy, joint.sum(axis=1)) <= information(joint) + 1e-9


def test_the_lower_bound_is_tight_where_all_errors_are_equally_likely():
    # 4 equal classes, correct with probability .7 and any other with .1: I = 2 − H(.7, .1, .1, .1).
    symmetric = np.full((4, 4), 0.1 / 4) + np.eye(4) * 0.6 / 4
    assert bits_at_least(0.7, [0.25] * 4) == pytest.approx(information(symmetric), abs=1e-12)
    assert bits_at_least(0.7, [0.25] * 4) == pytest.approx(2 - entropy([0.7, 0.1, 0.1, 0.1]), abs=1e-12)


def test_the_upper_bound_is_tight_for_erasures():
    # 2 equal classes, the erasure channel: half of the masks determine the class, half do not: I = ½, accuracy ¾.
    erased = np.array([[0.25, 0, 0.25], [0, 0.25, 0.25]])
    assert bits_if_optimal(0.75, [0.5, 0.5]) == pytest.approx(information(erased), abs=1e-12) == 0.5
    # 4 equal classes, narrowed down to two: accuracy ½, I = 1; Hellman and Raviv's 2 − 2·½ = 1 is tight here too.
    assert bits_if_optimal(0.5, [0.25] * 4) == 1.0
    # 3 classes at chance carry no information, where Hellman and Raviv's log₂3 − 2·⅔ leaves .25 bits open.
    assert bits_if_optimal(1 / 3, [1 / 3] * 3) == pytest.approx(0, abs=1e-12)


def test_below_chance_counts_as_chance_also_with_unequal_classes():
    assert bits_at_least(0.05, [0.1] * 10) == bits_at_least(0.1, [0.1] * 10) == pytest.approx(0, abs=1e-12)
    assert bits_if_optimal(0.05, [0.1] * 10) == pytest.approx(0, abs=1e-12)
    assert bits_at_least(0.8, [0.9, 0.1]) == pytest.approx(0, abs=1e-12)


def test_one_class_has_no_information():
    assert bits_at_least(1.0, [1.0]) == bits_if_optimal(1.0, [1.0]) == 0.0


@pytest.mark.parametrize("accuracy", [0.5, 0.500001, 0.6, 0.9, 0.999999, 1 - 1e-12, 1.0])
def test_the_inverse_undoes_the_entropy(accuracy):
    # Near ½ the entropy is flat, 1 − H₂ ≈ 2.9·(a − ½)²: 1e-16 in bits is 1e-8 in accuracy.
    assert inverse_binary_entropy(binary_entropy(accuracy)) == pytest.approx(accuracy, abs=1e-8)
    assert binary_entropy(inverse_binary_entropy(binary_entropy(accuracy))) == pytest.approx(
        binary_entropy(accuracy), abs=1e-14
    )


def test_the_papers_interval_contains_the_bayes_accuracy_for_equal_priors():
    rng = np.random.default_rng(0)
    for _ in range(300):
        masks = rng.dirichlet(np.full(6, 10 ** rng.uniform(-1.5, 1)), size=2) / 2
        low, high = optimal_accuracy(information(masks))
        assert low - 1e-9 <= masks.max(axis=0).sum() <= high + 1e-9
