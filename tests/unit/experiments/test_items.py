"""Items and blocks: ids follow content, and nothing else."""

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from roadworthy.core.types import Batch
from roadworthy.datasets import Arrays, as_dataset
from roadworthy.experiments.items import (
    Block,
    Item,
    canonical,
    combined,
    default_block_size,
    fingerprint_block,
    fingerprint_blocks,
    fingerprint_model,
    growing_rows,
    sequential_rows,
)
from roadworthy.models.normalized import Normalized


def block(fingerprint="f", **changes):
    return Block(**{"split": "test", "index": 0, "rows": (0, 1), "fingerprint": fingerprint, **changes})


def test_an_id_follows_kind_spec_block_and_needs():
    item = Item("maps", {"a": 1}, {}, (), block())
    others = [
        Item("audit", {"a": 1}, {}, (), block()),
        Item("maps", {"a": 2}, {}, (), block()),
        Item("maps", {"a": 1}, {}, (), block("other")),
        Item("maps", {"a": 1}, {}, ()),
        Item("maps", {"a": 1}, {}, (Item("baseline", {}, {}),), block()),
    ]
    assert len({item.id, *(other.id for other in others)}) == 6
    assert len(item.id) == 32


def test_an_id_does_not_follow_names_or_places():
    item = Item("maps", {"a": 1, "b": 2}, {"method": "IG"}, (), block())
    same = Item("maps", {"b": 2, "a": 1}, {"method": "mine"}, (), block(split="train", index=3, rows=(6, 7)))
    assert item.id == same.id


def test_the_id_of_an_item_follows_what_its_needs_need():
    def chain(value):
        first = Item("imputer", {"recipe": value}, {})
        return Item("predictions", {}, {}, (Item("model", {}, {}, (first,)),))

    assert chain(1).id == chain(1).id != chain(2).id


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical({"a": 1, "b": {"d": 2.5, "c": [1]}}) == canonical({"b": {"c": [1], "d": 2.5}, "a": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": float("nan")})


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sequential_rows_cover_all_images_once():
    assert sequential_rows(7, 3) == [(0, 1, 2), (3, 4, 5), (6,)]
    assert sequential_rows(0, 3) == []


def test_growing_rows_grow_by_a_quarter_and_cover_all_images_once():
    # 10, then half of that more until it is a quarter of what was taken, then a quarter: 10, 15, 20, 25 (+ 6), 31, 38
    rows = growing_rows(40, 10, seed=0)
    assert [len(part) for part in rows] == [10, 5, 5, 5, 6, 7, 2]
    assert sorted(row for part in rows for row in part) == list(range(40))
    assert all(list(part) == sorted(part) for part in rows)
    assert [len(part) for part in growing_rows(3, 1, seed=0)] == [1, 1, 1]
    assert [len(part) for part in growing_rows(5, 64, seed=0)] == [5]


def test_growing_rows_are_a_random_order_fixed_by_the_seed():
    assert growing_rows(400, 32, seed=0) == growing_rows(400, 32, seed=0) != growing_rows(400, 32, seed=1)
    assert max(growing_rows(400, 32, seed=0)[0]) > 200  # 32 random rows of 400, all below 200: 1 in 4 billion


@pytest.mark.parametrize(
    ("shape", "batch_size", "map_batch_size", "expected"),
    [
        ((3, 32, 32), 64, 64, 1024),
        ((3, 32, 32), 48, 64, 960),  # 5 times 192, the least common multiple
        ((3, 224, 224), 64, 64, 128),  # 32 MB of float32 maps are 167 images
        ((3, 2000, 2000), 64, 64, 64),  # 2 images would be enough, but a batch is complete
    ],
)
def test_the_default_block_is_a_whole_number_of_batches_that_fits_memory(shape, batch_size, map_batch_size, expected):
    assert default_block_size(torch.Size(shape), batch_size, map_batch_size) == expected


# ── fingerprints ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def data():
    return Arrays(torch.rand(10, 1, 4, 4), torch.arange(10) % 2, ids=range(100, 110))


def test_each_block_has_its_own_fingerprint(data):
    prints = fingerprint_blocks(data, sequential_rows(10, 4))
    assert len(set(prints)) == 3
    for rows, fingerprint in zip(sequential_rows(10, 4), prints, strict=True):
        assert fingerprint_block(data.at(rows)) == fingerprint
    assert prints == fingerprint_blocks(data, sequential_rows(10, 4))


def test_a_fingerprint_follows_ids_labels_and_pixels_of_its_images_alone(data):
    rows = sequential_rows(10, 5)
    first, second = fingerprint_blocks(data, rows)
    images, labels, ids = data.images.clone(), data.labels.clone(), data.ids.clone()
    images[7, 0, 0, 0] += 0.001
    labels[8], ids[9] = 1 - labels[8], 999
    for changed in (Arrays(images, data.labels, data.ids), Arrays(data.images, labels, data.ids),
                    Arrays(data.images, data.labels, ids)):  # fmt: skip
        assert fingerprint_blocks(changed, rows)[0] == first
        assert fingerprint_blocks(changed, rows)[1] != second


def test_streamed_images_have_the_fingerprint_of_the_same_images_in_memory():
    images, labels = torch.rand(6, 1, 3, 3), torch.arange(6)
    rows = [(1, 4), (0, 2, 3, 5)]
    streamed = as_dataset(TensorDataset(images, labels))
    assert fingerprint_blocks(streamed, rows) == fingerprint_blocks(Arrays(images, labels), rows)


def test_a_fingerprint_follows_the_shape_of_images():
    # The same bytes in another shape are another image.
    wide, tall = (Batch(torch.arange(1), torch.arange(6.0).reshape(1, 1, *shape), torch.zeros(1).long())
                  for shape in ((2, 3), (3, 2)))  # fmt: skip
    assert fingerprint_block(wide) != fingerprint_block(tall)


def test_a_model_is_its_weights_buffers_and_normalization():
    def model(change=lambda network: None, **normalization):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        change(network)
        return Normalized(network, **normalization)

    def buffer(network):
        network[1].running_mean += 0.1

    def weight(network):
        network[0].bias.data[0] += 1e-6

    prints = {fingerprint_model(other) for other in (model(), model(buffer), model(weight), model(mean=0.5, std=1.0))}
    assert len(prints) == 4
    assert fingerprint_model(model()) in prints


def test_combined_fingerprints_depend_on_their_order():
    assert combined(["a", "b"]) != combined(["b", "a"])
    assert combined(np.array(["a"]).tolist()) == combined(["a"])
