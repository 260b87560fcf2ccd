"""The ranking on a terminal: all tables in, text out."""

import io

import pandas as pd
from rich.console import Console

from predictions import BAD, GOOD, study
from roadworthy import statistics
from roadworthy.report.findings import Card
from roadworthy.report.terminal import show_leakage, show_ranking


def shown(predictions, controls=(), width=120, terminal=False, **options):
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system="standard" if terminal else None
    )
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
    agreement = statistics.agreement_intervals(predictions)
    text = shown(
        predictions, agreement=agreement, warnings=["Only 4 images."], accuracy="77.0 %", details=["by 0.1", "by 0.2"],
        confidence=0.9, closing=["Page: page.html"],
        cards=[Card("Best method", "[red]good 0.56", "of two", "good")],
    )  # fmt: skip
    assert "+1.00" in text  # both orders rank good before bad
    assert "[ ] 90 % interval" in text
    parts = [
        "Accuracy before removal: 77.0 %",
        "MoRF and LeRF",
        "Warnings\n- Only 4 images.",
        "Details\n- by 0.1\n- by 0.2",
        "Best method  [red]good 0.56",
        "of two",
        "Page: page.html",
        "NOT YET",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.endswith("\n\nNOT YET\ngood is the best\n")


def test_an_undefined_agreement_is_explained():
    predictions = study(good=GOOD, bad=BAD)
    agreement = statistics.agreement_intervals(predictions).assign(fractions=0, spearman=float("nan"))
    assert "all methods tie" in shown(predictions, agreement=agreement)


def test_names_from_users_are_not_markup():
    assert "[red]good" in shown(study(**{"[red]good": GOOD, "bad": BAD}), conclusion="[bold]x")


def test_the_conclusion_is_bold_on_a_terminal_and_plain_in_a_file():
    predictions = study(good=GOOD, bad=BAD)
    assert shown(predictions, terminal=True).endswith("\x1b[1mNOT YET\x1b[0m\n\x1b[1mgood is the best\x1b[0m\n")
    assert "\x1b" not in shown(predictions)


def test_everything_fits_80_columns_and_numbers_are_aligned_right():
    names = {"Integrated Gradients": GOOD, "bad": BAD}
    predictions = study(**names)
    agreement = statistics.agreement_intervals(predictions)
    text = shown(predictions, width=80, agreement=agreement, warnings=["word " * 40], details=["word " * 40])
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith("…") for line in lines)  # nothing is cut
    # The last column, LeRF ↑, ends where its heading ends.
    head = next(line for line in lines if "LeRF ↑" in line)
    rows = [line for line in lines if line[:2].strip().isdigit()]
    assert len(rows) == 2
    assert {len(row.rstrip()) for row in rows} == {len(head.rstrip())}


def test_leaks_are_a_matrix_of_methods_by_imputer_and_order():
    rows = [
        (method, order, imputer, imputer == "fixed", bits)
        for method, bits in (("IG", 0.123), ("[red]GB", 0.4))
        for order in ("morf", "lerf")
        for imputer in ("linear", "fixed")
    ]
    table = pd.DataFrame(rows, columns=["method", "order", "imputer", "found", "bits"])
    console = Console(file=io.StringIO(), width=80)
    show_leakage(console, table)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["linear", "linear", "fixed", "fixed"] in lines
    assert ["IG", "–", "–", "0.12", "0.12"] in lines
    assert ["[red]GB", "–", "–", "0.40", "0.40"] in lines
