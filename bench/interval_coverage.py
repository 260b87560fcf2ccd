"""How often the intervals that are printed hold the truth, in simulated studies whose truth is known.

python bench/interval_coverage.py                     # 2,000 studies per row: 25 minutes on a quiet core
python bench/interval_coverage.py --only betting      # rows whose name contains the word
python bench/interval_coverage.py --out rows.json     # resumes: rows that the file holds are not measured again

Prints a Markdown table. Bars: pointwise intervals hold in 93 to 97 % (above: conservative), simultaneous and anytime
ones in at least 95 %, each up to two standard errors of the simulation (1 % for 2,000 studies).

A study: images share an ease, a method's family and a method's own response, and are right or wrong at each fraction
(correlated Bernoulli variables by a normal threshold model), so true accuracies are known exactly.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from roadworthy import statistics
from roadworthy.audit.debiasing import gamma_table
from roadworthy.audit.geometry import Geometry, Reconstruction
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.agreement_intervals import agreement_interval
from roadworthy.statistics.betting import STAKES
from roadworthy.statistics.diff import _paired, _unpaired
from roadworthy.statistics.intervals import bounded_interval, share_interval
from roadworthy.statistics.scores import SCORES, Block, BlockKey, aopc, area

NINE = tuple(round(0.1 * step, 1) for step in range(1, 10))
Study = Callable[[np.random.Generator], Any]
Row = tuple[str, str, str, Study]
"""name, regime, kind, and a study that returns whether each of its intervals held"""


# ── the world ────────────────────────────────────────────────────────────────────────────────────────────────────────


def merits(generator, methods, fractions, spread, correlation):
    """Thresholds `(methods, 2, fractions)`; the two settings correlate, and so do neighboring fractions."""
    steps = np.abs(np.subtract.outer(np.arange(fractions), np.arange(fractions)))
    along = np.linalg.cholesky(0.8**steps)
    between = np.array([[1, 0], [correlation, np.sqrt(1 - correlation**2)]])
    normal = generator.normal(size=(methods, 2, fractions))
    drawn = np.einsum("sr,mrf,gf->msg", between, normal, along)
    base = np.stack([np.linspace(-0.2, 0.8, fractions), np.linspace(0.9, -0.2, fractions)])
    return base + spread * drawn


def hits(generator, thresholds, images):
    """Whether each image is correct: `(methods, settings, fractions, images)`, with probability Φ(threshold)."""
    methods, settings, fractions = thresholds.shape
    parts = [
        (0.35, (1, 1, 1, images)),
        (0.10, (1, settings, 1, images)),
        (0.20, ((methods + 1) // 2, 1, 1, images)),  # two methods per family
        (0.15, (methods, settings, 1, images)),
        (0.20, (methods, settings, fractions, images)),
    ]
    latent = 0
    for share, shape in parts:
        part = np.sqrt(share) * generator.normal(size=shape)
        latent = latent + (part.repeat(2, axis=0)[:methods] if shape[0] == (methods + 1) // 2 > 1 else part)
    return latent < thresholds[..., None]


def srg_of(correct, plain):
    """Per-image values of LeRF area − MoRF area, of hits `(methods, 2, fractions, images)`: MoRF first."""
    grid = (0.0, *NINE)
    curves = np.concatenate([np.broadcast_to(plain, correct[:, :, :1].shape), correct], axis=2).astype(float)
    areas = area(curves.transpose(2, 0, 1, 3), grid)
    return areas[:, 1] - areas[:, 0]


def scored_study(generator, thresholds, images):
    """Per-image srg `(methods, images)` and its true value."""
    correct, plain = hits(generator, thresholds, images), generator.random(images) < 0.9
    truth = stats.norm.cdf(thresholds)[..., None]
    return srg_of(correct, plain), srg_of(truth, np.full(1, 0.9))[:, 0]


def predictions_of(correct, names=(("lerf", "linear"), ("lerf", "fixed")), fractions=NINE):
    """Hits `(methods, settings, fractions, images)` as predictions."""
    images = correct.shape[-1]
    ids, labels = np.arange(images), np.zeros(images, np.int64)
    return {
        Point(f"m{m}", order, imputer, "no-retrain", fraction, 0): Predictions(
            ids, labels, 1 - correct[m, s, f].astype(np.int64), correct[m, s, f].astype(np.float32)
        )
        for m in range(len(correct))
        for s, (order, imputer) in enumerate(names)
        for f, fraction in enumerate(fractions)
    }


def inside(ends, truth):
    low, high = ends[-2:]
    return low - 1e-9 <= truth <= high + 1e-9


# ── scores, ranks, differences ───────────────────────────────────────────────────────────────────────────────────────

FIVE = np.array([0.5, 0.47, 0.4, 0.4, 0.0])
"""how far five methods separate the orders: close, tied and far"""


def five_methods():
    base = np.linspace(1.2, -1.2, 9)
    return np.stack([np.stack([base - shift, base + shift]) for shift in FIVE / 2])


def ranking_rows() -> Iterator[Row]:
    for images in (100, 300, 1000):

        def study(generator, images=images):
            values, truth = scored_study(generator, five_methods(), images)
            block = Block(
                BlockKey("e", "i"), {"srg": {str(m): each[None] for m, each in enumerate(np.asarray(values))}}
            )
            found = statistics.paired_comparisons(block, seed=int(generator.integers(2**31)))["srg"]
            pairs = found.differences
            differences = truth[pairs.first] - truth[pairs.second]
            below = np.array([(truth > each + 1e-9).sum() for each in truth]) + 1
            above = np.array([(truth >= each - 1e-9).sum() for each in truth])
            _, least, most = found.ranks
            return {
                "score of ranking()": np.mean((found.low <= truth) & (truth <= found.high)),
                "all differences of pairwise()": bool(((pairs.low <= differences) & (differences <= pairs.high)).all()),
                "all ranks of ranking()": bool(((least <= below) & (above <= most)).all()),
            }

        kinds = ("pointwise", "simultaneous", "simultaneous")
        yield "ranking", f"5 methods, {images:,} images", ",".join(kinds), study


def diff_rows() -> Iterator[Row]:
    for images in (100, 300, 1000):
        for paired in (True, False):

            def study(generator, images=images, paired=paired):
                thresholds = five_methods()[[0, 2]]
                (old, new), truth = scored_study(generator, thresholds, images)
                if not paired:
                    new = scored_study(generator, thresholds, images)[0][1]
                interval = _paired if paired else _unpaired
                ends = interval(old[None], new[None], SCORES["srg"], 0.95)
                return inside(ends, truth[1] - truth[0])

            yield f"diff, {'paired' if paired else 'unpaired'}", f"{images:,} images", "pointwise", study


# ── curves, classes, audits ──────────────────────────────────────────────────────────────────────────────────────────


def curve_rows() -> Iterator[Row]:
    for images in (100, 300, 1000):
        for accuracy in (0.5, 0.9, 0.98):

            def wilson(generator, images=images, accuracy=accuracy):
                return inside(share_interval(generator.random((1, images)) < accuracy), accuracy)

            yield "accuracy of curves(), masks()", f"{accuracy:.0%}, {images:,} images", "pointwise", wilson

        for seeds in (2, 5):

            def runs(generator, images=images, seeds=seeds):
                ease, shift = generator.normal(size=images), 0.1 * generator.normal(size=(seeds, 1))
                latent = np.sqrt(0.6) * ease + np.sqrt(0.39) * generator.normal(size=(seeds, images)) + shift
                return inside(share_interval(latent < stats.norm.ppf(0.7)), 0.7)

            yield "accuracy of curves(), retrained", f"{seeds} runs, {images:,} images", "pointwise", runs

        def probability(generator, images=images):
            return inside(bounded_interval(generator.beta(0.5, 0.8, (1, images)), (0.0, 1.0)), 0.5 / 1.3)

        yield "probability of curves()", f"{images:,} images", "pointwise", probability


def audit_rows() -> Iterator[Row]:
    for images in (10, 30, 100):

        def drop(generator, images=images):
            thresholds = five_methods()[:1]
            correct, plain = hits(generator, thresholds, images)[0, 0], generator.random(images) < 0.9
            lost = aopc(np.vstack([plain[None], correct]).astype(float), (0.0, *NINE))
            return inside(bounded_interval(lost[None], (-1.0, 1.0)), 0.9 - stats.norm.cdf(thresholds[0, 0]).mean())

        yield "drop of per_class()", f"{images} images of a class", "pointwise", drop
    for images in (100, 300, 1000):

        def gamma(generator, images=images):
            total = generator.lognormal(0.0, 0.7, images)
            share = generator.beta(2, 3, images)  # independent of the total: γ is its mean, .4
            point = Reconstruction("m", "morf", 0.5, share * total, total)
            row = gamma_table(Geometry((point,), {"m": np.zeros(images)})).iloc[0]
            return row["low"] <= 0.4 <= row["high"]

        yield "γ of geometry()", f"{images:,} images", "pointwise", gamma

        def error(generator, images=images):
            return inside(bounded_interval(generator.beta(4, 12, (1, images)), (0.0, 1.0)), 0.25)

        yield "error of detection()", f"{images:,} images", "pointwise", error


# ── agreement ────────────────────────────────────────────────────────────────────────────────────────────────────────

LINEAR, FIXED = (statistics.Setting("no-retrain", "lerf", imputer) for imputer in ("linear", "fixed"))
REGIMES = {"close": 0.05, "apart": 0.2, "far apart": 0.6}
"""spread of the methods' thresholds; with 300 images the noise of a difference is about .09"""


def true_agreement(thresholds):
    return float(np.mean([statistics.spearman(*thresholds[:, :, f].T) for f in range(thresholds.shape[2])]))


def agreement_rows() -> Iterator[Row]:
    for count in (1, 9):
        for images in (300, 1000):
            for regime, spread in REGIMES.items():
                for correlation in (-0.9, 0.0, 0.6, 0.95, 1.0) if count == 1 else (0.0, 0.95, 1.0):
                    if images == 1000 and (correlation, regime) != (0.95, "apart"):
                        continue

                    def study(generator, count=count, images=images, spread=spread, correlation=correlation):
                        thresholds = merits(generator, 8, count, spread, correlation)
                        points = predictions_of(hits(generator, thresholds, images), fractions=NINE[:count])
                        return inside(agreement_interval(points, (LINEAR, FIXED)), true_agreement(thresholds))

                    name = f"{regime}, correlation {correlation:g}, fractions: {count}, {images:,} images"
                    yield "agreement", name, "pointwise", study


EVEN = 0.1 * np.arange(8)
CLUSTERS = np.concatenate([0.02 * np.arange(4), 0.8 + 0.02 * np.arange(4)])
FIXED_TRUTHS = {
    "even steps, same order": (EVEN, EVEN),
    "even steps, neighbors swapped": (EVEN, EVEN[[1, 0, 3, 2, 5, 4, 7, 6]]),
    "even steps, mixed": (EVEN, EVEN[[3, 6, 1, 4, 7, 0, 5, 2]]),
    "two clusters, same order": (CLUSTERS, CLUSTERS),
    "two clusters, reversed inside": (CLUSTERS, CLUSTERS[[3, 2, 1, 0, 7, 6, 5, 4]]),
}
"""The same merits in every study and at all fractions: unlike the normal merits above, which the intervals assume."""


def fixed_agreement_rows() -> Iterator[Row]:
    for count in (1, 9):
        for regime, sides in FIXED_TRUTHS.items():

            def study(generator, count=count, sides=sides):
                base = np.linspace(-0.6, 0.2, count) if count > 1 else np.array([-0.3])
                thresholds = np.stack(sides, axis=1)[:, :, None] + base
                points = predictions_of(hits(generator, thresholds, 300), fractions=NINE[:count])
                return inside(agreement_interval(points, (LINEAR, FIXED)), true_agreement(thresholds))

            yield "agreement, fixed truth", f"{regime}, fractions: {count}, 300 images", "pointwise", study


def change_rows() -> Iterator[Row]:
    names = (("morf", "fixed"), ("lerf", "fixed"), ("morf", "linear"), ("lerf", "linear"))
    pairs = [tuple(statistics.Setting("no-retrain", *names[i]) for i in pair) for pair in ((0, 1), (2, 3))]
    for count in (1, 9):
        for regime, spread in REGIMES.items():
            for first, second in ((0.0, 0.0), (0.0, 0.9))[count == 9 :]:

                def study(generator, count=count, spread=spread, first=first, second=second):
                    parts = [merits(generator, 8, count, spread, r) for r in (first, second)]
                    thresholds = np.concatenate(parts, axis=1)
                    correct = hits(generator, thresholds, 300)
                    correct[:, [0, 2]] = ~correct[:, [0, 2]]  # MoRF: low is good
                    points = predictions_of(correct, names, NINE[:count])
                    truth = true_agreement(parts[1]) - true_agreement(parts[0])
                    return inside(statistics.agreement_change(points, *pairs), truth)

                name = f"{regime}, correlation {first:g} → {second:g}, fractions: {count}, 300 images"
                yield "change of agreement", name, "pointwise", study


# ── early stopping ───────────────────────────────────────────────────────────────────────────────────────────────────


def betting_rows() -> Iterator[Row]:
    for regime, spread in (("equal methods", 0.0), ("different methods", 0.4)):

        def study(generator, spread=spread):
            base = np.linspace(1.2, -1.2, 9)
            thresholds = np.stack([np.stack([base - shift, base + shift]) for shift in (spread / 2, 0.0)])
            values, truth = scored_study(generator, thresholds, 1000)
            paired, mean = values[0] - values[1], float(truth[0] - truth[1])
            # The interval holds the mean as long as neither bet against it reaches 1/(error/2): after every image.
            for sign in (1, -1):
                gains = (sign * paired + 2) / (sign * mean + 2)
                wealth = np.cumsum(np.log1p(STAKES[:, None] * (gains - 1)), axis=1)
                if (np.logaddexp.reduce(wealth) - np.log(len(STAKES))).max() >= np.log(2 / 0.05):
                    return False
            return True

        yield "betting interval", f"{regime}, a look after each of 1,000 images", "anytime", study


ROWS = (curve_rows, audit_rows, betting_rows, diff_rows, ranking_rows, agreement_rows)
ROWS += (fixed_agreement_rows, change_rows)


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def measured(row: Row, draws: int) -> list[dict[str, Any]]:
    name, regime, kinds, study = row
    # The last letters of a regime: rows with as many images share random numbers, so their errors are related.
    seed = int.from_bytes(f"{name}{regime}".encode()[-8:], "little")
    results = [study(np.random.default_rng((seed, number))) for number in range(draws)]
    if not isinstance(results[0], dict):
        results = [{name: result} for result in results]
    return [
        {"interval": each, "regime": regime, "kind": kind, "draws": draws,
         "coverage": float(np.mean([result[each] for result in results]))}
        for each, kind in zip(results[0], kinds.split(","), strict=True)
    ]  # fmt: skip


def holds(row: dict[str, Any]) -> str:
    """Against the bar, up to two standard errors of the simulation."""
    error = 2 * np.sqrt(0.05 * 0.95 / row["draws"])
    if row["kind"] == "pointwise" and row["coverage"] > 0.97 + error:
        return "conservative"
    return "yes" if row["coverage"] >= (0.93 if row["kind"] == "pointwise" else 0.95) - error else "NO"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="JSON lines; rows that it holds are not measured again")
    options = parser.parse_args()
    known: list[dict[str, Any]] = []
    if options.out and options.out.exists():
        known = [json.loads(line) for line in options.out.read_text().splitlines()]
    print("| interval | regime | kind | coverage | holds |\n|---|---|---|---|---|")
    for row in (row for rows in ROWS for row in rows() if options.only in f"{row[0]} {row[1]}"):
        regime = [each for each in known if (each["source"], each["regime"]) == (row[0], row[1])]
        results = regime or [{"source": row[0], **each} for each in measured(row, options.draws)]
        if options.out and not regime:
            with options.out.open("a") as file:
                file.writelines(json.dumps(each) + "\n" for each in results)
        for each in results:
            cells = (each["interval"], each["regime"], each["kind"], f"{each['coverage']:.1%}", holds(each))
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
