"""Coordinates, ticks and labels of the page's charts."""

import numpy as np
import pytest

from predictions import BAD, GOOD, curve_study, endurance_study, study
from roadworthy import statistics
from roadworthy.report.html import curves, forest, slope
from roadworthy.report.html.markers import SHAPES
from roadworthy.report.html.scales import levels, round_values
from roadworthy.report.palette import MARKERS, colors


def test_a_chart_puts_values_at_the_right_coordinates():
    table = statistics.curves(study(good=GOOD, bad=BAD))
    (row,) = curves.rows(table, ["bad"], {"good": 0, "bad": 1}, ["good"], chance=0.25)
    morf = row.panels[0]
    assert morf.title.startswith("MoRF")
    control, line = morf.lines
    assert (control.name, control.band, line.name) == ("bad", "", "good")  # emphasized lines are drawn last
    # good, MoRF: accuracies 1, 1/4, 0 at fractions 0, 0.2, 0.4. The plot is 334 × 236, its corner is at (50, 266):
    # x = 50 + 334·s/0.4, y = 266 − 236·a.
    assert [(point.x, point.y) for point in line.points] == [(50, 30), (217, 207), (384, 266)]
    assert line.path == "M50.0,30.0L217.0,207.0L384.0,266.0"
    # Wilson, 1 of 4: center (0.25 + 3.84/8)/(1 + 3.84/4), as in the table.
    assert (line.points[1].fraction, line.points[1].value) == ("20%", "25.0% [4.6%, 69.9%]")
    assert [tick.text for tick in morf.across] == ["0%", "10%", "20%", "30%", "40%"]
    assert [(level.name, level.y) for level in morf.levels] == [("nothing removed 100%", 30), ("chance 25%", 207)]


def test_names_at_the_ends_of_lines_do_not_overlap():
    methods = {name: {0.5: 0.5} for name in "abcde"}
    table = statistics.curves(curve_study({("morf", "linear"): methods}))
    (row,) = curves.rows(table, [], {name: k for k, name in enumerate("abcde")}, list("abcd"))
    heights = sorted(line.label for line in row.panels[0].lines if line.label is not None)
    assert len(heights) == 4
    assert min(np.diff(heights)) >= 15


def standing(predictions, controls=()):
    ranking, pairs = statistics.ranking(predictions, controls), statistics.pairwise(predictions, controls)
    (found,) = statistics.standings(ranking, pairs, (), 0.02).values()
    return found


def test_a_forest_plot_puts_scores_and_intervals_on_one_axis():
    found = standing(endurance_study(good=(0.3, 0.7), bad=(0.5, 0.4), center=(0.4, 0.6)), ["center"])
    plot = forest.forest(found, {"good": 0, "bad": 1, "center": 2})
    rows, (reference,) = found.rows, plot.references
    assert [row.name for row in plot.rows] == ["good", "bad"]
    scores = [rows["srg"]["good"], rows["srg"]["bad"], rows["srg"]["center"]]
    places = [plot.rows[0].x, plot.rows[1].x, reference.x]
    slope_of_axis = np.polyfit(scores, places, 1)
    assert np.polyval(slope_of_axis, scores) == pytest.approx(places, abs=0.1)  # linear
    ends = [rows[f"srg{end}"]["good"] for end in ("_low", "_high")]
    assert plot.rows[0].ends == pytest.approx(np.polyval(slope_of_axis, ends), abs=0.2)
    assert plot.blind == (forest.LEFT, reference.x)  # what the control reaches
    assert (plot.rows[0].clear, plot.rows[1].clear) == (True, False)


def test_where_lower_is_better_the_blind_area_is_on_the_right():
    morf = {
        key: value for key, value in endurance_study(good=(0.3, 0.7), center=(0.5, 0.5)).items() if key.order == "morf"
    }
    plot = forest.forest(standing(morf, ["center"]), {"good": 0, "center": 1})
    assert plot.blind == (plot.references[0].x, forest.WIDTH - forest.RIGHT)
    assert plot.rows[0].x < plot.references[0].x
    assert "lower is better" in plot.title


def test_ranks_among_methods_leave_out_controls():
    found = standing(endurance_study(good=(0.3, 0.7), bad=(0.5, 0.4), center=(0.2, 0.8)), ["center"])
    assert found.rows["srg_rank"].to_dict() == {"center": 1, "good": 2, "bad": 3}
    assert (found.rank("good"), found.rank("bad")) == ((1, 1, 1), (2, 2, 2))
    equal = standing(study(a=GOOD, b=GOOD))
    assert (equal.rank("a"), equal.rank("b")) == ((1, 1, 2), (1, 1, 2))


def test_slopes_show_the_rank_by_each_order_with_equal_ranks_apart():
    # MoRF: a falls fastest. LeRF: c stays highest, a and b are equal.
    table = {
        ("morf", "linear"): {"a": {0.5: 0.1}, "b": {0.5: 0.2}, "c": {0.5: 0.3}, "control": {0.5: 0.0}},
        ("lerf", "linear"): {"a": {0.5: 0.5}, "b": {0.5: 0.5}, "c": {0.5: 0.9}, "control": {0.5: 1.0}},
    }
    ranking = statistics.ranking(curve_study(table), ["control"])
    (panel,) = slope.slopes(ranking, None, dict.fromkeys("abc", 0), ["a"], ("no-retrain", "linear"))
    assert {line.name: line.ranks for line in panel.lines} == {"a": (1, 2), "b": (2, 2), "c": (3, 1)}
    assert "1 of 3 methods have the same rank in both" in panel.label  # b
    assert (
        {line.left for line in panel.lines} == {line.right for line in panel.lines} == {26, 50, 74}
    )  # 14 + 24 (k − ½)
    assert [line.name for line in panel.lines][-1] == "a"  # above the others


def test_ticks_are_round_and_few():
    assert round_values(-0.62, 0.71) == [-0.5, 0.0, 0.5]  # steps of 0.2 would be seven
    for width in (1e-3, 0.07, 0.3, 1, 2, 400):
        values = round_values(0.1, 0.1 + width)
        assert 2 <= len(values) <= 7, width


def test_labels_of_controls_take_another_line_where_they_would_overlap():
    assert levels([10, 12, 14], ["random", "edges", "center"]) == [0, 1, 2]


def test_every_marker_of_the_palette_has_a_shape():
    used = {look.marker for look in colors(["a"], ["random"]).values()} | set(MARKERS)
    assert used <= set(SHAPES)
