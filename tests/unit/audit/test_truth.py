"""Worlds whose evidence is known: their order follows from a literal evaluation of ideal removal."""

from dataclasses import replace
from itertools import pairwise, product
from math import factorial

import pytest
import torch

import roadworthy as rw
from roadworthy.audit.truth import WORLDS
from roadworthy.audit.truth.scene import BLUE, BLUE_YELLOW, CELL, CELLS, GRID, RED, RED_GREEN, SIZE, pixels
from roadworthy.audit.truth.world import KnownMaps

LINEAR = ("additive", "distractor", "shortcut", "absence")

POPULATIONS = {
    # What may be planted at a pixel, with its probability. Only a symmetric one matters for additive and gate.
    "additive": [(0.5, 0.1 * RED_GREEN), (0.5, -0.1 * RED_GREEN)],
    "distractor": [(1 / 16, 0.3 * RED), (1 / 16, 0.4 * BLUE), (14 / 16, 0 * RED)],
    "shortcut": [(1 / 16, 0.3 * RED), (1 / 16, 0.4 * BLUE), (14 / 16, 0 * RED)],
    "gate": [(0.2, sign * 0.18 * hue) for sign in (1, -1) for hue in (RED_GREEN, BLUE_YELLOW)] + [(0.2, 0 * RED)],
    "absence": [(7 / 8, 0.15 * RED_GREEN), (1 / 8, 0 * RED)],
}


@pytest.fixture(params=WORLDS, scope="module")
def world(request):
    return WORLDS[request.param](seed=3, images=400, train=8)


def batch_of(world):
    return next(world.data.batches(len(world.data)))


def cells_of(maps):
    """Sums over cells `(n, 16)`."""
    return maps.reshape(-1, GRID, CELL, GRID, CELL).sum(dim=(2, 4)).flatten(1)


def coalition_values(world, row):
    """The margin of an image for every set of removed cells, by its bits: 2¹⁶ numbers."""
    batch = batch_of(world)[row : row + 1]
    codes = torch.arange(2**CELLS)
    values = []
    for part in codes.split(4096):
        removed = pixels((part[:, None] >> torch.arange(CELLS)) & 1).bool()
        images = torch.where(removed[:, None], world.ideal.expected[batch.ids], batch.images)
        values.append(world.margin(images, batch.labels.expand(len(part))))
    return torch.cat(values)


def test_the_margin_of_expected_pixels_is_the_mean_margin_over_all_redraws(world):
    """Three pixels of an image, redrawn independently in every possible way."""
    batch = batch_of(world)[5:6]
    inside = world.maps["exact"].maps[batch.ids][0].abs().flatten().topk(3).indices
    population = POPULATIONS[world.name]
    mean = sum(share * color for share, color in population)
    rows, columns = inside // SIZE, inside % SIZE
    expected = world.ideal.expected[batch.ids][0]
    background = expected[:, rows, columns] - mean[:, :, 0]  # (3 channels, 3 pixels)
    total = 0.0
    for drawn in product(population, repeat=3):
        image = batch.images.clone()
        image[0, :, rows, columns] = background + torch.cat([color[:, :, 0] for _, color in drawn], dim=1)
        weight = torch.tensor([share for share, _ in drawn], dtype=torch.float64).prod()
        total += weight * world.margin(image, batch.labels)[0]
    removed = torch.zeros(1, SIZE, SIZE, dtype=torch.bool)
    removed[0, rows, columns] = True
    assert total == pytest.approx(
        world.margin(world.ideal(batch, removed, rw.Key(0)), batch.labels)[0].item(), rel=1e-4
    )


def test_expected_images_are_right_on_average(world):
    """Where images differ from what is expected, they do so equally in both directions: within 5 standard errors."""
    batch = batch_of(world)
    surprise = batch.images - world.ideal.expected[batch.ids]
    limit = 5 * surprise.std(dim=0) / len(batch) ** 0.5 + 1e-6
    assert (surprise.mean(dim=0).abs() <= limit).float().mean() > 0.999


def test_exact_maps_are_the_shapley_values_of_ideal_removal(world):
    """By the definition, with the cells as players: the mean over sets S of v(S) − v(S and the cell removed)."""
    values = coalition_values(world, row=2)
    codes = torch.arange(2**CELLS)
    sizes = sum((codes >> cell) & 1 for cell in range(CELLS))
    weights = torch.tensor([factorial(k) * factorial(CELLS - k - 1) / factorial(CELLS) for k in range(CELLS)])
    exact = cells_of(world.maps["exact"].maps[2:3])[0]
    for cell in range(CELLS):
        kept = codes[(codes >> cell) & 1 == 0]
        gain = values[kept] - values[kept + 2**cell]
        assert (weights[sizes[kept]].double() * gain).sum() == pytest.approx(exact[cell].item(), abs=1e-3)


@pytest.mark.parametrize("name", LINEAR)
def test_no_set_of_cells_is_better_than_that_of_the_exact_map(name):
    """MoRF by the exact map reaches the smallest margin of all sets of each size, LeRF the largest."""
    world = WORLDS[name](seed=1, images=8, train=8)
    values = coalition_values(world, row=4)
    codes = torch.arange(2**CELLS)
    sizes = sum((codes >> cell) & 1 for cell in range(CELLS))
    relevant_first = cells_of(world.maps["exact"].maps[4:5])[0].argsort(descending=True)
    for count in range(CELLS + 1):
        of_size = values[sizes == count]
        morf = sum(1 << int(cell) for cell in relevant_first[:count])
        lerf = sum(1 << int(cell) for cell in relevant_first.flip(0)[:count])
        assert values[morf] == pytest.approx(of_size.min().item(), abs=1e-4)
        assert values[lerf] == pytest.approx(of_size.max().item(), abs=1e-4)


def test_maps_have_the_true_order(world):
    """Each group is better than the next by more than 4 standard errors of paired differences."""
    qualities = {name: world.quality(name, steps=16) for name in world.maps}
    for better, worse in pairwise(world.order):
        for first, second in product(better, worse):
            difference = qualities[first] - qualities[second]
            assert difference.mean() > 4 * difference.std() / len(difference) ** 0.5, (first, second)
    error = 4 * qualities["constant"].std() / len(qualities["constant"]) ** 0.5
    assert abs(qualities["constant"].mean()) < error
    assert torch.allclose(qualities["inverted"].mean(), -qualities["exact"].mean(), rtol=0.02)


def test_maps_pooled_to_patches_have_the_order_of_patches(world):
    """As above, with what is pooled removed at once: 16 steps of one patch each."""

    def pooled(known):
        patches = known.maps.reshape(len(known.maps), 4, 4, 4, 4).mean(dim=(2, 4))
        ranks = patches.flatten(1).argsort(dim=1).argsort(dim=1).reshape(patches.shape)
        whole = ranks.repeat_interleave(4, dim=1).repeat_interleave(4, dim=2)
        return KnownMaps(whole + torch.linspace(0, 0.5, 256).reshape(16, 16))  # within a patch from first to last

    patched = replace(world, maps={name: pooled(known) for name, known in world.maps.items()})
    qualities = {name: patched.quality(name, steps=16) for name in world.maps}
    for better, worse in pairwise(world.patch_order):
        for first, second in product(better, worse):
            difference = qualities[first] - qualities[second]
            assert difference.mean() > 4 * difference.std() / len(difference) ** 0.5, (first, second)
    # What is not told apart differs by less than a twentieth of the best quality; a constant map, whose ties are broken
    # alike here, is equal to `edges` over draws of the world only.
    for first, second in (group for group in world.patch_order if len(group) == 2 and "constant" not in group):
        assert abs((qualities[first] - qualities[second]).mean()) < 0.05 * qualities["exact"].mean()


def test_edges_of_the_background_know_nothing_over_draws_of_the_weights():
    draws = torch.stack([rw.truth.additive(seed, 60, 8).quality("edges", steps=8).mean() for seed in range(40)])
    exact = rw.truth.additive(0, 60, 8).quality("exact", steps=8).mean()
    assert abs(draws.mean()) < 4 * draws.std() / 40**0.5
    assert abs(draws.mean()) < 0.05 * exact


def contributions(world, row):
    """Of the cells of an image."""
    return cells_of(world.maps["exact"].maps[row : row + 1])[0]


@pytest.mark.parametrize("name", ["distractor", "shortcut"])
def test_contributions_around_an_object_are_those_of_the_derivation(name):
    """The object: 15/16 of 3, its whole margin. Elsewhere in its quadrant: −1/16, in the other quadrants 1/48."""
    world = WORLDS[name](images=8, train=8)
    values = (contributions(world, 1) / 3).tolist()
    assert sorted(values) == pytest.approx([-1 / 16] * 3 + [1 / 48] * 12 + [15 / 16], abs=1e-5)


def test_contributions_of_an_absence_are_where_nothing_is():
    """The empty cell: 7/8 of 4. Marks: 1/56 on average. Cells that are no place of a mark: nothing."""
    world = rw.truth.absence(images=400, train=8)
    values = cells_of(world.maps["exact"].maps[:400]) / 4
    empty = values.max(dim=1).values
    assert torch.allclose(empty, torch.tensor(7 / 8), atol=1e-5)
    assert (values.sum(dim=1) - empty).mean().item() / 7 == pytest.approx(1 / 56, abs=0.003)  # 400·7 marks, sd 0.25/7
    assert ((values == 0).sum(dim=1) == 8).all()


def test_the_gate_matters_where_the_two_cells_differ():
    """With both cells alike, the gate's share g(l − r)/4 is small: strengths differ by chance. Else about 1/2."""
    world = rw.truth.gate(images=400, train=8)
    batch = batch_of(world)
    gate = world.maps["ungated"].maps[:400] == 0
    exact = world.maps["exact"].maps[:400]
    share = cells_of(torch.where(gate, exact, 0.0)).sum(dim=1) / 2
    open_side = cells_of(exact).max(dim=1).values / 2
    left, right, _ = world.model.parts(batch.images).detach().unbind(1)
    alike = left * right > 0
    assert share[alike].abs().mean() < 0.15
    assert share[~alike].mean() == pytest.approx(0.5, abs=0.05)
    assert open_side.mean() == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize(("name", "share"), [("distractor", 0.25), ("shortcut", 0.9)])
def test_blue_lies_in_the_quadrant_of_the_class_as_often_as_it_should_and_never_on_red(name, share):
    world = WORLDS[name](images=1000, train=8)
    labels = batch_of(world).labels
    blue = cells_of(world.maps["distractor"].maps[:1000]).argmax(dim=1)
    red = cells_of(world.maps["exact"].maps[:1000]).argmax(dim=1)
    quadrant = 2 * (blue // GRID // 2) + blue % GRID // 2
    assert (blue != red).all()
    assert (quadrant == labels).float().mean() == pytest.approx(share, abs=0.055)  # 4 standard errors


def test_models_are_right_about_their_images(world):
    batch = batch_of(world)
    assert (world.model(batch.images).argmax(dim=1) == batch.labels).float().mean() > 0.85


def test_a_seed_gives_the_same_world_and_another_seed_another():
    first, again, other = (rw.truth.absence(seed, 8, 8) for seed in (1, 1, 2))
    assert torch.equal(first.data.images, again.data.images)
    assert torch.equal(first.maps["noisy"].maps, again.maps["noisy"].maps)
    assert not torch.equal(first.data.images, other.data.images)


def test_images_for_training_have_maps_of_their_own():
    world = rw.truth.gate(images=8, train=10)
    batch = next(world.train.batches(10))
    assert batch.ids.tolist() == list(range(8, 18))
    maps = world.maps["exact"](None, batch, rw.Key(0))
    assert torch.equal(maps, world.maps["exact"].maps[8:])
