"""Agreement, its changes and scores, from the harvested points and the correctness of each image alone.

python -m reproduction.derive [--results results]      then: python -m reproduction.document
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from reproduction.debias import debiased_table
from reproduction.ids import points_id
from reproduction.kept import committed
from reproduction.later import later_tables
from reproduction.stages import MAIN, STAGES
from reproduction.stopping import stopping_table
from reproduction.tables import METHODS, POINT, RESULTS, Results, where
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions

Side = tuple[str, str]
"""evaluator, order"""
NO_RETRAIN, RETRAIN, WARM = "no-retrain", "retrain", "warm-start"
PAIRS: tuple[tuple[Side, Side], ...] = (
    *(((evaluator, "morf"), (evaluator, "lerf")) for evaluator in (NO_RETRAIN, RETRAIN, WARM)),
    *(((evaluator, order), (NO_RETRAIN, order)) for evaluator in (RETRAIN, WARM) for order in ("morf", "lerf")),
)
"""settings that the paper compares; a warm start stands in for retraining"""
BEFORE_AFTER = ("fixed", "linear")
SHORT = [f"{field}_{side}" for side in "ab" for field in ("evaluator", "order", "imputer")]


def pairings(a: Side, b: Side) -> tuple[str, ...]:
    """The paper's comes first: it decides."""
    return ("kept", "removed") if a[1] != b[1] else ("removed",)


def seeds_of(points: Iterable[Point]) -> list[int]:
    """Those of the trainings; without any, the only one."""
    return sorted({point.seed for point in points})


def of_seed(predictions: Mapping[Point, Predictions], seed: int) -> dict[Point, Predictions]:
    """One training's points, and those without training: their seed varies ties and noise alone, so one serves all."""
    return {
        point._replace(seed=0): one
        for point, one in predictions.items()
        if point.method in METHODS and (point.seed == seed or point.evaluator == NO_RETRAIN)
    }


def complete(predictions: Mapping[Point, Predictions], fractions: Mapping[str, int]) -> dict[Point, Predictions]:
    """Of settings that are finished: all methods at all fractions. A ranking of some of them is another ranking.

    fractions: how many each evaluator has, with 0.
    """
    counts: dict[tuple[str, str, str], int] = {}
    for point in predictions:
        counts[point[1:4]] = counts.get(point[1:4], 0) + 1
    return {
        point: one
        for point, one in predictions.items()
        if counts[point[1:4]] == len(METHODS) * fractions[point.evaluator]
    }


def by_seed(results: Results, data: str) -> Iterator[tuple[str, int, dict[Point, Predictions], dict[Point, str]]]:
    """The data set, and for each training seed the finished settings with the ids of their points."""
    predictions = committed(results, *MAIN[data])
    points = results.points(*MAIN[data])
    facts = results.facts()
    fractions = {row.evaluator: 1 + len(facts[row.plan]["fractions"]) for row in points.itertuples()}
    places = (Point(*row) for row in points[POINT].itertuples(index=False))
    ids = dict(zip(places, points["item"], strict=True))
    for seed in seeds_of(predictions):
        chosen = complete(of_seed(predictions, seed), fractions)
        own = {point: ids[point._replace(seed=0 if point.evaluator == NO_RETRAIN else seed)] for point in chosen}
        yield data, seed, chosen, own


def agreement_table(results: Results) -> pd.DataFrame:
    """Rank correlations between all finished settings of a data set, per seed, with intervals over images."""
    tables = []
    for data, seed, predictions, ids in (one for name in MAIN for one in by_seed(results, name)):
        if not predictions:
            continue
        table = statistics.agreement_intervals(predictions)
        table = table[table["fractions"] > 0]  # pairs without a common fraction have no agreement
        if seed > 0:  # the others are those of seed 0
            table = table[(table["evaluator_a"] != NO_RETRAIN) | (table["evaluator_b"] != NO_RETRAIN)]
        names = [
            points_id(ids[point] for point in ids if point[1:4] in (_place(row, "order_a"), _place(row, "order_b")))
            for row in table.to_dict("records")
        ]
        tables.append(table.assign(data=data, seed=seed, points=names, images=_images(predictions)))
    columns = ["data", "seed", *SHORT, "pairing", "spearman", "low", "high", "fractions", "images", "points"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def _place(row: Mapping[str, str], column: str) -> tuple[str, str, str]:
    side = column[-2:]
    return row[f"order{side}"], row[f"imputer{side}"], row[f"evaluator{side}"]


def change_table(results: Results) -> pd.DataFrame:
    """How much the agreement of two settings changes from fixed to linear imputation: the paper's main claims."""
    rows = []
    for data, seed, predictions, ids in (one for name in MAIN for one in by_seed(results, name)):
        for a, b in PAIRS:
            used = [point for point in predictions if (point.evaluator, point.order) in (a, b)]
            used = [point for point in used if point.imputer in BEFORE_AFTER]
            if len({point[1:4] for point in used}) < 4 or (seed > 0 and a[0] == b[0] == NO_RETRAIN):
                continue
            name = points_id(ids[point] for point in used)
            for pairing in pairings(a, b):
                sides = [[statistics.Setting(*side, imputer) for side in (a, b)] for imputer in BEFORE_AFTER]
                chosen = {point: predictions[point] for point in used}
                change = statistics.agreement_change(chosen, *map(tuple, sides), pairing=pairing)
                rows.append((data, seed, *a, *b, pairing, *change, _images(predictions), name))
    columns = ["data", "seed", "evaluator_a", "order_a", "evaluator_b", "order_b", "pairing", "change", "low", "high"]
    return pd.DataFrame(rows, columns=[*columns, "images", "points"])


def score_table(results: Results) -> pd.DataFrame:
    """Area between LeRF and MoRF (srg) and both areas, of the methods of each plan without training, with intervals."""
    rows = []
    for plan in (stage.plan for stage in STAGES):
        ids = results.points(plan)
        curves = {point: one for point, one in committed(results, plan).items() if point.evaluator == NO_RETRAIN}
        for block in statistics.blocks(curves) if curves else ():
            if "srg" not in block.scores:
                continue
            for method, values in block.scores["srg"].items():
                items = where(ids, method=method, imputer=block.key.imputer)["item"]
                areas = (float(block.scores[order][method].mean()) for order in ("morf", "lerf"))
                srg = (float(values.mean()), *statistics.mean_interval(values))
                rows.append((plan, block.key.imputer, method, *srg, *areas, values.shape[-1], points_id(items)))
    columns = ["plan", "imputer", "method", "srg", "low", "high", "morf", "lerf", "images", "points"]
    return pd.DataFrame(rows, columns=columns)


def _images(predictions: Mapping[Point, Predictions]) -> int:
    return len(next(iter(predictions.values())))


TABLES = {
    "agreement": agreement_table,
    "changes": change_table,
    "scores": score_table,
    "debiased": debiased_table,
}


def derive(results: Results) -> None:
    for name, table in TABLES.items():
        results.write(name, table(results))
    for name, found in later_tables(results).items():
        results.write(name, found)
    if len(found := stopping_table(results)):
        results.write("stopping", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    derive(Results(parser.parse_args().results))


if __name__ == "__main__":
    main()
