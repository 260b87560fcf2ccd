"""Evidence that counts only where a gate is open."""

import torch
from torch import Tensor, nn

from roadworthy.audit.truth.scene import (
    BLUE_YELLOW,
    CELL,
    CELLS,
    GRID,
    RED_GREEN,
    Scene,
    choices,
    linear,
    pixels,
    places,
    planes,
    reading,
    sizes,
    world,
)
from roadworthy.audit.truth.world import World
from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Images

_HUE = 0.18
_GAIN = 2.0


class Gated(nn.Module):
    """Margin of the second class: gain·(left·(1 + gate) + right·(1 − gate))/2, each a weighted sum of pixels."""

    def __init__(self, directions: Tensor):
        super().__init__()
        self.parts = linear(directions)

    def forward(self, images: Images) -> Tensor:
        left, right, gate = self.parts(images).unbind(1)
        margin = _GAIN * (left * (1 + gate) + right * (1 - gate)) / 2
        return torch.stack([-margin, margin], dim=1) / 2


def gate(seed: int = 0, images: int = 100, train: int = 400) -> World:
    """A red or green cell on the left, another on the right; a blue or yellow cell says which of them is the class.

    Two classes, red and green. Blue opens the left side, yellow the right one. The cell on the closed side looks like
    evidence and is none: its color is independent of the class.

    With l, r and g for left, right and gate (1 or −1, up to random strength): margin = ± (l·(1 + g) + r·(1 − g))/2. All
    three are 0 on average over images, and the margin is multilinear in them, so ideal removal sets what is removed to
    0. The exact map holds the Shapley values of that game, spread evenly over each cell: of a product, each factor gets
    half, so l gets l/2 + lg/4, r gets r/2 − rg/4, and the gate g(l − r)/4. If blue and both cells say the same, that is
    3/4 for the open one, 1/4 for the closed one, and the gate does not matter; if they differ, it is 3/4, −1/4, and 1/2
    for the gate, without which the closed cell would count as much as the open one.

    Order: exact > blurred > noisy > ungated > very noisy > constant > inverted. `ungated` shows both cells and not the
    gate: what looks like evidence. It finds the open cell, so it beats a constant map, and the closed one as well.
    """
    ids, key = sizes(seed, images, train), Key(seed).fold("gate")
    cells = _positions(ids, key)
    amounts = _amounts(ids, key)
    left, right, middle = (
        pixels(nn.functional.one_hot(cell, CELLS) * amounts[:, [part]]) for part, cell in enumerate(cells)
    )
    background = planes(ids, key, 0.42, 0.58)
    planted = _HUE * ((left + right)[:, None] * RED_GREEN + middle[:, None] * BLUE_YELLOW)
    labels = (torch.where(amounts[:, 2] > 0, amounts[:, 0], amounts[:, 1]) > 0).long()
    signs = _GAIN / CELL**2 * (2.0 * labels - 1)
    model = Gated(_directions())
    shares = _shares(amounts, model.parts(background).detach())
    exact = [places(cell) * (signs * share)[:, None, None] for cell, share in zip(cells, shares, strict=True)]
    both = places(cells[0]) + places(cells[1])
    scene = Scene(background + planted, labels, background, torch.stack(exact).sum(dim=0), both)
    order = "exact > blurred > noisy > ungated > very noisy > constant > inverted"
    patches = "exact > blurred = noisy > very noisy > ungated > constant > inverted"
    return world("gate", scene, model, "ungated", order, patches, train, key)


def _positions(ids: Ids, key: Key) -> tuple[Tensor, Tensor, Tensor]:
    """Different cells: in the left half, in the right half, and anywhere for the gate."""
    left, right = (choices(key.fold(side), ids, CELLS // 2) for side in ("left", "right"))
    half = GRID // 2
    first, second = GRID * (left // half) + left % half, GRID * (right // half) + right % half + half
    free = torch.ones(len(ids), CELLS).scatter(1, torch.stack([first, second], dim=1), 0)
    return first, second, (free * (1 + key.fold("gate").uniform(ids, (CELLS,)))).argmax(dim=1)


def _amounts(ids: Ids, key: Key) -> Tensor:
    """`(n, 3)`: of the left and the right cell and of the gate; the sign is the color, the size about 1."""
    signs = torch.where(key.fold("signs").uniform(ids, (3,)) < 0.5, -1.0, 1.0)
    return signs * (1 + 0.25 * key.fold("strength").normal(ids, (3,)).clamp(-2, 2))


def _shares(amounts: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Shapley values of left·(1 + gate)/2 + right·(1 − gate)/2, where each is an amount, which may be removed, and the
    noise of the background, which stays."""
    left, right, gate = amounts.unbind(1)
    left_noise, right_noise, gate_noise = noise.unbind(1)
    return (
        left * (1 + gate_noise) / 2 + left * gate / 4,
        right * (1 - gate_noise) / 2 - right * gate / 4,
        gate * (left_noise - right_noise) / 2 + gate * (left - right) / 4,
    )


def _directions() -> Tensor:
    """Weights of pixels that measure left, right and gate: 1 for a cell of the full color."""
    on_the_left = pixels((torch.arange(CELLS) % GRID < GRID // 2).float())
    red_green, blue_yellow = reading(RED_GREEN), reading(BLUE_YELLOW)
    everywhere = torch.ones_like(on_the_left)
    parts = [on_the_left * red_green, (1 - on_the_left) * red_green, everywhere * blue_yellow]
    return torch.stack(parts) / (_HUE * CELL**2)
