"""The self-test beside a comparison: what it measures, and that it changes nothing else."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import roadworthy as rw
import worlds
from roadworthy.attributions.controls import blurred
from roadworthy.audit.debiasing import gamma_table
from roadworthy.audit.geometry import geometry_of
from roadworthy.core.errors import InputError
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first
from roadworthy.experiments.run import run
from roadworthy.experiments.self_test.design import shift
from roadworthy.experiments.self_test.sentences import summary
from roadworthy.statistics.self_test import damaged_first

N = 48
OPTIONS = {"fractions": (0.2, 0.5), "controls": ("random", "center", "blurred"), "progress": False}


class Pooled(nn.Module):
    """The quadrants of `worlds.quadrants` by a linear layer, so that weights can be shuffled and features measured."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        with torch.no_grad():
            self.layer.weight.copy_(40 * torch.eye(4) + 0.1 * torch.arange(16).reshape(4, 4))
            self.layer.bias.zero_()

    def forward(self, images):
        return self.layer(nn.functional.adaptive_avg_pool2d(images.mean(dim=1), 2).flatten(1))


@pytest.fixture(scope="module")
def world():
    quadrants = worlds.quadrants(n=N)
    truth = quadrants.truth + 1e-3 * rw.Key(0).uniform(range(N), (12, 12))
    return quadrants._replace(model=Pooled(), truth=truth)


def methods(world):
    return {"truth": world.truth, "G": "gradient"}


@pytest.fixture(scope="module")
def tested(world):
    return rw.compare(world.model, (world.images, world.labels), methods(world), self_test=True, **OPTIONS)


@pytest.fixture(scope="module")
def untested(world):
    return rw.compare(world.model, (world.images, world.labels), methods(world), **OPTIONS)


def test_it_changes_no_table_of_the_comparison(tested, untested):
    for table in ("ranking", "pairwise", "curves", "agreement"):
        assert getattr(tested, table)().equals(getattr(untested, table)()), table
    assert tested.predictions.keys() == untested.predictions.keys()
    assert tested.controls == untested.controls
    assert str(tested.conclusion()) == str(untested.conclusion())
    shown = tested.warnings()
    assert shown[shown["kind"] != "self-test"].reset_index(drop=True).equals(untested.warnings())


def test_without_one_it_says_how_to_get_it(untested):
    with pytest.raises(InputError, match="self_test=True"):
        untested.self_test()


def test_the_damaged_copies_are_what_evaluating_damaged_maps_gives(world, tested):
    """25 % and 100 % of the images carry another image's map, evaluated as methods of their own."""
    first = damaged_first(np.arange(N), 0)
    for share in (0.25, 1.0):
        rows = torch.from_numpy(first < round(share * N))
        maps = torch.where(rows[:, None, None], world.truth.roll(-shift(N), 0), world.truth)
        literal = rw.compare(
            world.model, (world.images, world.labels), {"damaged": maps}, **{**OPTIONS, "controls": ()}
        ).ranking()
        damage = tested.self_test().damage()
        derived = damage[(damage["method"] == "truth") & (damage["share"] == share)].set_index("score")["value"]
        for score in ("srg", "morf", "lerf"):
            assert derived[score] == pytest.approx(literal[score].item()), (share, score)


def test_the_true_order_is_found_and_the_center_loses_nothing(tested):
    order = tested.self_test().known_order()
    assert set(order["method"]) == {"truth", "G", "center"}
    assert (order[order["method"] == "center"]["state"] == "still").all()
    assert (tested.self_test().damage().query("method == 'center'")["loss"] == 0).all()
    leading = order[order["leading"] & (order["method"] == "truth")].squeeze()
    assert leading["state"] == "found"
    assert leading["spearman"] == 1


def test_blurring_is_measured_at_several_widths_and_agrees_with_the_blurred_control(tested):
    table = tested.self_test().smoothness()
    assert set(zip(table["how"], table["amount"], strict=True)) == {
        ("blurred", 1.0), ("blurred", 2.0), ("blurred", 4.0), ("sharpened", 1.0)
    }  # fmt: skip
    ranking = tested.ranking().set_index("method")
    row = table.query("method == 'G' and how == 'blurred' and amount == 2 and score == 'srg'").squeeze()
    assert row["value"] == pytest.approx(ranking.loc["G blurred", "srg"])
    assert row["change"] == pytest.approx(ranking.loc["G blurred", "srg"] - ranking.loc["G", "srg"])


def test_smoothed_copies_are_evaluated_at_the_smallest_the_middle_and_the_largest_fraction(world):
    data, methods = (world.images, world.labels), {"truth": world.truth}
    options = {**OPTIONS, "controls": ()}
    all_of_them = rw.compare(
        world.model, data, methods, self_test=True, **{**options, "fractions": (0.1, 0.2, 0.4, 0.5, 0.8)}
    ).self_test()
    few = rw.compare(world.model, data, methods, **{**options, "fractions": (0.1, 0.4, 0.8)}).ranking()
    for table in (all_of_them.smoothness(), all_of_them.randomization()):
        found = table.groupby("score")["original"].first()
        assert {name: pytest.approx(few[name].item()) for name in ("srg", "morf", "lerf")} == found.to_dict()


def test_gamma_of_a_copy_is_that_of_its_maps(world):
    """Measured literally, for smooth images and maps of noise: their scattered pixels are restored, blobs are not."""
    images = blurred(rw.Key(5).uniform(range(N), (12, 12)), 2.0)[:, None].expand(-1, 3, -1, -1)
    noise = rw.Key(3).uniform(range(N), (12, 12))
    comparison = rw.compare(world.model, (images, world.labels), {"noise": noise}, self_test=True, **OPTIONS)
    data, orders = rw.datasets.Arrays(images, world.labels), {"morf": most_relevant_first, "lerf": least_relevant_first}
    maps = {"noise": lambda: noise, "blurred": lambda: blurred(noise, 4.0)}
    table = gamma_table(geometry_of(data, world.labels, maps, orders, OPTIONS["fractions"], rw.Key(0)))
    expected = table.groupby(["method", "order"])["gamma"].mean()
    assert expected["noise", "morf"] < 0.9 * expected["blurred", "morf"] < 0.9
    row = comparison.self_test().smoothness().query("how == 'blurred' and amount == 4").iloc[0]
    for order in ("morf", "lerf"):
        assert row[f"gamma_{order}_original"] == pytest.approx(expected["noise", order])
        assert row[f"gamma_{order}"] == pytest.approx(expected["blurred", order])


def test_gamma_is_known_for_linear_imputation_alone(world):
    options = {**OPTIONS, "controls": (), "imputers": ["linear", "fixed"], "self_test": True}
    data, methods = (world.images, world.labels), {"truth": world.truth}
    table = rw.compare(world.model, data, methods, **options).self_test().smoothness()
    assert table.groupby("imputer")["gamma_morf"].count().to_dict() == {"fixed": 0, "linear": 12}  # 3 scores, 4 copies


def test_r_oms_is_the_probability_that_the_answer_keeps_if_pixels_are_removed_at_random():
    """White images of class 1 and black ones of class 0, filled with black: at any mask of a share s the mean of a
    white image is 1 − s, so the probability of its class falls from σ(2) to σ(4(½ − s)); black ones stay at σ(2)."""

    def brightness(images):
        return torch.stack([torch.zeros(len(images)), 4 * (images.mean(dim=(1, 2, 3)) - 0.5)], dim=1)

    labels = torch.tensor([1, 0] * 6)
    images = labels[:, None, None, None].float().expand(-1, 1, 10, 10)
    comparison = rw.compare(
        brightness, (images, labels), {"G": rw.Key(1).uniform(range(12), (10, 10))},
        imputers=["linear", rw.Constant(0.0)],
        self_test=True, **{**OPTIONS, "controls": (), "fractions": (0.2, 0.8)},
    )  # fmt: skip
    table = comparison.self_test().scope()
    filled = table[table["imputer"] != "linear"].groupby("fraction")["r_oms"].unique()
    sigmoid = lambda value: 1 / (1 + math.exp(-value))  # noqa: E731
    for share in (0.0, 0.2, 0.8):  # at 0.8 a white image is taken for a black one
        assert filled[share].tolist() == [pytest.approx((sigmoid(4 * (0.5 - share)) + sigmoid(2)) / 2, abs=1e-6)]
    # nothing varies within a class, so there is no γ, and no error
    assert comparison.self_test().smoothness()["gamma_morf"].isna().all()


def test_maps_of_a_model_with_shuffled_weights_score_worse_unless_the_method_ignores_the_model(world, tested):
    table = tested.self_test().randomization()
    assert set(table["amount"]) == {0.5, 1.0}  # half of the layers, then all
    whole = table[table["leading"] & (table["amount"] == 1)].set_index("method")
    assert whole.loc["truth", "state"] == "same maps"
    assert whole.loc["G", "change"] < 0
    fresh = Pooled()
    assert torch.equal(world.model.layer.weight, fresh.layer.weight)  # the weights are as before


def test_the_scope_has_both_measures_at_every_fraction(tested):
    table = tested.self_test().scope()
    assert set(table["measure"]) == {"confidence", "distance"}
    assert set(table["fraction"]) == {0.0, 0.2, 0.5}
    assert table["images"].max() == N


@pytest.mark.parametrize(
    ("smallest", "text"),
    [(0.25, "sees damage of 25 % of the images"), (1.0, "sees damage only of all images")],
)
def test_the_summary_names_the_smallest_damage_that_is_seen(tested, smallest, text):
    order = tested.self_test().known_order().assign(smallest=smallest)
    assert summary(order, ("no-retrain", "linear")) == text


def test_page_card_and_terminal_show_it(tested, tmp_path):
    test = tested.self_test()
    assert test.state == "passed"
    card = tested.cards()[-1]
    assert card.answer == "self-test passed"
    assert f"Self-test passed: {test.summary}" in str(tested)
    page = tested.report(tmp_path / "page.html").read_text()
    assert 'id="self-test"' in page
    assert "Does the benchmark rank right here?" in page
    assert test.sentences[0].split(":")[0] in page


def test_it_is_saved_with_the_comparison(tested, tmp_path):
    loaded = rw.load(tested.save(tmp_path / "saved")).self_test()
    assert loaded.sentences == tested.self_test().sentences
    for name, table in tested.self_test().tables.items():
        assert table.equals(loaded.tables[name]), name


def test_a_leaking_mask_fails_it_and_warns(tmp_path):
    """The color that fills is as bright as the evidence: the mask shows the class of the map's own image."""
    sides = worlds.sides(n=64)
    options = {**OPTIONS, "fractions": (0.1, 0.25), "controls": ("center",), "self_test": True}
    comparison = rw.compare(
        sides.model, (sides.images, sides.labels), {"truth": sides.truth}, imputers=rw.Constant(0.9), **options
    )
    test = comparison.self_test()
    assert test.state == "failed"
    assert comparison.cards()[-1].tone == "bad"
    warned = comparison.warnings()
    texts = warned.loc[warned["kind"] == "self-test", "text"]
    assert any("MoRF" in text and "clearly better" in text for text in texts)
    assert f"Self-test failed: {test.summary}" in str(comparison)
    assert "self-test failed" in comparison.report(tmp_path / "page.html").read_text()
    # what it evaluated is listed nowhere else
    for table in (comparison.ranking(), comparison.curves(), comparison.pairwise()):
        named = {str(value) for column in table for value in table[column]}
        assert not [name for name in named if "\N{NO-BREAK SPACE}" in name or "swapped" in name], table
    right = rw.compare(sides.model, (sides.images, sides.labels), {"truth": sides.truth}, **options)
    assert right.self_test().state == "passed"


def test_early_stopping_decides_before_it_and_alike(world):
    options = {**OPTIONS, "until": "best", "map_batch_size": 16, "batch_size": 16, "margin": 0.3, "confidence": 0.8}
    stopped, plain = (
        rw.compare(world.model, (world.images, world.labels), methods(world), self_test=on, **options)
        for on in (True, False)
    )
    assert stopped.ranking().equals(plain.ranking())
    images = len(next(iter(plain.predictions.values())))
    assert stopped.self_test().known_order()["images"].unique().tolist() == [images]


def test_a_plan_runs_it_by_default_and_gives_what_compare_gives(project):
    evaluation = {"self_test": None, "controls": ["random", "center"]}
    project.write_plan(evaluation=evaluation)
    ran = run(project.path, project.store, progress=False)
    test = ran.self_test()
    assert test.share > 0
    # interrupted before the last items, resumed: the same tables
    items = sorted((project.store / "predictions").rglob("*.safetensors"))
    for path in items[::3]:
        path.unlink()
    again = run(project.path, project.store, progress=False)
    for name, table in test.tables.items():
        assert table.equals(again.self_test().tables[name]), name
    # the blocks of a comparison have another size
    data = rw.datasets.ImageFolder(project.root / "images")
    namespace = {}
    exec(project.mine.read_text(), namespace)
    compared = rw.compare(
        namespace["Quadrants"](), data, {"own": namespace["brightness"], "G": "gradient"}, fractions=(0.3, 0.6),
        controls=("random", "center"), map_batch_size=4, batch_size=4, self_test=True, progress=False,
    )  # fmt: skip
    for name in ("known_order", "damage", "smoothness", "scope", "randomization"):
        assert compared.self_test().tables[name].equals(test.tables[name]), name


def test_a_method_that_fails_on_shuffled_weights_loses_the_self_test_alone(world):
    weights = world.model.layer.weight.detach().clone()

    def fragile(model, batch, key):
        if not torch.equal(next(world.model.parameters()), weights):
            raise ValueError("nonsense weights")
        return world.truth[batch.ids]

    own = {"fragile": fragile, "G": "gradient"}
    comparison = rw.compare(world.model, (world.images, world.labels), own, self_test=True, **OPTIONS)
    assert set(comparison.ranking()["method"]) >= {"fragile", "G"}
    assert comparison.warnings()["text"].str.contains("self-test failed").any()
    with pytest.raises(InputError):
        comparison.self_test()
    assert torch.equal(world.model.layer.weight, weights)


def test_units_are_those_of_the_comparison(world):
    comparison = rw.compare(
        world.model, (world.images, world.labels), methods(world), units=rw.Patches(3), self_test=True, **OPTIONS
    )
    test = comparison.self_test()
    assert test.known_order()["units"].unique().tolist() == comparison.ranking()["units"].unique().tolist()
    # 16 patches: at 20 % three of them are removed, pixels for pixels other images than without units
    assert not test.scope().equals(
        rw.compare(world.model, (world.images, world.labels), methods(world), self_test=True, **OPTIONS)
        .self_test()
        .scope()
    )
    assert (test.known_order().query("method == 'center'")["state"] == "still").all()
