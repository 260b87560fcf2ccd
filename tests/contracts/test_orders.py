"""The contract of every registered order."""

import numpy as np
import pytest
import torch

from roadworthy.core.masks import FRACTIONS, count, removed_at
from roadworthy.core.random import Key
from roadworthy.evaluation.orders import Reversed, rank
from roadworthy.experiments.registry import REGISTRY

IDS = torch.arange(6)
KEY = Key(9)


@pytest.fixture(params=REGISTRY["orders"])
def order(request):
    return REGISTRY["orders"][request.param].make()


@pytest.fixture(params=["distinct", "constant", "relu"])
def maps(request):
    noise = Key(1).normal(IDS, (7, 5))
    return {"distinct": noise, "constant": torch.zeros(6, 7, 5), "relu": noise.clamp(min=0)}[request.param]


def test_ranks_are_a_permutation_per_image(order, maps):
    ranks = order(maps, IDS, KEY).flatten(1)
    assert torch.equal(ranks.sort(dim=1).values, torch.arange(35).expand(6, 35))


def test_every_fraction_removes_an_exact_count_and_the_removed_sets_are_nested(order, maps):
    ranks = order(maps, IDS, KEY)
    previous = torch.zeros_like(ranks, dtype=torch.bool)
    for fraction in (*FRACTIONS, 1.0):
        removed = removed_at(ranks, fraction)
        assert removed.flatten(1).sum(dim=1).tolist() == [count(fraction, 35)] * 6
        assert (removed | ~previous).all()
        previous = removed


def test_lerf_is_morf_reversed(maps):
    morf, lerf = (REGISTRY["orders"][name].make()(maps, IDS, KEY) for name in ("morf", "lerf"))
    assert torch.equal(morf + lerf, torch.full_like(morf, 34))


def test_complementary_fractions_remove_complementary_pixels(maps):
    # 35 pixels: .2 removes 7, .8 removes 28.
    morf, lerf = (REGISTRY["orders"][name].make()(maps, IDS, KEY) for name in ("morf", "lerf"))
    assert torch.equal(removed_at(lerf, 0.8), ~removed_at(morf, 0.2))


def test_ranks_do_not_depend_on_the_batch(order, maps):
    whole = order(maps, IDS, KEY)
    for row in range(6):
        assert torch.equal(order(maps[row : row + 1], IDS[row : row + 1], KEY)[0], whole[row])


def test_ties_are_broken_differently_in_every_image_and_for_every_seed(order):
    constant = torch.ones(6, 7, 5)
    ranks = order(constant, IDS, KEY)
    assert len({tuple(image.flatten().tolist()) for image in ranks}) == 6
    assert not torch.equal(ranks, order(constant, IDS, Key(10)))


def test_map_values_take_precedence_over_tie_breaking():
    maps = torch.tensor([[[0.0, 3.0], [3.0, -1.0]]])
    for seed in range(8):
        ranks = REGISTRY["orders"]["morf"].make()(maps, IDS[:1], Key(seed))[0]
        assert ranks[1, 1] == 3
        assert ranks[0, 0] == 2
        assert {int(ranks[0, 1]), int(ranks[1, 0])} == {0, 1}


def test_ties_are_broken_like_a_stable_sort_of_shuffled_pixels(maps):
    # Literally: shuffle the pixels by the key of the image, then sort stably by value.
    ranks = REGISTRY["orders"]["lerf"].make()(maps, IDS, KEY).flatten(1).numpy()
    for row, image in enumerate(maps.flatten(1).numpy()):
        shuffled = KEY.fold("ties").permutation(row, 35)
        if len(np.unique(image)) < 35:
            removal_order = shuffled[np.argsort(image[shuffled], kind="stable")]
        else:
            removal_order = np.argsort(image)
        assert (ranks[row][removal_order] == np.arange(35)).all()


def test_an_order_and_its_reverse_are_computed_once(maps):
    calls = []

    def raster(maps, ids, key):
        calls.append(len(maps))
        return torch.arange(35).reshape(1, 7, 5).expand(len(maps), 7, 5)

    orders = {"backwards": Reversed(raster), "forwards": raster, **_both()}
    ranks = rank(orders, maps, IDS, KEY)
    assert calls == [6]
    assert list(ranks) == list(orders)
    assert ranks["forwards"][0, 0, 1] == 1
    assert ranks["backwards"][0, 0, 1] == 33
    for name, order in _both().items():
        assert torch.equal(ranks[name], order(maps, IDS, KEY))


def _both():
    return {name: REGISTRY["orders"][name].make() for name in ("lerf", "morf")}
