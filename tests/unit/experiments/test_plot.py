"""`comparison.plot`: figures that can be drawn and show what they say."""

import pytest

import roadworthy as rw
import worlds


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


def test_the_ranking_has_a_row_per_method_best_on_top(comparison):
    panels = comparison.plot.ranking().axes
    ranked = comparison.ranking().query("imputer == 'linear'")["method"].tolist()
    assert len(panels) == 2
    assert labels(panels[0].get_yticklabels()) == ranked[::-1]


def test_curves_are_those_of_the_preferred_setting_unless_named(comparison):
    first, second = (comparison.plot.curves(**options).axes[0].lines[0] for options in ({}, {"imputer": "fixed"}))
    table = comparison.curves().query("order == 'morf' and method == 'IG'")
    for line, imputer in ((first, "linear"), (second, "fixed")):
        assert line.get_ydata().tolist() == table.loc[table["imputer"] == imputer, "accuracy"].tolist()
    with pytest.raises(rw.errors.InputError, match="gain"):
        comparison.plot.curves(imputer="gain")


def test_agreement_ranks_and_examples_are_drawn(comparison):
    square = comparison.plot.agreement().axes[0]
    assert len(square.get_xticklabels()) == 4  # two orders and two imputers
    assert len(comparison.plot.ranks().axes[0].lines) == 3
    assert len(comparison.plot.examples().axes) == 3 * (2 + 2 * 2)  # methods; image, map, two fractions in two orders


def test_a_saved_comparison_has_no_examples(comparison, tmp_path):
    saved = rw.load(comparison.save(tmp_path / "saved"))
    assert saved.plot.ranking().axes
    with pytest.raises(rw.errors.InputError, match="no images"):
        saved.plot.examples()
