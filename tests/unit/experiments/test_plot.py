"""`comparison.plot`: figures that can be drawn and show what they say."""

import sys
from dataclasses import replace

import pytest

import roadworthy as rw
import worlds
from roadworthy.experiments import plot


@pytest.fixture(scope="module")
def comparison():
    world = worlds.quadrants(n=12)
    methods = {"IG": rw.attributions.IntegratedGradients(2), "truth": world.truth, "zero": 0 * world.truth}
    return rw.compare(
        world.model, (world.images, world.labels), methods, imputers=["linear", "fixed"], fractions=(0.3, 0.7),
        controls=("random",), progress=False,
    )  # fmt: skip


def labels(axis):
    return [text.get_text().lstrip("\u200b") for text in axis]


def test_the_ranking_has_a_row_per_method_and_a_line_per_control_and_names_its_setting(comparison):
    for options, imputer in (({}, "linear"), ({"imputer": "fixed"}, "fixed")):
        figure = comparison.plot.ranking(**options)
        ranked = comparison.ranking().query(f"imputer == '{imputer}' and not control")["method"].tolist()
        assert [text.split("  ")[1] for text in labels(figure.axes[0].get_yticklabels())] == ranked
        assert labels(figure.axes[0].texts) == ["random"]
        assert figure.get_suptitle() == f"Imputed with {imputer}, no retraining, 12 images"


def test_curves_are_those_of_the_preferred_setting_unless_named(comparison):
    table = comparison.curves().query("order == 'morf' and method == 'IG'")
    for options, imputer in (({}, "linear"), ({"imputer": "fixed"}, "fixed")):
        panel = comparison.plot.curves(**options).axes[0]
        (line,) = [line for line in panel.lines if line.get_label() == "IG"]
        assert line.get_ydata().tolist() == table.loc[table["imputer"] == imputer, "accuracy"].tolist()
        assert f"imputed with {imputer}" in panel.get_title()
    with pytest.raises(rw.errors.InputError, match="gain"):
        comparison.plot.curves(imputer="gain")
    with pytest.raises(rw.errors.InputError, match="retrain"):
        comparison.plot.ranking(evaluator="retrain")


def test_agreement_has_each_pair_of_settings_once(comparison):
    square = comparison.plot.agreement().axes[0]
    assert len(square.get_xticklabels()) == 3  # of two orders and two imputers; the last is a row only
    shown = comparison.agreement().query("pairing == 'removed'")  # of two settings that tie everywhere: undefined
    cells = [text.get_text() for text in square.texts]
    assert len([text for text in cells if not text.startswith("[")]) == len(shown) == 6
    assert len([text for text in cells if text.startswith("[")]) == shown["low"].notna().sum()
    assert comparison.plot.agreement("kendall", "kept").axes


def test_ranks_have_a_panel_per_imputer_that_of_the_conclusion_last(comparison):
    figure = comparison.plot.ranks()
    assert [panel.get_title().partition(",")[0] for panel in figure.axes] == [
        "Imputed with fixed",
        "Imputed with linear",
    ]
    assert [len(panel.lines) for panel in figure.axes] == [3, 3]
    assert figure.get_suptitle() == plot.debiasing_headline(comparison)


def test_the_headline_says_no_more_than_its_interval(comparison, monkeypatch):
    for change, words in {
        (0.5, 0.1, 0.9): "agree more: Spearman by +0.50 [+0.10, +0.90]",
        (-0.5, -0.9, -0.1): "agree less",
        (0.5, -0.1, 0.9): "no clear change",
    }.items():
        monkeypatch.setattr(plot, "agreement_change", lambda *_, change=change, **__: change)
        assert words in plot.debiasing_headline(comparison)
    monkeypatch.setattr(plot, "agreement_change", lambda *_, **__: (float("nan"),) * 3)
    assert plot.debiasing_headline(comparison) == ""


def test_examples_show_the_best_and_the_worst_method(comparison):
    ranked = comparison.ranking().query("imputer == 'linear' and not control")["method"].tolist()
    figure = comparison.plot.examples()
    names = [panel.get_ylabel().partition("\n")[0] for panel in figure.axes if panel.get_ylabel()]
    assert names == [ranked[0], ranked[-1]]
    assert sum(bool(panel.images) for panel in figure.axes) == 1 + 2 * 4


def test_one_order_or_one_method_is_refused_with_the_reason(comparison):
    morf = {point: each for point, each in comparison.predictions.items() if point.order == "morf"}
    only = replace(comparison, results=replace(comparison.results, predictions=morf))
    assert only.plot.ranking().axes[0].get_xlabel() == "MoRF area (lower is better)"
    with pytest.raises(rw.errors.InputError, match="both orders"):
        only.plot.ranks()


def test_figures_leave_pyplot_alone(comparison):
    comparison.plot.ranking()
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_a_saved_comparison_has_no_examples(comparison, tmp_path):
    saved = rw.load(comparison.save(tmp_path / "saved"))
    assert saved.plot.ranking().axes
    with pytest.raises(rw.errors.InputError, match="no images"):
        saved.plot.examples()
