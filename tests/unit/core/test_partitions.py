"""Maps are pooled to units exactly, and ranks of units are ranks of pixels."""

import numpy as np
import pytest
import torch

from roadworthy.attributions import Random
from roadworthy.core.masks import MASKS, at_random_shares, count, of_either_kind, removed_at, scattered
from roadworthy.core.partitions import Partition
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first, rank
from roadworthy.evaluation.units import Patches, UnitSetting

N, HEIGHT, WIDTH = 5, 10, 13
IDS = torch.arange(20, 20 + N)
MAPS = Key(1).normal(IDS, (HEIGHT, WIDTH))
ORDERS = {"morf": most_relevant_first, "lerf": least_relevant_first}
REDUCTIONS = {"mean": np.mean, "sum": np.sum, "max": np.max, "max_abs": lambda values: np.abs(values).max()}


def uneven():
    """5 to 9 units per image, without gaps: a different partition of each image."""
    fields = Key(4).uniform(IDS, (HEIGHT * WIDTH,)).numpy()
    rows = [(np.argsort(np.argsort(field)) * (5 + row)) // field.size for row, field in enumerate(fields)]
    return torch.from_numpy(np.stack(rows).reshape(N, HEIGHT, WIDTH))


PARTITIONS = {
    "patches": Patches(4)(Batch(IDS, MAPS[:, None], IDS)),
    "stripes": Patches((10, 1))(Batch(IDS, MAPS[:, None], IDS)),
    "uneven": uneven(),
}


@pytest.mark.parametrize("labels", PARTITIONS.values(), ids=list(PARTITIONS))
@pytest.mark.parametrize("rule", REDUCTIONS)
def test_the_value_of_a_unit_is_that_of_a_loop_over_its_pixels(labels, rule):
    units = Partition.of(labels, rule)
    pooled = units.pool(MAPS).numpy()
    for row in range(N):
        own = labels[row if len(labels) > 1 else 0].numpy()
        for unit in range(own.max() + 1):
            expected = REDUCTIONS[rule](MAPS[row].double().numpy()[own == unit])
            assert pooled[row, unit] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("rule", REDUCTIONS)
def test_neither_batch_size_nor_neighbors_change_a_bit(rule):
    units = Partition.of(PARTITIONS["uneven"], rule)
    together = units.pool(MAPS)
    for row, number in enumerate(units.counts):
        alone = units[row : row + 1].pool(MAPS[row : row + 1])
        assert torch.equal(alone[0, :number], together[row, :number])
    patches = Partition.of(PARTITIONS["patches"], rule)
    each = Partition.of(PARTITIONS["patches"].expand(N, -1, -1), rule)  # the same patches, as labels of each image
    assert torch.equal(patches.pool(MAPS), each.pool(MAPS))


@pytest.mark.parametrize("labels", PARTITIONS.values(), ids=list(PARTITIONS))
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fraction", [0, 0.1, 0.25, 0.5, 0.77, 1])
def test_exactly_the_first_units_are_removed_and_whole(labels, order, fraction):
    units = Partition.of(labels)
    ranks = rank(ORDERS, MAPS, IDS, Key(0), units)[order]
    removed = removed_at(ranks, fraction, units)
    for row in range(N):
        own = labels[row if len(labels) > 1 else 0]
        number = int(own.max()) + 1
        means = np.array([MAPS[row][own == unit].double().mean() for unit in range(number)])
        expected = np.argsort(means if order == "lerf" else -means)[: int(np.floor(fraction * number + 0.5))]
        assert sorted(own[removed[row]].unique().tolist()) == sorted(expected.tolist())
        assert int(removed[row].sum()) == sum(int((own == unit).sum()) for unit in expected)


@pytest.mark.parametrize("maps", [MAPS, MAPS.clamp(min=0), torch.zeros_like(MAPS), MAPS.double()])
def test_patches_of_one_pixel_have_the_ranks_of_pixels(maps):
    units = UnitSetting(Patches(1))(Batch(IDS, maps[:, None], IDS)).units
    for order, ranks in rank(ORDERS, maps, IDS, Key(3)).items():
        assert torch.equal(rank(ORDERS, maps, IDS, Key(3), units)[order], ranks)


@pytest.mark.parametrize("kind", MASKS)
def test_random_masks_by_patches_of_one_pixel_are_those_of_pixels(kind):
    units = UnitSetting(Patches(1))(Batch(IDS, MAPS[:, None], IDS)).units
    plain = MASKS[kind](IDS, (HEIGHT, WIDTH), Key(0))
    assert torch.equal(MASKS[kind](IDS, (HEIGHT, WIDTH), Key(0), units), plain)
    either = of_either_kind(IDS, (HEIGHT, WIDTH), 0.9, Key(0))
    assert torch.equal(of_either_kind(IDS, (HEIGHT, WIDTH), 0.9, Key(0), units), either)


@pytest.mark.parametrize("labels", PARTITIONS.values(), ids=list(PARTITIONS))
@pytest.mark.parametrize("kind", MASKS)
def test_random_masks_remove_whole_units_in_exact_numbers(labels, kind):
    units = Partition.of(labels)
    removed = removed_at(MASKS[kind](IDS, (HEIGHT, WIDTH), Key(0), units), 0.4, units)
    for row in range(N):
        own = labels[row if len(labels) > 1 else 0]
        gone = own[removed[row]].unique()
        assert len(gone) == count(0.4, int(own.max()) + 1)
        assert int(removed[row].sum()) == int(torch.isin(own, gone).sum())


def test_a_random_share_leaves_at_least_one_unit():
    units = Partition.of(torch.arange(HEIGHT * WIDTH).reshape(1, HEIGHT, WIDTH) % 2)
    ranks = scattered(IDS, (HEIGHT, WIDTH), Key(0), units)
    for seed in range(20):
        assert at_random_shares(ranks, IDS, 0.95, Key(seed), units).flatten(1).all(dim=1).sum() == 0


def test_ties_of_units_are_broken_by_key_and_id_alone():
    units = Partition.of(PARTITIONS["uneven"])
    constant = torch.zeros_like(MAPS)
    together = rank(ORDERS, constant, IDS, Key(0), units)["morf"]
    alone = torch.cat(
        [rank(ORDERS, constant[r : r + 1], IDS[r : r + 1], Key(0), units[r : r + 1])["morf"] for r in range(N)]
    )
    assert torch.equal(together, alone)
    assert not torch.equal(together, rank(ORDERS, constant, IDS, Key(1), units)["morf"])


@pytest.mark.parametrize("rule", ["mean", "sum", "max"])
def test_painted_values_are_pooled_to_themselves(rule):
    units = Partition.of(PARTITIONS["patches"], rule, grid=(3, 4))
    values = Key(2).normal(IDS, (12,))
    pooled = units.pool(units.painted(values))
    assert (
        torch.equal(pooled, values.double()) if rule != "sum" else torch.allclose(pooled, values.double(), rtol=1e-14)
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "max"])
def test_the_random_control_removes_units_of_any_size_equally_often(reduction):
    # 10 units of 1 pixel and 10 of 9: of the first 4 removed, on average 2 are small. 300 images: ± .05 (3 σ)
    labels = torch.cat([torch.arange(10), 10 + torch.arange(90) // 9]).reshape(1, 10, 10)
    units = Partition.of(labels, reduction)
    batch = Batch(torch.arange(300), torch.zeros(300, 1, 10, 10), torch.zeros(300, dtype=torch.long), units)
    maps = Random()(None, batch, Key(0))
    for order in (most_relevant_first, least_relevant_first):
        ranks = rank({"own": order}, maps, batch.ids, Key(0), units)["own"]
        small = removed_at(ranks, 0.2, units).flatten(1)[:, :10].sum(dim=1).double().mean() / 4
        assert abs(small - 0.5) < 0.06
