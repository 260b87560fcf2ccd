"""Images are taken, in an order fixed by the seed, until the methods are ranked."""

import numpy as np
import pytest
import torch

import roadworthy as rw
import worlds
from roadworthy.training.recipe import Recipe


@pytest.fixture(scope="module")
def world():
    return worlds.quadrants(n=400)


def compare(world, methods=None, **options):
    choice = {"fractions": (0.3, 0.6), "until": "ranked", "map_batch_size": 32, "controls": ("random",), **options}
    methods = methods or {"truth": world.truth}
    return rw.compare(world.model, (world.images, world.labels), methods, progress=False, **choice)


def taken(comparison):
    return next(iter(comparison.predictions.values())).ids


@pytest.fixture(scope="module")
def stopped(world):
    return compare(world, controls=("random", "blurred", "inverted"))


def test_plainly_different_methods_take_a_part_of_the_images(stopped):
    assert len(taken(stopped)) < 400 / 3
    # Every pair that the rule is about is decided at that moment; copies were evaluated afterwards.
    pair = stopped.pairwise().set_index(["method_a", "method_b"]).loc[("truth", "random")]
    assert pair["low"] > 0
    assert stopped.ranking().query("~control")["method"].tolist() == ["truth"]


def test_all_methods_and_copies_are_evaluated_on_the_same_images(stopped):
    ids = [predictions.ids.tolist() for predictions in stopped.predictions.values()]
    assert all(others == ids[0] for others in ids)
    assert len(set(ids[0])) == len(ids[0])
    assert {point.method for point in stopped.predictions} == {"truth", "random", "truth blurred", "truth inverted"}


def test_the_order_is_fixed_by_the_seed_and_not_that_of_the_data(world, stopped):
    first = set(stopped.source.design.blocks[0].rows)
    assert first <= set(taken(stopped))
    assert first <= set(taken(compare(world)))
    assert not first <= set(taken(compare(world, seeds=(1,))))
    assert max(first) > 200  # 32 random rows of 400, all below 200: 1 in 4 billion


def test_the_images_that_are_taken_are_evaluated_as_in_a_complete_run(world, stopped):
    whole = compare(world, until=None).per_image()
    part = stopped.per_image().query("method == 'truth'")
    both = part.merge(whole, on=["method", "order", "fraction", "id"])
    assert len(both) == len(part)
    assert (both["predicted_x"] == both["predicted_y"]).all()
    assert (both["probability_x"] - both["probability_y"]).abs().max() < 1e-5


def test_equal_methods_are_tied_within_the_margin(world):
    comparison = compare(world, {"one": world.truth, "two": world.truth}, controls=(), margin=0.3)
    pair = comparison.pairwise().iloc[0]
    assert pair["tie"]
    assert not pair["separated"]
    assert np.isnan(pair["probability"])  # a share of resampled runs means nothing if the images decided when to stop
    conclusion = comparison.conclusion()
    assert conclusion.state == "TIE"
    used = len(taken(comparison))
    assert f"tied on {used} of 400 images: their scores differ by at most 0." in conclusion.sentence


def test_where_images_run_out_pairs_stay_open(world):
    comparison = compare(world, {"one": world.truth, "two": world.truth}, controls=(), margin=0.001)
    assert len(taken(comparison)) == 400
    conclusion = comparison.conclusion()
    assert conclusion.state == "NOT YET"
    assert "Early stopping took 400 of 400 images" in str(conclusion)
    assert "Still open: 1 of 1 pairs" in str(conclusion)


def test_until_best_does_not_wait_for_the_rest_to_be_ranked(world):
    twins = {"truth": world.truth, "lie": -world.truth, "lie too": -world.truth}
    best = compare(world, twins, controls=(), until="best", margin=0.001)
    assert len(taken(best)) < 400
    assert best.ranking()["method"].iloc[0] == "truth"
    assert len(taken(compare(world, twins, controls=(), margin=0.001))) == 400


def test_until_best_stops_when_a_control_is_the_best(world):
    lies = {"lie": -world.truth, "lie too": -world.truth + 0.001 * rw.Key(1).uniform(range(400), (12, 12))}
    comparison = compare(world, lies, until="best", margin=0.001)
    assert len(taken(comparison)) < 400  # the two lies are as good as equal, but nobody asks which is better
    assert comparison.conclusion().state == "NO METHOD BEATS THE CONTROLS"
    assert "The control random" in comparison.conclusion().sentence


def test_a_finite_population_is_known_in_the_end_and_the_conclusion_says_what_it_is_about(world):
    twins = {"one": world.truth, "two": world.truth}
    comparison = compare(world, twins, controls=(), margin=0.001, population="finite")
    pair = comparison.pairwise().iloc[0]
    assert (pair["low"], pair["high"]) == (0, 0)  # every image scores the same, and all were seen
    conclusion = comparison.conclusion()
    assert conclusion.state == "TIE"
    assert "about these 400 images, not about others like them" in conclusion.sentence
    assert "contain what all 400 would give" in str(conclusion)
    clear = compare(world, population="finite")
    assert len(taken(clear)) < 400
    assert "about these 400 images" in clear.conclusion().sentence
    assert "about these" not in compare(world).conclusion().sentence


def test_a_saved_comparison_keeps_its_rule(stopped, tmp_path):
    again = rw.load(stopped.save(tmp_path / "saved"))
    assert again.results.stopping == stopped.results.stopping
    assert again.pairwise()["low"].tolist() == stopped.pairwise()["low"].tolist()


def test_a_higher_confidence_takes_more_images(world):
    maps = world.truth + 1.5 * rw.Key(5).uniform(range(400), (12, 12))
    used = [len(taken(compare(world, {"noisy": maps}, confidence=level))) for level in (0.5, 0.9999)]
    assert used[0] < used[1]


def test_the_conclusion_says_how_many_images_were_taken(stopped):
    used, conclusion = len(taken(stopped)), stopped.conclusion()
    assert conclusion.state == "CLEAR WINNER"
    assert f"clearly better than the control random, on {used} of 400 images" in conclusion.sentence
    assert f"Early stopping took {used} of 400 images" in str(stopped)
    assert "hold for all pairs simultaneously with 95 % confidence" in str(stopped)
    # truth and its blurred copy may well be, but the rule is not about copies
    assert "still open" not in str(stopped).lower()
    assert "of resamples" not in str(stopped)
    assert "are rough" not in str(stopped)


def network():
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 4))


def test_evaluators_that_train_follow_on_the_images_that_were_taken():
    world, train = worlds.quadrants(n=200), slice(100, 200)
    comparison = rw.compare(
        world.model, (world.images[:100], world.labels[:100]), {"ig": "ig"}, until="ranked", confidence=0.8,
        controls=("random",), evaluators=("no-retrain", "retrain"), train=(world.images[train], world.labels[train]),
        recipe=Recipe(epochs=1, select="last"), network=network, fractions=(0.5,), map_batch_size=16, progress=False,
    )  # fmt: skip
    assert {point.evaluator for point in comparison.predictions} == {"no-retrain", "retrain"}
    assert len({tuple(predictions.ids) for predictions in comparison.predictions.values()}) == 1
    assert len(taken(comparison)) < 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 95}, "confidence=95"),
        ({"confidence": float("nan")}, "confidence=nan"),
        ({"margin": -0.1}, "margin=-0.1"),
        ({"controls": ()}, "at least 2 methods"),
        ({"until": "sure"}, "until='sure': choose 'ranked' or 'best'"),
        ({"population": "small"}, "population='small': choose 'infinite'"),
        ({"population": "finite", "until": None}, "population='finite' needs until"),
        (
            {"evaluators": "fine-tuned", "recipe": "tiny", "train": (torch.rand(4, 3, 12, 12), torch.arange(4))},
            "add 'no-retrain'",
        ),
    ],
)
def test_invalid_rules_are_errors(world, options, message):
    with pytest.raises(rw.errors.InputError, match=message):
        compare(world, **options)
