"""A benchmark of benchmarks: which settings recover the true order of the maps in worlds where it is known?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd

from roadworthy.audit.truth import WORLDS, World
from roadworthy.core.errors import InputError
from roadworthy.core.progress import ProgressBar
from roadworthy.evaluation.experiment import POINT_EVALUATORS, TRAINED_EVALUATORS
from roadworthy.experiments.arguments import checked_integer, several
from roadworthy.experiments.compare import compare
from roadworthy.experiments.registry import suggestion
from roadworthy.statistics import CONFIDENCE, SCORES, Value, blocks, recovery
from roadworthy.statistics.intervals import bounded_interval, share_interval
from roadworthy.training.recipe import Recipe


class Benchmark(NamedTuple):
    """One setting of a benchmark: how removed pixels are filled, who predicts, and which number ranks the maps."""

    name: str
    imputer: str
    evaluator: str = "no-retrain"
    score: str = "srg"
    value: Value = "accuracy"

    @property
    def trains(self) -> bool:
        """It trains a network for every point, so it is slow."""
        return self.evaluator in POINT_EVALUATORS


IDEAL = "ideal"
"""the imputer of each world that knows what nobody knows: `rw.truth.IdealRemoval`"""

BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark("ideal removal", IDEAL),
    Benchmark("ideal removal, probability", IDEAL, value="probability"),
    Benchmark("ROAD", "linear"),
    Benchmark("ROAD, probability", "linear", value="probability"),
    Benchmark("ROAD, MoRF alone", "linear", score="morf"),
    Benchmark("ROAD, LeRF alone", "linear", score="lerf"),
    Benchmark("fixed", "fixed"),
    Benchmark("fixed, probability", "fixed", value="probability"),
    Benchmark("image mean", "image-mean"),
    Benchmark("blur", "blur"),
    Benchmark("deletion (fixed)", "fixed", score="morf", value="probability"),
    Benchmark("insertion (blur)", "blur", score="lerf", value="probability"),
    Benchmark("fine-tuned, linear", "linear", "fine-tuned"),
    Benchmark("fine-tuned, fixed", "fixed", "fine-tuned"),
    Benchmark("ROAR", "fixed", "retrain", score="morf"),
    Benchmark("KAR", "fixed", "retrain", score="lerf"),
    Benchmark("ROAR and KAR", "fixed", "retrain"),
    Benchmark("retrain, linear", "linear", "retrain"),
    Benchmark("warm-start, fixed", "fixed", "warm-start"),
    Benchmark("warm-start, linear", "linear", "warm-start"),
)

FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
TRAINED_FRACTIONS = (0.1, 0.3, 0.6)
"""for evaluators that train a network per point"""
RECIPES: Mapping[str, Recipe] = {
    "retrain": Recipe(epochs=15, batch_size=64, lr=0.02, schedule="cosine", select="last"),
    "warm-start": Recipe(epochs=3, batch_size=64, lr=0.001, schedule="cosine", select="last"),
    "fine-tuned": Recipe(epochs=10, batch_size=64, lr=0.001, schedule="cosine", select="last"),
}
"""the networks of the worlds are small: a training takes a fifth of a second"""

SCORE_COLUMNS = ("benchmark", "world", "draw", "map", "score")
TABLE_COLUMNS = (
    *("benchmark", "world", "draws", "whole", "whole_low", "whole_high", "pairs", "pairs_low", "pairs_high"),
    *("spearman", "spearman_low", "spearman_high"),
)
ALL = "all"
"""stands for the mean over the worlds"""


@final
@dataclass(frozen=True, eq=False)
class SelfTest:
    """What every benchmark makes of maps whose true order is known, in random draws of every world."""

    scores: pd.DataFrame
    """benchmark, world, draw, map, score; higher is better"""
    orders: Mapping[str, Sequence[Sequence[str]]]
    """world to names of maps, best first"""
    confidence: float = CONFIDENCE

    def recoveries(self) -> pd.DataFrame:
        """benchmark, world, draw, whole, pairs, spearman: how far the order was recovered in each draw."""
        rows = [
            (*place, *recovery(dict(zip(block["map"], block["score"], strict=True)), self.orders[str(place[1])]))
            for place, block in self.scores.groupby(["benchmark", "world", "draw"], sort=False)
        ]
        return pd.DataFrame(rows, columns=["benchmark", "world", "draw", "whole", "pairs", "spearman"])

    def table(self) -> pd.DataFrame:
        """One row per benchmark and world, and one per benchmark for all worlds, with intervals over draws.

        `whole`: share of draws in which all pairs of maps are in the true order (Wilson interval; for all worlds the
        mean share). `pairs`: mean share of pairs in the true order. `spearman`: mean correlation with the true ranks.
        """
        draws = self.recoveries()
        rows = [
            (benchmark, world, *self._summary(block, _share))
            for (benchmark, world), block in draws.groupby(["benchmark", "world"], sort=False)
        ]
        measures = ["whole", "pairs", "spearman"]
        means = draws.groupby(["benchmark", "draw"], sort=False)[measures].mean().reset_index()
        rows += [
            (benchmark, ALL, *self._summary(block, _mean)) for benchmark, block in means.groupby("benchmark", sort=False)
        ]
        return pd.DataFrame(rows, columns=list(TABLE_COLUMNS))

    def _summary(self, block: pd.DataFrame, whole_interval: Any) -> tuple[float, ...]:
        whole, pairs, spearman = (block[name].to_numpy(dtype=float) for name in ("whole", "pairs", "spearman"))
        return (
            len(block),
            *(whole.mean(), *whole_interval(whole, (0.0, 1.0), self.confidence)),
            *(pairs.mean(), *_mean(pairs, (0.0, 1.0), self.confidence)),
            *(spearman.mean(), *_mean(spearman, (-1.0, 1.0), self.confidence)),
        )


def _share(hits: np.ndarray, bounds: tuple[float, float], confidence: float) -> tuple[float, float]:
    return share_interval(hits[None], confidence)


def _mean(values: np.ndarray, bounds: tuple[float, float], confidence: float) -> tuple[float, float]:
    """A single draw says nothing about the others."""
    return bounded_interval(values[None], bounds, confidence) if len(values) > 1 else bounds


def self_test(
    worlds: Sequence[str] | None = None,
    benchmarks: Sequence[str] | None = None,
    *,
    draws: int = 20,
    trained_draws: int = 2,
    images: int = 100,
    seed: int = 0,
    progress: bool = True,
) -> SelfTest:
    """Run benchmarks on worlds whose answer is known (docs/benchmark-of-benchmarks.md).

    `worlds`: names among `rw.truth.WORLDS`; by default all. `benchmarks`: names of settings; by default all.
    `draws`: how many random worlds of each kind. `trained_draws`: the same for settings that train a network for every
    point, which are slow; 0 leaves them out. `images`: how many images each world is evaluated on.
    """
    names = _known("world", WORLDS if worlds is None else several("worlds", worlds, "'additive'"), WORLDS)
    settings = {one.name: one for one in BENCHMARKS}
    wanted = _known("benchmark", settings if benchmarks is None else several("benchmarks", benchmarks, "'ROAD'"), settings)
    draws, trained_draws = checked_integer("draws", draws, 1), checked_integer("trained_draws", trained_draws, 0)
    images, seed = checked_integer("images", images, 8), checked_integer("seed", seed, 0)
    chosen = [settings[name] for name in wanted if trained_draws or not settings[name].trains]
    if not chosen:
        raise InputError("trained_draws=0 leaves no benchmark: name one that does not train a network for every point")
    tasks = [
        (draw, name, group)
        for draw in range(max(draws, trained_draws))
        for name in names
        for group in _groups(chosen)
        if draw < (trained_draws if group[0].trains else draws)
    ]
    rows, orders = [], {}
    bar = ProgressBar("self-test", progress, sum(map(_cost, tasks)))
    bar.start()
    try:
        for task in tasks:
            draw, name, group = task
            world = WORLDS[name](seed + draw, images)
            orders[name] = world.order
            rows += [(one.name, name, draw, *scored) for one, scored in scores_of(world, group)]
            bar.advance(_cost(task))
    finally:
        bar.stop()
    table = pd.DataFrame(rows, columns=list(SCORE_COLUMNS))
    return SelfTest(_in_order(table, "benchmark", wanted), orders)


def scores_of(world: World, group: Sequence[Benchmark]) -> list[tuple[Benchmark, tuple[str, float]]]:
    """The score of every map by each benchmark of a group, turned so that higher is better."""
    evaluator = group[0].evaluator
    options: dict[str, Any] = {"fractions": TRAINED_FRACTIONS if group[0].trains else FRACTIONS}
    if evaluator in TRAINED_EVALUATORS:
        options |= {"train": world.train, "recipe": RECIPES[evaluator], "network": world.network}
    imputers = {one.imputer: world.ideal if one.imputer == IDEAL else one.imputer for one in group}
    comparison = compare(
        world.model,
        world.data,
        world.maps,
        imputers=imputers,
        evaluators=evaluator,
        controls=(),
        batch_size=256,
        map_batch_size=256,
        progress=False,
        **options,
    )
    found = {
        (block.key.imputer, value, score, name): SCORES[score].sign * float(values.mean())
        for value in {one.value for one in group}
        for block in blocks(comparison.predictions, value)
        for score, by_map in block.scores.items()
        for name, values in by_map.items()
    }
    return [(one, (name, found[one.imputer, one.value, one.score, name])) for one in group for name in world.maps]


def _groups(chosen: Iterable[Benchmark]) -> list[list[Benchmark]]:
    """Benchmarks with the same evaluator share a comparison."""
    groups: dict[str, list[Benchmark]] = {}
    for one in chosen:
        groups.setdefault(one.evaluator, []).append(one)
    return list(groups.values())


def _cost(task: tuple[int, str, Sequence[Benchmark]]) -> int:
    """About how long a task takes, in the time of a comparison without training."""
    _, _, group = task
    return 15 * len({one.imputer for one in group}) if group[0].trains else 1


def _known(kind: str, names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    names, known = tuple(dict.fromkeys(names)), tuple(known)
    for name in names:
        if name not in known:
            raise InputError(f"unknown {kind} {name!r}: {suggestion(str(name), known)}")
    if not names:
        raise InputError(f"{kind}s is empty: give at least one, such as {known[0]!r}")
    return names


def _in_order(table: pd.DataFrame, column: str, names: Sequence[str]) -> pd.DataFrame:
    place = {name: number for number, name in enumerate(names)}
    return table.sort_values(column, key=lambda values: values.map(place), kind="stable", ignore_index=True)
