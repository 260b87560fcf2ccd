"""`compare`: what it accepts, what it returns, and which errors come before long work starts."""

import captum.attr
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import gains
import roadworthy as rw
import worlds
from roadworthy.training.recipe import Recipe

FAST = {"fractions": (0.3, 0.6), "controls": ()}
SHORT = Recipe(epochs=1, batch_size=16, select="last")


@pytest.fixture(scope="module")
def world():
    return worlds.quadrants(n=16)


def ranks(comparison):
    return comparison.ranking().set_index("method")["srg_rank"].to_dict()


def test_the_truth_comes_first_and_its_inverse_last(world):
    methods = {"truth": world.truth, "random-like": "random", "lie": -world.truth}
    comparison = rw.compare(world.model, (world.images, world.labels), methods, controls=("inverted",))
    table = comparison.ranking()
    assert table["method"].iloc[0] == "truth"
    assert set(table["method"].iloc[-2:]) == {"lie", "truth inverted"}
    assert table.loc[table["method"] == "truth inverted", "control"].item()


def test_one_relevant_pixel_is_found_with_both_orders():
    world = worlds.one_pixel()
    comparison = rw.compare(world.model, (world.images, world.labels), {"truth": world.truth}, controls=("random",))
    curves = comparison.curves().set_index(["method", "order", "fraction"])["accuracy"]
    # 64 pixels, 10 % is 6 of them: MoRF takes the one that matters at once, LeRF at 90 % still has it.
    assert curves["truth", "morf", 0.1] < 0.7
    assert curves["truth", "lerf", 0.9] == 1.0
    assert comparison.ranking()["method"].iloc[0] == "truth"


def test_an_inverted_control_is_what_evaluating_the_inverted_map_gives(world):
    # Distinct values: with ties, the inverted map would break them the other way round.
    maps = world.truth + 1e-3 * rw.Key(0).uniform(range(16), (12, 12))
    derived = rw.compare(world.model, (world.images, world.labels), {"it": maps}, controls=("inverted",))
    evaluated = rw.compare(world.model, (world.images, world.labels), {"it inverted": -maps}, controls=())
    ours, theirs = (
        comparison.curves().set_index(["method", "order", "fraction"]) for comparison in (derived, evaluated)
    )
    rows = theirs.index
    assert np.allclose(ours.loc[rows, "accuracy"], theirs["accuracy"])


def test_blurred_copies_of_the_two_leading_methods_are_controls(world):
    methods = {"truth": world.truth, "ig": "ig", "edges-like": "edges"}
    comparison = rw.compare(world.model, (world.images, world.labels), methods, controls=("blurred",), fractions=(0.5,))
    leaders = comparison.ranking().query("~control")["method"].iloc[:2]
    assert set(comparison.controls) == {f"{name} blurred" for name in leaders}


def same(first, second):
    a, b = first.per_image(), second.per_image()
    return np.abs(a["probability"] - b["probability"]).max() < 1e-6 and (a["predicted"] == b["predicted"]).all()


def test_data_may_come_as_tensors_arrays_datasets_or_loaders(world):
    pairs = TensorDataset(world.images, world.labels)
    reference = rw.compare(world.model, (world.images, world.labels), {"t": world.truth}, **FAST)
    for data in ((world.images.numpy(), world.labels.numpy()), pairs, DataLoader(pairs, batch_size=5)):
        assert same(rw.compare(world.model, data, {"t": world.truth}, **FAST), reference)


def test_without_labels_the_prediction_stands_in(world):
    comparison = rw.compare(world.model, world.images, {"t": world.truth}, **FAST)
    plain = comparison.curves().query("fraction == 0")
    assert (plain["accuracy"] == 1).all()


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # the labels are wrong on purpose
def test_the_target_may_be_the_prediction_while_accuracy_stays_with_the_label(world):
    wrong = (world.labels + 1) % 4
    seen = []

    def method(model, batch, key):
        seen.extend(batch.labels.tolist())
        return batch.images

    comparison = rw.compare(world.model, (world.images, wrong), {"m": method}, target="prediction", **FAST)
    assert seen[-16:] == world.labels.tolist()
    plain = comparison.curves().query("fraction == 0")
    assert (plain["accuracy"] == 0).all()
    assert (plain["probability"] > 0.9).all()


class WithLogits(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return type("Answer", (), {"logits": self.network(images)})()


def test_models_may_be_callables_or_answer_with_logits(world):
    reference = rw.compare(world.model, (world.images, world.labels), {"ig": "ig"}, **FAST)
    for model in (lambda images: world.model(images), WithLogits(world.model)):
        assert same(rw.compare(model, (world.images, world.labels), {"ig": "ig"}, **FAST), reference)


def test_a_model_normalizes_its_own_input(world):
    def expects_normalized(inputs):
        return world.model(inputs * 0.2 + 0.5)

    wrapped = rw.Normalized(expects_normalized, mean=0.5, std=0.2)
    reference = rw.compare(world.model, (world.images, world.labels), {"t": world.truth}, **FAST)
    other = rw.compare(wrapped, (world.images, world.labels), {"t": world.truth}, **FAST)
    assert np.abs(reference.per_image()["probability"] - other.per_image()["probability"]).max() < 1e-5


def test_several_imputers_orders_and_seeds_make_a_table_of_settings(world):
    comparison = rw.compare(
        world.model, (world.images, world.labels), {"t": world.truth, "r": "random"}, imputers=["linear", "fixed"],
        seeds=(0, 1), **FAST,
    )  # fmt: skip
    assert len(comparison.predictions) == 2 * 2 * 2 * 3 * 2  # methods, orders, imputers, fractions with 0, seeds
    assert len(comparison.agreement()) == 4 * 3 // 2 + 4  # 6 pairs of settings, the 4 of unlike orders twice
    assert set(comparison.ranking()["imputer"]) == {"linear", "fixed"}


def test_one_order_alone_is_ranked_by_its_area(world):
    comparison = rw.compare(
        world.model, (world.images, world.labels), {"t": world.truth, "r": "random"}, orders=("morf",), fractions=(0.5,)
    )
    table = comparison.ranking()
    assert "srg" not in table
    assert table["method"].iloc[0] in ("t", "t blurred")
    assert "MoRF" in str(comparison)


def test_a_notebook_shows_the_ranking_with_names_escaped(world):
    html = rw.compare(world.model, (world.images, world.labels), {"<img src=x>": world.truth}, **FAST)._repr_html_()
    assert "&lt;img src=x&gt;" in html
    assert "<img" not in html


def check_error(error, match, world, methods=None, **options):
    with pytest.raises(error, match=match):
        rw.compare(
            options.pop("model", world.model), options.pop("data", (world.images, world.labels)),
            methods or {"mine": world.truth}, **options,
        )  # fmt: skip


def test_maps_that_do_not_fit_are_named_with_their_shape(world):
    errors = rw.errors
    check_error(errors.ShapeError, r"mine: 15 maps for 16 images", world, {"mine": world.truth[:15]})
    check_error(errors.ShapeError, r"mine: maps of 13×12 pixels", world, {"mine": torch.zeros(16, 13, 12)})
    check_error(errors.ShapeError, r"mine: maps \(16, 2, 12, 12\)", world, {"mine": torch.zeros(16, 2, 12, 12)})
    check_error(errors.ShapeError, r"mine: maps \(16, 144\)", world, {"mine": torch.zeros(16, 144)})
    broken = world.truth.clone()
    broken[11, 0, 0] = float("nan")
    check_error(errors.InputError, r"mine: NaN in the maps of images 11", world, {"mine": broken})


def test_a_bad_method_is_found_before_a_good_ones_long_work(world):
    calls = []

    def good(model, batch, key):
        calls.append(len(batch))
        return batch.images

    check_error(rw.errors.ShapeError, "bad", world, {"good": good, "bad": lambda model, batch, key: torch.zeros(3)})
    assert sum(calls) <= 6  # only the rehearsal
    check_error(rw.errors.InputError, "bad: a float", world, {"good": good, "bad": 0.5})
    assert sum(calls) <= 6


def test_fractions_are_shares(world):
    check_error(rw.errors.RangeError, "fraction 10.0", world, fractions=(10, 20))
    check_error(rw.errors.RangeError, "fraction -0.1", world, fractions=(-0.1,))
    check_error(rw.errors.RangeError, "fraction nan", world, fractions=(float("nan"),))
    check_error(rw.errors.RangeError, "empty", world, fractions=())
    check_error(rw.errors.InputError, "only 0", world, fractions=(0,))
    check_error(rw.errors.EverythingRemovedError, "fraction below 1", world, fractions=(0.5, 1))


def test_all_pixels_may_be_removed_where_the_imputer_allows_it(world):
    curves = rw.compare(
        world.model, (world.images, world.labels), {"t": world.truth}, imputers="constant", fractions=(1,), controls=()
    ).curves()
    # All images are black then: the model predicts class 0 for every one, which is right for a quarter.
    assert (curves.loc[curves["fraction"] == 1, "accuracy"] == 0.25).all()


def test_labels_beyond_the_models_classes_are_named(world):
    labels = world.labels.clone()
    labels[14] = 7
    check_error(
        rw.errors.RangeError, "image 14 has label 7, the model knows classes 0 to 3", world, data=(world.images, labels)
    )


def test_images_must_be_pixels_in_0_to_1(world):
    check_error(rw.errors.RangeError, "divide by 255", world, data=((world.images * 255).round(), world.labels))
    check_error(rw.errors.RangeError, "Normalized", world, data=(world.images * 3 - 1, world.labels))


def test_bytes_are_the_same_images(world):
    pixels = (world.images * 255).round().byte()
    for maps in (world.truth, world.truth.numpy()[..., None]):
        scores = [
            rw.road(world.model, images, world.labels, maps, fractions=(0.3,)) for images in (pixels, pixels / 255)
        ]
        assert scores[0] == scores[1]


def test_numbers_of_numpy_are_numbers(world):
    data = (world.images, [np.int32(label) for label in world.labels.tolist()])
    options = {"controls": (), "progress": False}
    plain = rw.compare(
        world.model, data, {"t": world.truth}, fractions=(0.25, 0.5), seeds=(0, 1), batch_size=8, **options
    )
    numpy = rw.compare(
        world.model, data, {"t": world.truth}, fractions=np.array([0.25, 0.5]), seeds=np.arange(2),
        batch_size=np.int64(8), **options,
    )  # fmt: skip
    assert numpy.ranking().equals(plain.ranking())
    check_error(rw.errors.InputError, r"seeds=.*give several", world, seeds=np.int64(3))
    check_error(rw.errors.InputError, "batch_size=2.5: give a whole number", world, batch_size=2.5)


def test_the_road_score_has_the_interval_of_the_ranking(world):
    data = (world.images, world.labels)
    row = rw.compare(world.model, data, {"maps": world.truth}, fractions=(0.3,), controls=(), progress=False).ranking()
    score = rw.road(world.model, *data, world.truth, fractions=(0.3,), return_interval=True)
    assert score == tuple(row[["srg", "srg_low", "srg_high"]].iloc[0])
    assert score.low <= score.score <= score.high
    assert rw.road(world.model, *data, world.truth, fractions=(0.3,)) == score.score


def test_a_model_that_is_not_a_classifier_is_an_error(world):
    errors = rw.errors
    check_error(errors.ModelError, r"\(8, 1\)", world, model=lambda images: world.model(images)[:, :1])
    check_error(errors.ModelError, "NaN", world, model=lambda images: world.model(images) * float("nan"))
    check_error(errors.ModelError, "str", world, model=lambda images: "cat")
    check_error(errors.ModelError, "the class Quadrants", world, model=worlds.Quadrants)
    check_error(errors.ModelError, "callable", world, model="resnet")


def test_unknown_names_come_with_the_nearest_right_one(world):
    check_error(rw.errors.UnknownNameError, "did you mean 'linear'", world, imputers="linaer")
    check_error(rw.errors.UnknownNameError, "did you mean 'morf'", world, orders=("mofr",))
    check_error(rw.errors.UnknownNameError, "did you mean 'ig'", world, {"mine": "IGG"})
    check_error(rw.errors.InputError, "control 'rnd'", world, controls=("rnd",))
    check_error(rw.errors.InputError, "target", world, target="class")
    check_error(
        rw.errors.InputError,
        "channel_reduction='mean'",
        world,
        {"mine": torch.zeros(16, 3, 12, 12)},
        channel_reduction="mean",
    )


def test_removal_mask_and_impute_are_the_smallest_calls(world):
    removed = rw.removal_mask(world.truth, 0.1)
    assert removed.flatten(1).sum(dim=1).tolist() == [14] * 16  # floor(14.4 + .5)
    assert torch.equal(rw.removal_mask(world.truth, 0.9, order="lerf"), ~removed)  # 130 of 144, the complement of 14
    filled = rw.impute(rw.NoisyLinear(), world.images, removed)
    assert torch.equal(filled[:, 0][~removed], world.images[:, 0][~removed])
    with pytest.raises(rw.errors.RangeError):
        rw.removal_mask(world.truth, 1.5)


def test_arguments_of_the_wrong_kind_come_with_the_right_one(world):
    check_error(rw.errors.InputError, "methods is a list", world, ["ig"])
    check_error(rw.errors.InputError, r"orders='morf': give several, as in orders=\('morf',\)", world, orders="morf")
    check_error(rw.errors.InputError, "controls='random'", world, controls="random")
    check_error(rw.errors.InputError, "seeds=3", world, seeds=3)
    check_error(rw.errors.InputError, "device='cuda:77'", world, device="cuda:77")
    check_error(rw.errors.ShapeError, "mine returned a NoneType", world, {"mine": lambda model, batch, key: None})
    with pytest.raises(rw.errors.InputError, match="cannot explain noisy inputs"):
        rw.attributions.smoothgrad("ig", samples=2, sigma=0.1)
    with pytest.raises(rw.errors.InputError, match="init="):
        rw.attributions.Captum(captum.attr.LayerGradCam)


def test_an_error_in_a_users_method_says_which_one(world):
    def broken(model, batch, key):
        raise KeyError("oops")

    with pytest.raises(KeyError) as caught:
        rw.compare(world.model, (world.images, world.labels), {"mine": broken}, **FAST)
    assert "while computing the maps of 'mine'" in caught.value.__notes__[0]


def test_pictures_are_of_the_fractions_that_were_evaluated(world, tmp_path):
    comparison = rw.compare(
        world.model, (world.images, world.labels), {"t": world.truth}, fractions=(0.2, 0.6), controls=()
    )
    page = comparison.report(tmp_path / "page.html").read_text()
    assert "20% removed" in page
    assert "60% removed" in page
    assert len(repr(comparison)) < 100


# ── parts by name ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_imputers_of_one_class_need_names(world):
    # One silently replaced the other.
    pair = [rw.NoisyLinear(), rw.NoisyLinear(noise=0.2)]
    check_error(rw.errors.InputError, r"two imputers are named 'linear': name them .*imputers=\{'linear'", world,
                imputers=pair)  # fmt: skip
    comparison = rw.compare(world.model, (world.images, world.labels), {"t": world.truth}, **FAST,
                            imputers=dict(zip(("calm", "noisy"), pair, strict=True)))  # fmt: skip
    assert {point.imputer for point in comparison.predictions} == {"calm", "noisy"}
    table = comparison.per_image().query("fraction > 0").pivot_table("probability", ["order", "id"], "imputer")
    assert not np.allclose(table["calm"], table["noisy"])


def test_imputers_are_named_as_in_the_registry_or_by_their_own_name(world):
    def half(batch, removed, key):
        return torch.where(removed[:, None], 0.5, batch.images)

    comparison = rw.compare(world.model, (world.images, world.labels), {"t": world.truth}, **FAST,
                            imputers=["fixed", rw.Constant(0.2), half])  # fmt: skip
    assert list(dict.fromkeys(point.imputer for point in comparison.predictions)) == ["fixed", "constant", "half"]
    for empty in ([], {}):
        check_error(rw.errors.InputError, "imputers is empty", world, imputers=empty)


def test_a_method_cannot_have_the_name_of_a_control_or_of_a_copy(world):
    # A copy overwrote the method of that name after all the work was done.
    calls = []

    def method(model, batch, key):
        calls.append(1)
        return batch.images

    for name in ("IG blurred", "IG inverted", "random"):
        check_error(rw.errors.InputError, f"'{name}' names a method and a control: rename", world,
                    {"IG": "ig", name: method})  # fmt: skip
    assert not calls
    free = rw.compare(world.model, (world.images, world.labels), {"IG": "ig", "IG blurred": method}, **FAST)
    assert set(free.ranking()["method"]) == {"IG", "IG blurred"}


def test_the_conclusion_follows_the_noisy_linear_imputer_and_not_the_name_linear(world):
    methods = {"truth": world.truth, "lie": -world.truth}
    comparison = rw.compare(world.model, (world.images, world.labels), methods, **FAST,
                            imputers={"linear": rw.Constant(0.5), "fancy": rw.NoisyLinear()})  # fmt: skip
    assert comparison.results.preferred == ("no-retrain", "fancy")
    assert comparison.findings().preferred == ("no-retrain", "fancy")
    assert "fancy" in comparison.conclusion().sentence


def test_methods_may_be_files_or_named_functions(world, tmp_path, monkeypatch):
    np.save(tmp_path / "maps.npy", world.truth.numpy())
    (tmp_path / "own_methods.py").write_text("def brightness(model, batch, key):\n    return batch.images\n")
    monkeypatch.syspath_prepend(tmp_path)
    methods = {"file": tmp_path / "maps.npy", "text": str(tmp_path / "maps.npy"), "named": "own_methods:brightness"}
    comparison = rw.compare(world.model, (world.images, world.labels), methods, **FAST)
    reference = rw.compare(world.model, (world.images, world.labels), {"file": world.truth}, **FAST)
    assert ranks(comparison).keys() == methods.keys()
    rows = comparison.per_image().set_index(["method", "order", "fraction", "id"])["probability"]
    expected = reference.per_image().set_index(["method", "order", "fraction", "id"])["probability"]
    assert np.array_equal(rows.loc[expected.index], expected)


def test_constant_maps_are_warned_of(world):
    comparison = rw.compare(
        world.model, (world.images, world.labels), {"flat": torch.zeros(16, 12, 12), "ig": "ig"}, fractions=(0.5,),
        controls=("random",),
    )  # fmt: skip
    warnings = comparison.warnings().set_index("kind")
    assert warnings.loc["constant maps", "method"] == "flat"
    assert comparison.results.ties["random"].tied < 0.05
    assert "Warning" in str(comparison)


# ── evaluators that train ────────────────────────────────────────────────────────────────────────────────────────────


def network():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(16, 4))  # fmt: skip


def trained(**options):
    world = worlds.quadrants(n=60)
    choice = {
        "evaluators": ("no-retrain", "retrain", "fine-tuned"),
        "train": (world.images[16:], world.labels[16:]),
        "recipe": SHORT,
        **FAST,
        **options,
    }
    with rw.Key(0).torch_rng():
        model = network()
    return rw.compare(model, (world.images[:16], world.labels[:16]), {"ig": "ig"}, **choice)


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # the model is untrained
def test_models_are_retrained_from_the_architecture_of_the_given_one():
    comparison = trained()
    assert {point.evaluator for point in comparison.predictions} == {"no-retrain", "retrain", "fine-tuned"}
    explicit = trained(network=network)
    for point, predictions in comparison.predictions.items():
        assert np.array_equal(predictions.probability, explicit.predictions[point].probability)


def test_what_a_training_lacks_is_an_error_before_long_work():
    errors = rw.errors
    for options, error, message in (
        ({"train": None}, errors.InputError, "give train="),
        ({"recipe": None}, errors.InputError, "give recipe="),
        ({"recipe": "huge"}, errors.InputError, "recipe 'huge': choose from"),
        ({"evaluators": "oracle"}, errors.InputError, "evaluator 'oracle': choose from"),
        ({"evaluators": ()}, errors.InputError, "evaluators is empty"),
        ({"imputers": "gain"}, errors.InputError, "imputer 'gain' needs options"),
        ({"imputers": gains.TINY, "evaluators": "no-retrain", "train": None}, errors.InputError, "give train= too"),
    ):
        with pytest.raises(error, match=message):
            trained(**options)


def test_an_architecture_that_cannot_be_reset_needs_a_network(world):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, images):
            return world.model(images) * self.scale

    check_error(rw.errors.ModelError, "scale has no reset_parameters.*network=", world, {"ig": "ig"}, model=Scaled(),
                evaluators="retrain", recipe=SHORT, train=(world.images + 0.01, world.labels))  # fmt: skip
