"""Images are taken, in an order fixed by key, until the methods are ranked."""

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import roadworthy as rw
import worlds
from roadworthy.datasets import Arrays, as_dataset, first
from roadworthy.datasets.subsets import picked
from roadworthy.experiments.study import looks, tied


@pytest.fixture(scope="module")
def world():
    return worlds.quadrants(n=400)


def compare(world, methods=None, **options):
    choice = {"fractions": (0.3, 0.6), "until_ranked": 0.95, "map_batch": 32, "controls": ("random",), **options}
    return rw.compare(world.model, (world.images, world.labels), methods or {"truth": world.truth}, **choice)


@pytest.fixture(scope="module")
def stopped(world):
    return compare(world, controls=("random", "blurred", "inverted"))


def test_plainly_different_methods_take_a_part_of_the_images(world, stopped):
    used = len(next(iter(stopped.predictions.values())))
    assert used < 400 / 3
    # Every pair that the rule is about is decided at that moment; copies were evaluated afterwards.
    pair = stopped.pairs().set_index(["method_a", "method_b"]).loc[("truth", "random")]
    assert pair["low"] > 0
    assert stopped.ranking().query("~control")["method"].tolist() == ["truth"]


def test_all_methods_and_copies_are_judged_on_the_same_images(stopped):
    ids = [prediction.ids.tolist() for prediction in stopped.predictions.values()]
    assert all(one == ids[0] for one in ids)
    assert len(set(ids[0])) == len(ids[0])
    assert {point.method for point in stopped.predictions} == {"truth", "random", "truth blurred", "truth inverted"}


def test_the_order_is_fixed_by_key_and_not_that_of_the_data(world, stopped):
    ids = next(iter(stopped.predictions.values())).ids
    again = next(iter(compare(world).predictions.values())).ids
    other = next(iter(compare(world, seeds=(1,)).predictions.values())).ids
    assert ids[:32].tolist() == again[:32].tolist()
    assert ids[:32].tolist() != other[:32].tolist()
    assert ids[:32].max() > 200  # 32 random places of 400, all below 200: 1 in 4 billion


def test_the_images_taken_are_judged_as_in_a_whole_study(world, stopped):
    whole = compare(world, until_ranked=None).per_image()
    part = stopped.per_image().query("method == 'truth'")
    both = part.merge(whole, on=["method", "order", "fraction", "id"])
    assert len(both) == len(part)
    assert (both["predicted_x"] == both["predicted_y"]).all()
    assert (both["probability_x"] - both["probability_y"]).abs().max() < 1e-5


def test_equal_methods_are_a_tie_within_the_margin_and_said_to_be(world):
    comparison = compare(world, {"one": world.truth, "two": world.truth}, controls=(), margin=0.3)
    pair = comparison.pairs().iloc[0]
    assert pair["tie"]
    assert not pair["separated"]
    assert np.isnan(pair["probability"])  # a share of resampled studies means nothing when the images said when to stop
    assert "tied within the margin" in str(comparison)


def test_where_images_run_out_pairs_stay_open(world):
    comparison = compare(world, {"one": world.truth, "two": world.truth}, controls=(), margin=0.001)
    assert len(next(iter(comparison.predictions.values()))) == 400
    assert "400 of 400 images" in comparison.summary()
    assert "still open: 1 of 1 pairs" in comparison.summary()


def test_the_summary_says_how_far_it_went(stopped):
    used = len(next(iter(stopped.predictions.values())))
    text = f"{used} of 400 images were taken until every pair was decided or surely within 0.02, at 95% for all pairs"
    assert text in str(stopped)
    assert "still open" not in str(stopped)  # truth and its blurred copy may well be, but the rule is not about copies


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until_ranked": 95}, "until_ranked=95"),
        ({"until_ranked": float("nan")}, "until_ranked=nan"),
        ({"margin": -0.1}, "margin=-0.1"),
        ({"controls": ()}, "at least 2 methods"),
    ],
)
def test_senseless_rules_are_refused(world, options, message):
    with pytest.raises(rw.errors.InputError, match=message):
        compare(world, **options)


def test_looks_grow_and_end_with_the_last_image():
    # 10, then half as many again, rounded down; a single image may come between two looks at the least.
    assert [(part.start, part.stop) for part in looks(30, 10)] == [(0, 10), (10, 15), (15, 22), (22, 30)]
    assert [part.stop for part in looks(3, 1)] == [1, 2, 3]
    assert [part.stop for part in looks(5, 64)] == [5]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_picked_images_keep_ids_labels_and_order_streamed_or_not(size):
    images, labels, ids = torch.rand(10, 1, 4, 4), torch.arange(10), torch.arange(10) * 3
    direct, streamed = Arrays(images, labels, ids), as_dataset(TensorDataset(images, labels))
    for data, expected in ((direct, [3, 12, 24]), (first(direct, 9), [3, 12, 24]), (streamed, [1, 4, 8])):
        chosen = picked(data, [1, 4, 8])
        parts = list(chosen.batches(size))
        assert torch.cat([batch.ids for batch in parts]).tolist() == chosen.ids.tolist() == expected
        assert torch.equal(torch.cat([batch.images for batch in parts]), images[[1, 4, 8]])
        assert torch.cat([batch.labels for batch in parts]).tolist() == [1, 4, 8]
        assert max(len(batch) for batch in parts) <= size
    with pytest.raises(rw.errors.RangeError, match="from 0 to 9"):
        picked(direct, [3, 10])


def test_picked_pictures_are_the_only_ones_read(tmp_path):
    from PIL import Image

    for number in range(6):
        Image.new("RGB", (4, 4), (number * 40, 0, 0)).save(tmp_path / f"{number}.png")
    data = rw.datasets.ImageFolder(tmp_path)
    (tmp_path / "2.png").write_bytes(b"no picture")  # it would be an error to open this one
    (batch,) = picked(data, [1, 4]).batches(10)
    assert batch.ids.tolist() == [1, 4]
    assert torch.allclose(batch.images[:, 0, 0, 0], torch.tensor([40, 160]) / 255)


def test_ties_are_counted_per_image():
    # 1 2 / 3 1: two of four pixels share a score; all zero: all do, and the map is constant; distinct: none.
    scores = torch.tensor([[[1.0, 2], [3, 1]], [[0, 0], [0, 0]], [[1, 2], [3, 4]]])
    assert tied(scores).tolist() == [[0.5, 0], [1, 1], [0, 0]]


def test_constant_maps_are_warned_of(world):
    comparison = rw.compare(
        world.model, (world.images[:60], world.labels[:60]), {"flat": torch.zeros(60, 12, 12), "ig": "ig"},
        fractions=(0.5,), controls=("random",),
    )  # fmt: skip
    found = comparison.warnings().set_index("kind")
    assert found.loc["constant maps", "method"] == "flat"
    assert comparison.ties["random"].tied < 0.05
    assert "Warning" in str(comparison)
