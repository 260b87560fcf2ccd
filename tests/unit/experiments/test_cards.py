"""The four cards: short answers that never say more than the intervals."""

import re

import pandas as pd
import pytest

from predictions import comparison, endurance_study
from roadworthy.core.results import Copy
from roadworthy.experiments.audit_run import Audit


def test_a_clear_winner_has_good_cards():
    result = comparison(
        endurance_study(
            good=(0.2, 0.8),
            fair=(0.4, 0.6),
            poor=(0.5, 0.5),
            random=(0.5, 0.5),
            edges=(0.48, 0.52),
            center=(0.46, 0.54),
        )
    )
    best, controls, first, _ = result.cards()
    row = result.ranking().set_index("method").loc["good"]
    assert best.answer == f"good {row['srg']:.2f}"
    assert best.detail == f"95 % interval {row['srg_low']:.2f} to {row['srg_high']:.2f}"
    assert sorted(controls.answer.split("  ")) == ["✓ center", "✓ edges", "✓ random"]
    assert controls.tone == first.tone == "good"
    assert "poor beats none" in controls.detail
    lead = float(re.search(r"at least (0\.\d+) ahead of fair", first.detail).group(1))
    pair = result.pairwise().query("method_a == 'good' and method_b == 'fair'").iloc[0]
    assert pair["low"] - 0.001 < lead <= pair["low"]


def test_open_questions_are_open_and_say_how_many_images_would_settle_them():
    result = comparison(endurance_study(images=60, one=(0.3, 0.7), two=(0.32, 0.68), random=(0.5, 0.5)))
    _, controls, first, _ = result.cards()
    assert controls.answer == "✓ random"
    assert first.answer == "not clear"
    assert re.match(r"(one|two) may be first too\. ", first.detail)
    assert first.tone == "open"
    assert re.search(r"[\d,]+ images would", first.detail)


def test_a_control_that_is_clearly_better_is_bad():
    result = comparison(endurance_study(a=(0.45, 0.55), b=(0.47, 0.53), random=(0.5, 0.5), center=(0.2, 0.8)))
    card = result.cards()[1]
    assert card.tone == "bad"
    assert "✗ center" in card.answer
    assert card.detail.startswith("0 of 2 methods clearly beat all")


@pytest.mark.parametrize("study", [{"mine": (0.2, 0.8)}, {"random": (0.5, 0.5), "center": (0.4, 0.6)}])
def test_nothing_to_compare_is_said(study):
    texts = " ".join(f"{card.answer} {card.detail}" for card in comparison(endurance_study(**study)).cards())
    assert ("nothing to rank it against" in texts) or ("Only controls were evaluated" in texts)
    assert "nan" not in texts


def test_one_image_has_no_interval():
    texts = [card.detail for card in comparison(endurance_study(images=1, a=(0.2, 0.8), random=(0.5, 0.5))).cards()]
    assert "one image: no interval" in texts[0]
    assert "nan" not in " ".join(texts)


def orders_study(**kinds):
    """Four methods, both imputers; fixed reverses the ranking of LeRF."""
    linear = endurance_study(a=(0.1, 0.9), b=(0.2, 0.8), c=(0.3, 0.7), d=(0.4, 0.6), random=(0.5, 0.5))
    fixed = endurance_study(imputer="fixed", a=(0.1, 0.6), b=(0.2, 0.7), c=(0.3, 0.8), d=(0.4, 0.9), random=(0.5, 0.5))
    return comparison(linear | fixed, **kinds)


NO_LEAK = Audit({"conclusions": pd.DataFrame({"method": list("abcd"), "imputer": "linear", "found": False})})


def test_the_benchmark_is_trusted_as_far_as_intervals_and_audit_go():
    trusted, audited = orders_study().cards()[3], orders_study().cards(NO_LEAK)[3]
    assert re.match(r"MoRF ~ LeRF \+(1\.00|0\.9\d) \[", trusted.answer)
    assert trusted.detail.endswith("leakage not audited")
    assert trusted.tone == "open"
    assert audited.detail.endswith("no leak found")
    assert audited.tone == "good"
    doubtful = orders_study(preferred=("no-retrain", "fixed")).cards()[3]
    assert re.match(r"MoRF ~ LeRF −0\.[89]\d \[−1\.00, −0", doubtful.answer)
    assert doubtful.tone == "bad"


def test_two_methods_are_too_few_to_trust_their_agreement():
    """The rank correlation of two methods is −1 or 1 whatever they are."""
    card = comparison(endurance_study(a=(0.2, 0.8), b=(0.3, 0.7), random=(0.5, 0.5))).cards(NO_LEAK)[3]
    assert (card.answer, card.tone) == ("too few methods to say", "plain")


def test_a_blurred_copy_that_is_clearly_better_makes_the_benchmark_doubtful():
    methods = {"a": (0.2, 0.8), "b": (0.25, 0.75), "c": (0.3, 0.7), "d": (0.4, 0.6)}
    study = endurance_study(**methods, a_blurred=(0.1, 0.9), random=(0.5, 0.5))
    card = comparison(study, copies={"a blurred": Copy("a", "blurred")}).cards(NO_LEAK)[3]
    assert "blurring a raises the score" in card.detail
    assert card.tone == "open"


def test_a_leak_of_the_imputer_of_the_conclusion_makes_the_benchmark_doubtful():
    rows = [(name, imputer, name == "a" and imputer == "linear") for name in "abcd" for imputer in ("linear", "fixed")]
    audit = Audit({"conclusions": pd.DataFrame(rows, columns=["method", "imputer", "found"])})
    card = orders_study().cards(audit)[3]
    assert card.detail.endswith("leak found in 1 of 4 methods")
    assert card.tone == "bad"
    card = orders_study(preferred=("no-retrain", "fixed")).cards(audit)[3]
    assert card.detail.endswith("no leak found")
