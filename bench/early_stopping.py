"""How many images early stopping needs on recorded CIFAR-10 results, and how often it errs where the truth is known.

python bench/early_stopping.py                    # both; about 15 minutes on a quiet core
python bench/early_stopping.py --only replay      # or: errors
python bench/early_stopping.py --draws 200

Replay: per-image results of reproduction/results (5,000 images, eight methods) in random orders; looks as `compare`
takes them. *Before*: all pairs share the error equally, fixed stakes, half as many images again after each look.

Errors: images are drawn from those results, shifted so that some means are equal. A decision is wrong if two equal
methods are separated, or a worse one is placed above a better one; the bar is 5 %.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from reproduction.kept import committed
from reproduction.later import scores_of
from reproduction.stopping import CONTROLS, PAIRS, REACH, images_until, looks
from reproduction.tables import METHODS, RESULTS, Results
from roadworthy.statistics import StoppingRule
from roadworthy.statistics.anytime import anytime_bounds

MARGIN = 0.02


def recorded(plan: str = "cifar10-tables") -> dict[str, np.ndarray]:
    """LeRF − MoRF per image of each method."""
    found = committed(Results(Path(RESULTS)), plan)
    block = scores_of({point: each for point, each in found.items() if point.method in METHODS})
    return {name: runs.mean(axis=0) for name, runs in block.scores["srg"].items()}


def half_more(images: int) -> list[int]:
    """The looks of the rule before."""
    looks = [64]
    while looks[-1] < images:
        looks.append(min(int(looks[-1] * 1.5), images))
    return looks


# ── replay ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def replay(orderings: int) -> None:
    for plan in ("cifar10-tables", "cifar10-tables-prediction"):
        scores = recorded(plan)
        names, values = tuple(scores), np.stack(list(scores.values()))
        images = values.shape[1]
        new = {"methods": names, "images": images}
        few, many = len(names) * (len(names) - 1) // 2, PAIRS
        rules = {
            "before, 28 pairs": (StoppingRule(0.95, MARGIN, few), half_more(images)),
            "before, 351 pairs": (StoppingRule(0.95, MARGIN, many), half_more(images)),
            "best": (StoppingRule(0.95, MARGIN, many, "best", controls=CONTROLS, **new), looks(images)),
            "best, finite": (
                StoppingRule(0.95, MARGIN, many, "best", controls=CONTROLS, finite=True, **new),
                looks(images),
            ),
            "ranked": (StoppingRule(0.95, MARGIN, many, "ranked", controls=CONTROLS, **new), looks(images)),
            "ranked, finite": (
                StoppingRule(0.95, MARGIN, many, "ranked", controls=CONTROLS, finite=True, **new),
                looks(images),
            ),
        }
        print(
            f"\n{plan}: {images:,} images, {orderings} random orders; mean (unfinished count as all) · median · 90 %\n"
        )
        print(
            "| rule | best | first three | all | orders finished | wrong pairs | CPU s |\n|---|---|---|---|---|---|---|"
        )
        for name, (rule, counts) in rules.items():
            generator, start, rows = np.random.default_rng(0), time.process_time(), []
            for _ in range(orderings):
                needed, wrong = images_until(names, values[:, generator.permutation(images)], rule, counts)
                rows.append([*needed, wrong])
            table = np.array(rows)
            cells = [_summary(np.nan_to_num(column, nan=np.inf), images) for column in table[:, :3].T]
            finished = f"{np.isfinite(table[:, 2]).mean():.0%}"
            if rule.until == "best":  # nothing else is asked
                cells[1:], finished = ["", ""], ""
            print(
                f"| {name} | {' | '.join(cells)} | {finished} | {int(table[:, 3].sum())} "
                f"| {time.process_time() - start:.0f} |",
                flush=True,
            )


def _summary(column, images):
    if not np.isfinite(column).any():
        return "–"
    median, most = (f"{value:,.0f}" if np.isfinite(value) else "–" for value in _quantiles(column))
    return f"{np.minimum(column, images).mean():,.0f} · {median} · {most}"


def _quantiles(column):
    return [np.sort(column)[int(share * (len(column) - 1))] for share in (0.5, 0.9)]


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def worlds() -> dict[str, np.ndarray]:
    """Populations `(methods, images)` with equal means somewhere; values in [−1, 1]."""
    values = np.stack(list(recorded().values()))
    centered = values - values.mean(axis=1, keepdims=True)
    two = centered - np.where(np.arange(len(values)) < 2, 0.0, 0.3)[:, None]
    images = values.shape[1]
    # Mostly a little better, rarely much worse: the mean of the difference is 0.
    rare = np.zeros((2, images))
    rare[0], rare[0, : images // 200] = 0.005, -0.995
    skewed = np.concatenate([rare, np.full((6, images), -0.5)])
    chain = centered + 0.004 * np.arange(len(values))[::-1, None]  # close neighbors: swaps are errors
    return {
        "all equal": _bounded(centered),
        "two equal leaders, six far behind": _bounded(two),
        "two equal leaders, one rarely much worse": skewed - skewed[:2].mean(axis=1).max(),
        "a chain of steps of 0.004": _bounded(chain),
    }


def _bounded(values):
    """Scaled into [−1, 1]: equal means stay equal."""
    return values / max(1.0, np.abs(values).max())


def wrong_decisions(population, rule, generator, images):
    """One study: whether any pair is ever separated wrongly."""
    total = population.shape[1]
    drawn = generator.permutation(total)[:images] if rule.finite else generator.integers(total, size=images)
    truth, names = population.mean(axis=1), tuple(f"m{row}" for row in range(len(population)))
    # The evidence is the largest ever reached, so the last look includes all others.
    bounds = anytime_bounds(names, population[:, drawn], REACH, rule, intervals=False)
    first, second = np.triu_indices(len(names), k=1)
    difference = truth[first] - truth[second]
    return bool(((bounds.low > 0) & (difference < 1e-12)).any() or ((bounds.high < 0) & (difference > -1e-12)).any())


def errors(draws: int, images: int = 1000) -> None:
    print(f"\nWrong decisions in {draws:,} studies of {images:,} images, 95 % confidence: share (bar 5 %)\n")
    print("| world | best | best, finite | ranked | ranked, finite |\n|---|---|---|---|---|")
    for world, population in worlds().items():
        cells = []
        names = tuple(f"m{row}" for row in range(len(population)))
        for until in ("best", "ranked"):
            for finite in (False, True):
                rule = StoppingRule(0.95, MARGIN, 28, until, methods=names, images=population.shape[1], finite=finite)
                generator = np.random.default_rng(1)
                wrong = [wrong_decisions(population, rule, generator, images) for _ in range(draws)]
                cells.append(f"{np.mean(wrong):.1%}")
        print(f"| {world} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("replay", "errors"))
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--orderings", type=int, default=40)
    options = parser.parse_args()
    if options.only != "errors":
        replay(options.orderings)
    if options.only != "replay":
        errors(options.draws)
