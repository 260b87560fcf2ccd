"""Which benchmark settings recover the true order of maps? Measures docs/benchmark-of-benchmarks.md.

    python bench/truth_test.py FOLDER --draws 50 --trained-draws 10      measure; a draw that is in FOLDER is kept
    python bench/truth_test.py FOLDER --write                            write the tables of the page

Each draw of each evaluator is a CSV file of scores in FOLDER, so the measurement may be interrupted and extended.
"""

import argparse
import re
from pathlib import Path

import pandas as pd
import torch

import roadworthy as rw
from roadworthy.evaluation.experiment import EVALUATORS, POINT_EVALUATORS
from roadworthy.experiments.self_test.recovered_order import ALL, TruthTest
from roadworthy.experiments.self_test.truth_test import BENCHMARKS, own_orders

PAGE = Path(__file__).parent.parent / "docs" / "benchmark-of-benchmarks.md"


def measure(folder: Path, draws: int, trained_draws: int, evaluators: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(max(draws, trained_draws)):
        for evaluator in evaluators:
            file = folder / f"{evaluator}-{seed}.csv"
            if file.exists() or seed >= (trained_draws if evaluator in POINT_EVALUATORS else draws):
                continue
            names = [one.name for one in BENCHMARKS if one.evaluator == evaluator]
            found = rw.truth_test(benchmarks=names, draws=1, trained_draws=1, seed=seed, progress=False)
            found.scores.assign(draw=seed).to_csv(file, index=False)
            print(file, flush=True)


def collected(folder: Path) -> TruthTest:
    """All draws in a folder, in the order of the benchmarks."""
    scores = pd.concat([pd.read_csv(file) for file in sorted(folder.glob("*.csv"))], ignore_index=True)
    place = {one.name: number for number, one in enumerate(BENCHMARKS)}
    scores = scores.sort_values(
        ["benchmark", "draw"],
        key=lambda column: column.map(place) if column.name == "benchmark" else column,
        kind="stable",
    )
    worlds = {name: make(0, 8, 8) for name, make in rw.truth.WORLDS.items()}
    own = {key: order for world in worlds.values() for key, order in own_orders(world, BENCHMARKS).items()}
    return TruthTest(scores, {name: world.order for name, world in worlds.items()}, own_orders=own)


def cell(row: pd.Series, measure: str) -> str:
    scale, digits = (1, ".2f") if measure == "spearman" else (100, ".0f")
    # 0 is added so that a rounding error below it is not shown as −0
    value, low, high = (f"{round(scale * row[measure + end], 2) + 0:{digits}}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def by_world(table: pd.DataFrame, measure: str) -> str:
    """Benchmarks by worlds."""
    worlds = list(dict.fromkeys(table["world"]))
    lines = [f"| benchmark | draws | {' | '.join(worlds)} |", f"|---|---|{'---|' * len(worlds)}"]
    for benchmark, block in table.groupby("benchmark", sort=False):
        rows = block.set_index("world")
        cells = [cell(rows.loc[world], measure) for world in worlds]
        lines.append(f"| {benchmark} | {rows['draws'].max()} | {' | '.join(cells)} |")
    return "\n".join(lines)


def differences(table: pd.DataFrame) -> str:
    """Pairs more than ROAD, in percentage points."""
    worlds = list(dict.fromkeys(table["world"]))
    lines = [f"| benchmark | {' | '.join(worlds)} |", f"|---|{'---|' * len(worlds)}"]
    for benchmark, block in table.groupby("benchmark", sort=False):
        rows = block.set_index("world")
        cells = []
        for world in worlds:
            value, low, high = 100 * rows.loc[world, ["difference", "low", "high"]].astype(float)
            text = f"{value:+.0f} [{low:+.0f}, {high:+.0f}]"
            cells.append(f"**{text}**" if low > 0 or high < 0 else text)
        lines.append(f"| {benchmark} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Replace the tables of the page, which stand between markers."""
    found = collected(folder)
    table = found.table()
    parts = {
        "pairs": by_world(table, "pairs"),
        "whole": by_world(table, "whole"),
        "differences": differences(found.differences()),
    }
    parts["spearman"] = by_world(table[table["world"] == ALL], "spearman")
    text = PAGE.read_text()
    for name, part in parts.items():
        text = re.sub(
            rf"(<!-- {name} -->).*?(<!-- end -->)",
            lambda match, part=part: f"{match[1]}\n\n{part}\n\n{match[2]}",
            text,
            flags=re.DOTALL,
        )
    PAGE.write_text(text)
    print("\n".join(found.conclusions()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--trained-draws", type=int, default=10)
    parser.add_argument("--evaluators", nargs="+", default=list(EVALUATORS))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.write:
        write(options.folder)
    else:
        measure(options.folder, options.draws, options.trained_draws, options.evaluators)
