"""Write the tables of docs/performance.md and README.md from bench/ratios.json (see ratios.py); a test compares them.

python bench/report.py
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs" / "performance.md", ROOT / "README.md")
OURS = "Roadworthy"
Rows = list[dict[str, Any]]


def table(head: list[str], body: Iterable[list[str]], text_columns: int) -> str:
    rule = ["---"] * text_columns + ["--:"] * (len(head) - text_columns)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def measured_on(part: dict[str, Any]) -> str:
    return f"Measured on {part['date']}: {part['machine']}.\n\n"


def imputation(rows: Rows) -> str:
    ours = {where(row): row for row in rows if row["tool"] == OURS}
    head = ["size", "masks", "threads", "tool", "ms", "CPU ms", "× ours", "× ours, CPU"]
    body = []
    for row in sorted(rows, key=where):
        own = ours[where(row)]
        ratios = [f"{row[clock] / own[clock]:.0f}" if row is not own else "" for clock in ("wall", "CPU")]
        cells = [f"{row['size']}²", row["masks"], str(row["threads"]), row["tool"]]
        body.append([*cells, f"{row['wall']:.3g}", f"{row['CPU']:.3g}", *ratios])
    return table(head, body, 4)


def where(row: dict[str, Any]) -> tuple[int, bool, int]:
    return row["size"], row["masks"] == "blobs", row["threads"]


def comparison(rows: Rows) -> str:
    head = ["model", "masks", "images", "threads", "seconds", "forward ms", "imputation ms", "share", "`compare`"]
    body = [
        [
            f"{row['model']}, {row['size']}²", row["masks"], str(row["images"]), str(row["threads"]), row["clock"],
            f"{row['forward']:.3g}", f"{row['impute']:.3g}", f"{row['share']:.1%}", f"{row['ratio']:.2f} ×",
        ]
        for row in sorted(rows, key=lambda row: (*where(row), row["clock"] == "CPU"))
    ]  # fmt: skip
    return table(head, body, 5)


def maps(rows: Rows) -> str:
    head = ["size", "maps", "Captum", "ours", "ratio", "`optimized`", "ratio"]
    body = []
    for row in rows:
        captum, ours, fast = row["Captum"], row["ours"], row["optimized"]
        times = [f"{captum:.3g}", f"{ours:.3g}", f"{captum / ours:.2f}", f"{fast:.3g}", f"{captum / fast:.2f}"]
        body.append([f"{row['size']}²", row["maps"], *times])
    return table(head, body, 2)


def in_short(rows: Rows) -> str:
    """The speed of imputation for the README: ranges over masks, one thread, CPU time."""
    versions = sorted({row["tool"] for row in rows} - {OURS})
    tools = list({tool.rpartition(" ")[0]: tool for tool in versions}.values())  # of each the newest
    single = [row for row in sorted(rows, key=where) if row["threads"] == 1]
    body = []
    for size in sorted({row["size"] for row in rows}):
        there = [row for row in single if row["size"] == size]
        times = {tool: [row["CPU"] for row in there if row["tool"] == tool] for tool in (OURS, *tools)}
        cells = [f"{spread(times[OURS])} ms"]
        for tool in tools:
            ratios = [theirs / ours for theirs, ours in zip(times[tool], times[OURS], strict=True)]
            cells.append(f"{spread(times[tool])} ms, {min(ratios):.0f} to {max(ratios):.0f} ×")
        body.append([f"{size}² image", *cells])
    return table(["CPU time of imputing a", OURS, *tools], body, 1)


def spread(values: list[float]) -> str:
    """
    >>> spread([3.96, 2.97]), spread([0.101, 0.1012])
    ('3 to 4', '0.1')
    """
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{float(low):g} to {float(high):g}"


def blocks(results: dict[str, Any]) -> dict[str, str]:
    tables = {"imputation": imputation, "comparison": comparison, "maps": maps}
    made = {name: measured_on(results[name]) + make(results[name]["rows"]) for name, make in tables.items()}
    return made | {"imputation in short": in_short(results["imputation"]["rows"])}


def filled(page: str, results: dict[str, Any]) -> str:
    """The page with each block between `<!-- name -->` and `<!-- end -->` written anew."""
    for name, text in blocks(results).items():
        block = f"<!-- {name} -->\n\n{text}\n\n<!-- end -->"
        page = re.sub(f"<!-- {name} -->.*?<!-- end -->", lambda _, block=block: block, page, flags=re.DOTALL)
    return page


def main() -> None:
    results = json.loads((ROOT / "bench" / "ratios.json").read_text())
    for path in PAGES:
        path.write_text(filled(path.read_text(), results))


if __name__ == "__main__":
    main()
