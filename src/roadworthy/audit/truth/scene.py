"""How worlds are made: cells, backgrounds, colors, linear models, and a world from a scene."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from roadworthy.attributions.controls import blurred
from roadworthy.audit.truth.world import IdealRemoval, KnownMaps, World
from roadworthy.core.errors import RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Images, Labels, Maps
from roadworthy.datasets import Arrays

SIZE, CELL = 16, 4
"""pixels of the side of an image, and of a cell"""
GRID = SIZE // CELL
CELLS = GRID**2

NOISE: Mapping[str, float] = {"noisy": 2.0, "very noisy": 6.0}
"""standard deviation of the noise of copies, in standard deviations of the exact map"""
BLUR = 2.0
"""of the blurred copy, in pixels"""


def color(red: float, green: float, blue: float) -> Tensor:
    return torch.tensor([red, green, blue])[:, None, None]


RED, BLUE = color(1, 0, 0), color(0, 0, 1)
RED_GREEN, BLUE_YELLOW = color(1, -1, 0), color(-0.5, -0.5, 1)
"""opponent colors: gray has none of them"""


def reading(hue: Tensor) -> Tensor:
    """Weights of the channels that measure how much of a color a pixel has: 1 for the color itself."""
    return hue / hue.square().sum()


def pixels(cells: Tensor) -> Tensor:
    """Values of cells `(..., 16)` as pixels `(..., 16, 16)`."""
    square = cells.reshape(*cells.shape[:-1], GRID, GRID)
    return square.repeat_interleave(CELL, -1).repeat_interleave(CELL, -2)


def places(cells: Tensor) -> Tensor:
    """Indices of cells `(...)` as masks `(..., 16, 16)` of ones and zeros."""
    return pixels(nn.functional.one_hot(cells, CELLS).float())


def in_quadrant(quadrants: Tensor, inner: Tensor) -> Tensor:
    """The index of a cell among all: its quadrant, 0 to 3, and its place there, 0 to 3."""
    return GRID * (2 * (quadrants // 2) + inner // 2) + 2 * (quadrants % 2) + inner % 2


def quadrants() -> Tensor:
    """The quadrants as masks `(4, 16, 16)`."""
    return torch.stack([places(in_quadrant(torch.tensor(number), torch.arange(4))).sum(dim=0) for number in range(4)])


def planes(ids: Ids, key: Key, darkest: float, brightest: float) -> Images:
    """Gray, slightly tilted planes of random brightness, with slight noise in every channel."""
    down, right = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing="ij")
    brightness, *tilts = key.fold("plane").uniform(ids, (3, 1, 1)).unbind(1)
    tilted = sum(0.05 * (2 * tilt - 1) * along for tilt, along in zip(tilts, (down, right), strict=True))
    plane = darkest + (brightest - darkest) * brightness + tilted
    return plane[:, None] + 0.01 * key.fold("noise").normal(ids, (3, SIZE, SIZE)).clamp(-3, 3)


def choices(key: Key, ids: Ids, count: int) -> Tensor:
    """A random integer below `count` per image."""
    return (key.uniform(ids, (1,))[:, 0] * count).long()


def linear(weights: Tensor) -> nn.Sequential:
    """Outputs are weights `(outputs, c, h, w)` times pixels."""
    layer = nn.Linear(weights[0].numel(), len(weights))
    with torch.no_grad():
        layer.weight.copy_(weights.flatten(1))
        layer.bias.zero_()
    return nn.Sequential(nn.Flatten(), layer)


class OpponentColors(nn.Module):
    """Red against green, blue against yellow and brightness, scaled alike: what is planted is easier to learn."""

    def forward(self, images: Tensor) -> Tensor:
        red, green, blue = images.unbind(1)
        return torch.stack([4 * (red - green), 4 * blue - 2 * (red + green), (red + green + blue) * 2 / 3 - 1], dim=1)


def small_network(classes: int) -> nn.Module:
    """With new weights; one hidden layer on the means of cells."""
    sees = (OpponentColors(), nn.AvgPool2d(CELL), nn.Flatten())
    return nn.Sequential(*sees, nn.Linear(3 * CELLS, 64), nn.ReLU(), nn.Linear(64, classes))


@final
@dataclass(frozen=True, eq=False)
class Scene:
    """Images and what is known about them, before they are split."""

    images: Images
    labels: Labels
    expected: Images
    """each image if nothing is known about what is planted: its background and the mean of what is planted"""
    exact: Maps
    """the contribution of every pixel to the margin"""
    misleading: Maps
    """maps that look right and are not"""


def sizes(seed: int, images: int, train: int) -> Ids:
    """The ids of all images of a world."""
    for name, value, least in (("seed", seed, 0), ("images", images, 8), ("train", train, 8)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise RangeError(f"{name}={value!r}: give an integer of at least {least}")
    return torch.arange(images + train)


def world(
    name: str, scene: Scene, model: nn.Module, misleading: str, order: str, patch_order: str, train: int, key: Key
) -> World:
    """The last `train` images are for training. Orders are "a > b = c": b and c are equally good."""
    ids = torch.arange(len(scene.images))
    test, rest = (Arrays(scene.images[rows], scene.labels[rows], ids=rows) for rows in (ids[:-train], ids[-train:]))
    maps = {**copies(scene.exact, ids, key.fold("copies")), misleading: scene.misleading}
    classes = int(scene.labels.max()) + 1
    return World(
        name=name,
        model=model.eval(),
        data=test,
        train=rest,
        maps={one: KnownMaps(maps[one]) for group in _groups(order) for one in group},
        order=_groups(order),
        patch_order=_groups(patch_order),
        ideal=IdealRemoval(scene.expected),
        network=lambda: small_network(classes),
    )


def _groups(order: str) -> tuple[tuple[str, ...], ...]:
    """
    >>> _groups("exact > constant = edges > inverted")
    (('exact',), ('constant', 'edges'), ('inverted',))
    """
    return tuple(tuple(group.split(" = ")) for group in order.split(" > "))


def copies(exact: Maps, ids: Ids, key: Key) -> dict[str, Maps]:
    """Exact maps and worse ones: blurred, with more and more noise, constant, inverted."""
    spread, shape = exact.std(dim=(1, 2), keepdim=True), tuple(exact.shape[1:])
    noisy = {name: exact + level * spread * key.fold(name).normal(ids, shape) for name, level in NOISE.items()}
    constant = torch.zeros_like(exact)
    return {"exact": exact, "blurred": blurred(exact, BLUR), **noisy, "constant": constant, "inverted": -exact}
