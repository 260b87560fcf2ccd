"""How often the self-test errs, in small worlds where the benchmark is right or wrong by construction.

python bench/self_test.py [--draws 200] [--images 100]

Each draw has its own images. A bright block lies on one side of a dim plane; its side is the class, and a map that
points at it is the truth. Right: linear imputation continues the plane, so removing the block removes the evidence.
Wrong: a bright color fills what is removed, so that the mask shows the class of the image that the map belongs to.
Nothing to lose: maps are random, so the damaged copies have no true order, and the self-test must not find one.

Targets: the self-test does not pass in at most 5 % of the right draws, fails in at least 90 % of the wrong ones, and in
at most 5 % of those with nothing to lose. A target is missed if the observed share lies on the wrong side of it by a
one-sided binomial test at 1 %; then the exit code is 1.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from scipy import stats
from torch import Tensor, nn

from roadworthy import statistics
from roadworthy.core.random import Key
from roadworthy.core.results import Degraded, Point, Predictions
from roadworthy.core.types import Batch, Imputer
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.sweep import Curve, sweep
from roadworthy.experiments.registry import lookup
from roadworthy.experiments.self_test.design import shift
from roadworthy.experiments.self_test.result import known_state
from roadworthy.imputers import Constant, NoisyLinear
from roadworthy.models.normalized import Normalized

LEVEL = 0.01
FRACTIONS = (0.1, 0.2, 0.3)
SIZE = 12


class Sides(nn.Module):
    """The class is the brighter side."""

    def forward(self, images: Tensor) -> Tensor:
        half = images.shape[-1] // 2
        return 40 * torch.stack([images[..., :half].mean(dim=(1, 2, 3)), images[..., half:].mean(dim=(1, 2, 3))], dim=1)


class World(NamedTuple):
    name: str
    imputer: Imputer
    maps: Callable[[Tensor, Key], Tensor]
    """from the truth"""
    expected: tuple[str, ...]
    """states that are no error"""
    target: float
    """the largest share of errors"""


def exact(truth: Tensor, key: Key) -> Tensor:
    return truth


def random(truth: Tensor, key: Key) -> Tensor:
    return key.fold("maps").uniform(range(len(truth)), tuple(truth.shape[1:]))


WORLDS = (
    World("right: the mask does not show", NoisyLinear(), exact, ("passed",), 0.05),
    World("wrong: the mask shows the class", Constant(0.9), exact, ("failed",), 0.10),
    World("nothing to lose: random maps", NoisyLinear(), random, ("not seen", "passed"), 0.05),
)


def drawn(images: int, key: Key) -> tuple[Batch, Tensor]:
    """Images and the truth: a block of 30 pixels, at a random place on the side of the class."""
    ids = torch.arange(images)
    labels = (key.fold("side").uniform(ids, (1,))[:, 0] < 0.5).long()
    down, right = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing="ij")
    tilt = key.fold("tilt").uniform(ids, (2, 1, 1)) * 0.1 - 0.05
    plane = 0.2 + tilt[:, 0] * down + tilt[:, 1] * right + 0.01 * key.fold("noise").normal(ids, (SIZE, SIZE))
    places = (key.fold("place").uniform(ids, (2,)) * torch.tensor([SIZE - 5.0, SIZE / 2 - 4])).long()
    truth = torch.zeros(images, SIZE, SIZE)
    for row, (label, (top, left)) in enumerate(zip(labels.tolist(), places.tolist(), strict=True)):
        left += label * SIZE // 2
        truth[row, top : top + 6, left : left + 5] = 1
    return Batch(ids, torch.where(truth == 1, 0.9, plane)[:, None], labels), truth


def predicted(name: str, batch: Batch, maps: Tensor, imputer: Imputer, seed: int) -> dict[Point, Predictions]:
    """Of one method, in both orders."""
    curves = {Curve(order, "imputer", "no-retrain", seed): (0.0, *FRACTIONS) for order in ("morf", "lerf")}
    evaluator = NoRetrain(Normalized(Sides()))
    results = sweep(
        curves,
        {curve.order: lookup("orders", curve.order).make() for curve in curves},
        {"imputer": imputer},
        dict.fromkeys(curves, evaluator),
        maps,
        batch,
        batch.labels,
        len(batch),
    )
    return {Point(name, c.order, c.imputer, c.evaluator, fraction, seed): found for c, fraction, found in results}


def state(world: World, images: int, draw: int) -> str:
    """What the self-test says: as in a comparison, images take the map of another one that is far ahead."""
    key, copy = Key(100 + draw), Degraded("m", "swapped")
    batch, truth = drawn(images, key)
    maps = world.maps(truth, key)
    real = predicted(copy.of, batch, maps, world.imputer, draw)
    swapped = predicted(copy.name, batch, maps.roll(-shift(images), 0), world.imputer, draw)
    order, _ = statistics.known_order(real, swapped, {copy.name: copy}, seed=draw)
    return known_state(order, ("no-retrain", "imputer"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--images", type=int, default=100)
    options = parser.parse_args()
    missed, started = 0, time.perf_counter()
    print(f"{options.draws} draws of {options.images} images each\n")
    print("| world | passed | not seen | failed | errors | target | |\n|---|---|---|---|---|---|---|")
    for world in WORLDS:
        states = [state(world, options.images, draw) for draw in range(options.draws)]
        counts = " | ".join(str(states.count(word)) for word in ("passed", "not seen", "failed"))
        errors = sum(word not in world.expected for word in states)
        ok = stats.binomtest(errors, options.draws, world.target, alternative="greater").pvalue >= LEVEL
        missed += not ok
        share = f"{errors / options.draws:.1%} | at most {world.target:.0%} | {'within' if ok else 'ABOVE'}"
        print(f"| {world.name} | {counts} | {share} |", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s, {torch.get_num_threads()} thread(s)")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
