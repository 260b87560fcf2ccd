"""The ranking on a terminal: all tables in, text out."""

import io

from rich.console import Console

from predictions import BAD, GOOD, study
from roadworthy import statistics
from roadworthy.report.terminal import show_ranking


def shown(predictions, controls=(), **options):
    console = Console(file=io.StringIO(), width=120)
    ranking = statistics.ranking(predictions, controls)
    show_ranking(console, ranking, **{"state": "NOT YET", "conclusion": "good is the best", **options})
    return console.file.getvalue()


def test_the_best_method_comes_first_and_controls_are_marked():
    text = shown(study(good=GOOD, random=BAD), controls=("random",))
    assert "Imputed with linear" in text
    assert "evaluator" not in text  # there is only one
    assert text.index("good") < text.index("random ◦")


def test_the_evaluator_is_named_where_there_are_several():
    text = shown(study(good=GOOD, bad=BAD) | study("retrain", good=GOOD, bad=BAD))
    assert "Imputed with linear, evaluator no-retrain" in text
    assert "Imputed with linear, evaluator retrain" in text


def test_accuracy_agreement_and_warnings_follow_and_the_conclusion_ends_it():
    predictions = study(good=GOOD, bad=BAD)
    text = shown(
        predictions, agreement=statistics.agreement(predictions), warnings=["Only 4 images."], accuracy="77.0 %",
        details=["by 0.1", "by 0.2"], confidence=0.9,
    )  # fmt: skip
    assert "+1.00" in text  # both orders rank good before bad
    assert "[ ] 90 % interval" in text
    parts = [
        "Accuracy before removal: 77.0 %",
        "MoRF and LeRF",
        "Warning: Only 4 images.",
        "NOT YET",
        "good is the best",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.endswith("\nNOT YET\ngood is the best\n- by 0.1\n- by 0.2\n")


def test_an_undefined_agreement_is_explained():
    predictions = study(good=GOOD, bad=BAD)
    agreement = statistics.agreement(predictions).assign(fractions=0, spearman=float("nan"))
    assert "all methods tie" in shown(predictions, agreement=agreement)


def test_names_from_users_are_not_markup():
    assert "[red]good" in shown(study(**{"[red]good": GOOD, "bad": BAD}), conclusion="[bold]x")
