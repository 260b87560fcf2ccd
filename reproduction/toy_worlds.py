"""The toy world, many times: what the paper says of one world, in how many random ones does it hold?

python -m reproduction.toy_worlds [--worlds 60] [--out results]

The paper does not give the frequencies and phases of the class means. Here they are drawn: frequencies of 1, 2 or 3
turns, phases at random. The amplitude is set such that a regression on unmodified images has an accuracy of 95 %.
Worlds are added to the table one by one: interrupt it and run it again to resume.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from reproduction.tables import RESULTS, Results
from roadworthy.audit.toy import ToyWorld, Waves, run_toy, whole_accuracy
from roadworthy.core.random import Key

FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
UNINFORMATIVE = ["rand", "semi", "gauss"]
KEY = Key(0).fold("toy worlds")
ACCURACY = 0.95


def random_world(number: int) -> ToyWorld:
    """World `number`: means by key, amplitude by bisection."""
    draws = KEY.uniform([number], (8,))[0].tolist()

    def waves(frequency_a: float, phase_a: float, frequency_b: float, phase_b: float) -> Waves:
        return 1 + int(3 * frequency_a), 2 * np.pi * phase_a, 1 + int(3 * frequency_b), 2 * np.pi * phase_b

    both = (waves(*draws[:4]), waves(*draws[4:]))
    low, high = 0.05, 2.0
    for _ in range(8):
        middle = (low * high) ** 0.5
        above = whole_accuracy(ToyWorld(amplitude=middle, waves=both), seed=number) > ACCURACY
        low, high = (low, middle) if above else (middle, high)
    return ToyWorld(amplitude=(low * high) ** 0.5, waves=both)


def measured(number: int, fractions: tuple[float, ...] = FRACTIONS, **size: int) -> pd.DataFrame:
    """Per ordering and order, means over fractions; `debiased` over those where it is defined for all uninformative
    orderings, and `before`, the accuracy at the same fractions. `size`: of `run_toy`, if it should be smaller."""
    world = random_world(number)
    result = run_toy(world, fractions, seed=number, **size)
    points = result.debiased()
    points["defined"] = _all_defined(points)
    rows = []
    for (order, method), part in points.groupby(["order", "method"], sort=False):
        defined = part[part["defined"]]
        means = (part["accuracy"].mean(), defined["accuracy"].mean(), defined["debiased"].mean())
        rows.append((number, world.amplitude, part["whole"].iloc[0], order, method, *means, len(defined)))
    columns = ["world", "amplitude", "whole", "order", "method", "accuracy", "before", "debiased", "fractions"]
    return pd.DataFrame(rows, columns=columns)


def _all_defined(points: pd.DataFrame) -> pd.Series:
    known = points[points["method"].isin(UNINFORMATIVE)]
    every = known.groupby(["order", "fraction"])["debiased"].apply(lambda values: bool(values.notna().all()))
    return pd.Series([every[place] for place in zip(points["order"], points["fraction"], strict=True)], points.index)


# ── what holds in a world ────────────────────────────────────────────────────────────────────────────────────────────


def ranked(world: pd.DataFrame, order: str) -> list[str]:
    """Best first: the lowest accuracy in MoRF, the highest in LeRF."""
    rows = world[world["order"] == order].sort_values("accuracy", ascending=order == "morf", kind="stable")
    return list(rows["method"])


def narrowed(world: pd.DataFrame, order: str) -> bool:
    """Debiasing brings the uninformative orderings closer together."""
    rows = world[(world["order"] == order) & world["method"].isin(UNINFORMATIVE)]
    return bool(np.ptp(rows["debiased"]) < np.ptp(rows["before"]))


def ends(world: pd.DataFrame, order: str) -> bool:
    """The informative ordering is best and its inverse worst."""
    first, *_, last = ranked(world, order)
    return (first, last) == ("true", "worst")


def reversed_between_orders(world: pd.DataFrame) -> bool:
    """The uninformative orderings, best first, come in opposite order."""
    morf, lerf = ([name for name in ranked(world, order) if name in UNINFORMATIVE] for order in ("morf", "lerf"))
    return morf == lerf[::-1]


SENTENCES: dict[str, Callable[[pd.DataFrame], bool]] = {
    "gauss second in MoRF": lambda world: ranked(world, "morf")[1] == "gauss",
    "gauss next to worst in LeRF": lambda world: ranked(world, "lerf")[-2] == "gauss",
    "gauss second in MoRF and next to worst in LeRF": lambda world: (
        ranked(world, "morf")[1] == ranked(world, "lerf")[-2] == "gauss"
    ),
    "true first and worst last in MoRF": lambda world: ends(world, "morf"),
    "true first and worst last in LeRF": lambda world: ends(world, "lerf"),
    "true first and worst last in both": lambda world: ends(world, "morf") and ends(world, "lerf"),
    "rand, semi and gauss reversed from MoRF to LeRF": reversed_between_orders,
    "debiasing narrows rand, semi and gauss in MoRF": lambda world: narrowed(world, "morf"),
    "debiasing narrows rand, semi and gauss in LeRF": lambda world: narrowed(world, "lerf"),
}


def shares(worlds: pd.DataFrame) -> pd.DataFrame:
    """In what share of the worlds each sentence holds, with its exact 95 % interval over worlds."""
    rows = []
    for sentence, holds in SENTENCES.items():
        found = [holds(world) for _, world in worlds.groupby("world")]
        interval = binomtest(sum(found), len(found)).proportion_ci()
        rows.append((sentence, sum(found), len(found), np.mean(found), interval.low, interval.high))
    return pd.DataFrame(rows, columns=["sentence", "holds", "worlds", "share", "low", "high"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=60)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--size", choices=["full", "tiny"], default="full")
    options = parser.parse_args()
    smaller: dict[str, Any] = {"regressions": 2, "train": 40, "test": 50} if options.size == "tiny" else {}
    path = options.out / "toy-worlds.csv"
    table = pd.read_csv(path) if path.exists() else pd.DataFrame({"world": []})
    for number in sorted(set(range(options.worlds)) - set(table["world"])):
        world = measured(number, **smaller)
        table = pd.concat([table, world]) if len(table) else world
        Results(options.out).write("toy-worlds", table.astype({"world": int}))
    Results(options.out).write("toy-shares", shares(pd.read_csv(path)))
    print(shares(pd.read_csv(path)).to_string(index=False))


if __name__ == "__main__":
    main()
