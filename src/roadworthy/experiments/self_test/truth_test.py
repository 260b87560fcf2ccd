"""A benchmark of benchmarks: which settings recover the true order of the maps in worlds where it is known?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from roadworthy.audit.truth import WORLDS, World
from roadworthy.core.errors import InputError
from roadworthy.core.progress import ProgressBar
from roadworthy.evaluation.experiment import POINT_EVALUATORS, TRAINED_EVALUATORS
from roadworthy.evaluation.units import Patches
from roadworthy.experiments.arguments import checked_integer, several
from roadworthy.experiments.compare import compare
from roadworthy.experiments.registry import suggestion
from roadworthy.experiments.self_test.recovered_order import TruthTest
from roadworthy.statistics import SCORES, Value, blocks
from roadworthy.training.recipe import Recipe


class Benchmark(NamedTuple):
    """One setting of a benchmark: how removed pixels are filled, who predicts, and which number ranks the maps."""

    name: str
    imputer: str
    evaluator: str = "no-retrain"
    score: str = "srg"
    value: Value = "accuracy"
    units: Any = "pixels"
    """what is removed at a time, as `compare` takes it"""

    @property
    def trains(self) -> bool:
        """So it is slow."""
        return self.evaluator in TRAINED_EVALUATORS


IDEAL = "ideal"
"""the imputer of each world that knows what nobody knows: `rw.truth.IdealRemoval`"""
PATCHES = Patches(4)
"""what is planted fills cells of this size, so no units fit these worlds better"""

BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark("ideal", IDEAL),
    Benchmark("ideal, probability", IDEAL, value="probability"),
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
    Benchmark("ideal, patches", IDEAL, units=PATCHES),
    Benchmark("ROAD, patches", "linear", units=PATCHES),
    Benchmark("fixed, patches", "fixed", units=PATCHES),
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
POINT_FRACTIONS = (0.1, 0.3, 0.6)
"""for evaluators that train a network per point"""
RECIPES: Mapping[str, Recipe] = {
    "retrain": Recipe(epochs=15, batch_size=64, lr=0.02, schedule="cosine", select="last"),
    "warm-start": Recipe(epochs=3, batch_size=64, lr=0.001, schedule="cosine", select="last"),
    "fine-tuned": Recipe(epochs=10, batch_size=64, lr=0.001, schedule="cosine", select="last"),
}
"""the networks of the worlds are small: a training takes a fifth of a second"""
_SECONDS = {"no-retrain": 2, "fine-tuned": 3, "retrain": 25, "warm-start": 10}
"""of a comparison of the maps of one world, roughly, on one core; for the progress bar"""


def truth_test(
    worlds: Sequence[str] | None = None,
    benchmarks: Sequence[str] | None = None,
    *,
    draws: int = 10,
    trained_draws: int = 1,
    images: int = 100,
    seed: int = 0,
    progress: bool = True,
) -> TruthTest:
    """Run benchmarks on worlds whose answer is known (docs/benchmark-of-benchmarks.md).

    `worlds`: names among `rw.truth.WORLDS`; by default all. `benchmarks`: names of settings; by default all.
    `draws`: how many random worlds of each kind. `trained_draws`: the same for settings that train networks, which are
    slow; 0 leaves them out. `images`: how many images each world is evaluated on.
    """
    names = _known("world", WORLDS if worlds is None else several("worlds", worlds, "'additive'"), WORLDS)
    settings = {one.name: one for one in BENCHMARKS}
    wanted = _known(
        "benchmark", settings if benchmarks is None else several("benchmarks", benchmarks, "'ROAD'"), settings
    )
    draws, trained_draws = checked_integer("draws", draws, 1), checked_integer("trained_draws", trained_draws, 0)
    images, seed = checked_integer("images", images, 8), checked_integer("seed", seed, 0)
    chosen = [settings[name] for name in wanted if trained_draws or not settings[name].trains]
    if not chosen:
        raise InputError("trained_draws=0 leaves no benchmark: name one that does not train")
    tasks = [
        (draw, name, group)
        for draw in range(max(draws, trained_draws))
        for name in names
        for group in _groups(chosen)
        if draw < (trained_draws if group[0].trains else draws)
    ]
    rows, orders = [], {}
    own: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {}
    bar = ProgressBar("self-test", progress, sum(map(_cost, tasks)))
    bar.start()
    try:
        for task in tasks:
            draw, name, group = task
            world = WORLDS[name](seed + draw, images)
            orders[name] = world.order
            own |= own_orders(world, group)
            rows += [(one.name, name, draw, *scored) for one, scored in scores_of(world, group)]
            bar.advance(_cost(task))
    finally:
        bar.stop()
    table = pd.DataFrame(rows, columns=["benchmark", "world", "draw", "map", "score"])
    return TruthTest(_in_order(table, "benchmark", wanted), orders, own_orders=own)


def own_orders(world: World, benchmarks: Iterable[Benchmark]) -> dict[tuple[str, str], tuple[tuple[str, ...], ...]]:
    """The orders with which benchmarks are compared that pool maps to patches."""
    return {(one.name, world.name): world.patch_order for one in benchmarks if one.units is PATCHES}


def scores_of(world: World, group: Sequence[Benchmark]) -> list[tuple[Benchmark, tuple[str, float]]]:
    """The score of every map by each benchmark of a group, turned so that higher is better."""
    evaluator = group[0].evaluator
    options: dict[str, Any] = {"fractions": POINT_FRACTIONS if evaluator in POINT_EVALUATORS else FRACTIONS}
    if evaluator in TRAINED_EVALUATORS:
        options |= {"train": world.train, "recipe": RECIPES[evaluator], "network": world.network}
    imputers = {one.imputer: world.ideal if one.imputer == IDEAL else one.imputer for one in group}
    comparison = compare(
        world.model,
        world.data,
        world.maps,
        imputers=imputers,
        evaluators=evaluator,
        units=group[0].units,
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
    """Benchmarks with the same evaluator and units share a comparison."""
    groups: dict[tuple[str, str], list[Benchmark]] = {}
    for one in chosen:
        groups.setdefault((one.evaluator, repr(one.units)), []).append(one)
    return list(groups.values())


def _cost(task: tuple[int, str, Sequence[Benchmark]]) -> int:
    """About how many seconds a task takes."""
    return _SECONDS[task[2][0].evaluator]


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
