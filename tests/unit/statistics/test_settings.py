"""Model and units are part of a setting: no table merges two models or two units."""

import pytest

from predictions import BAD, GOOD, study
from roadworthy import statistics
from roadworthy.core.errors import InputError
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.results import Results

FIELDS = pytest.mark.parametrize(("field", "other"), [("model", "second"), ("units", "patches")])


def two_studies(field, other, evaluator="no-retrain"):
    """In the first study `x` is better than `y`; in the other one it is worse."""
    second = {point._replace(**{field: other}): each for point, each in study(evaluator, x=BAD, y=GOOD).items()}
    return study(evaluator, x=GOOD, y=BAD) | second


@FIELDS
def test_tables_keep_two_models_and_two_units_apart(field, other):
    points = two_studies(field, other)
    default = {"model": "model", "units": "pixels"}[field]
    # Areas of GOOD: MoRF .375, LeRF .9375; BAD has them swapped.
    expected = {(default, "x"): 0.5625, (default, "y"): -0.5625, (other, "x"): -0.5625, (other, "y"): 0.5625}
    ranking = statistics.ranking(points)
    assert ranking.set_index([field, "method"])["srg"].to_dict() == pytest.approx(expected)
    assert ranking["srg_rank"].tolist() == [1, 2, 1, 2]
    scores = statistics.scores(ranking)
    assert scores[scores["score"] == "srg"].set_index([field, "method"])["value"].to_dict() == pytest.approx(expected)
    pairs = statistics.pairwise(points)
    assert pairs[[field, "method_a"]].to_numpy().tolist() == [[default, "x"], [other, "y"]]
    for table, rows in ((statistics.curves(points), 24), (statistics.per_class(points), 8)):
        assert table[field].value_counts().to_dict() == {default: rows // 2, other: rows // 2}
    assert statistics.per_image(points)[field].unique().tolist() == [default, other]


@FIELDS
def test_two_models_and_two_units_are_different_settings_of_agreement(field, other):
    table = statistics.agreement(two_studies(field, other))
    # Two orders in each study: 4 settings, 6 pairs, of which 4 have different orders and are listed twice.
    assert len(table) == 6 + 4
    same_order = table[table["order_a"] == table["order_b"]]
    assert (same_order[f"{field}_a"] != same_order[f"{field}_b"]).all()
    assert (same_order["spearman"] == -1).all()
    matrix = statistics.agreement_matrix(table)
    assert matrix.loc["no-retrain · morf · linear", f"no-retrain · morf · linear · {other}"] == -1


@FIELDS
def test_a_missing_point_makes_only_the_curve_of_its_setting_incomplete(field, other):
    points = two_studies(field, other)
    missing = next(point for point in points if getattr(point, field) == other and point.fraction == 0.4)
    complete, incomplete = statistics.complete_curves({p: each for p, each in points.items() if p != missing}, points)
    assert len(complete) == len(points) - 3
    assert incomplete[["method", field, "evaluated", "expected"]].to_numpy().tolist() == [["x", other, 2, 3]]


@FIELDS
def test_differences_between_runs_are_reported_per_model_and_units(field, other):
    before = two_studies(field, other)
    second = {point: each for point, each in before.items() if getattr(point, field) == other}
    table = statistics.diff(before, second)
    assert set(table.loc[table[field] == other, "change"]) == {"none"}
    assert set(table.loc[table[field] != other, "change"]) == {"only before"}


@FIELDS
def test_sentences_name_the_model_and_the_units_if_there_are_several(field, other):
    points = two_studies(field, other, evaluator="retrain")
    tables = statistics.ranking(points), statistics.pairwise(points)
    conclusion = Comparison(Results(points)).conclusion()
    assert f"{field} {other}" not in conclusion.sentence
    assert any(f"{field} {other}: " in line.lower() and "y is clearly better" in line for line in conclusion.details)
    expected = "In 1 of 2 settings another method has the best score: y ("
    assert any(line.startswith(expected) for line in conclusion.details)
    warnings = statistics.warnings(points, *tables)
    seeds = warnings[warnings["kind"] == "few seeds"]
    assert seeds[field].tolist()[1] == other
    assert other in seeds["text"].iloc[1]


def test_a_single_model_is_not_named():
    assert Comparison(Results(study(x=GOOD, y=BAD))).conclusion().sentence.startswith("x is clearly better")
    assert str(statistics.Setting("no-retrain", "morf", "linear")) == "no-retrain · morf · linear"


def test_runs_that_remove_different_units_do_not_compare():
    both = two_studies("units", "patches 4")
    pixels, patches = ({p: each for p, each in both.items() if p.units == units} for units in ("pixels", "patches 4"))
    with pytest.raises(InputError, match="one run removes pixels, the other patches 4"):
        statistics.diff(pixels, patches)
