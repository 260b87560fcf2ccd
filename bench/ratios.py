"""All ratios in one result file, from which docs/performance.md is written (`python bench/report.py`).

    python bench/ratios.py imputation          ours, pytorch-grad-cam, Quantus: same masks
    python bench/ratios.py comparison          `compare` against bare forward passes
    python bench/ratios.py maps                the paper's eight methods, ours and Captum's own calls

Each part takes minutes, runs with one and with two threads, and replaces its rows in bench/ratios.json, with date
and machine. Another version of Quantus gets rows of its own, from the folder that --another-quantus names:
pip install --no-deps --target DIR quantus==0.5.3
"""

import argparse
import json
import os
import platform
import warnings
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import attributions
import comparison
import peers
import torch

Others = Mapping[str, peers.Impute]
RESULTS = Path(__file__).with_name("ratios.json")
KINDS = ("scatter", "blobs")
COUNTS = {32: 512, 224: 32}
"""Images of a comparison by size."""
ROUNDS = {32: 5, 224: 3}
"""of a comparison between forward passes, of which the medians count"""
FEW = {
    32: ["--images", "16", "--steps", "10", "--ig-samples", "2", "--gb-samples", "10"],
    224: ["--images", "2", "--steps", "8", "--ig-samples", "2", "--gb-samples", "6"],
}
"""Settings of the maps by size: few, because Captum's take long; more steps share more of a first convolution."""


def imputation(size: int, others: Others) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        yield from peers.imputation(size, kind, others)


def compared(size: int, others: Others) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        yield from comparison.measured(size, COUNTS[size], kind, rounds=ROUNDS[size])


def maps(size: int, others: Others) -> Iterator[dict[str, Any]]:
    if torch.get_num_threads() == 1:  # CPU seconds, which threads do not change much
        yield from attributions.measured(attributions.settings(["--size", str(size), "--repeats", "1", *FEW[size]]))


PARTS = {"imputation": imputation, "comparison": compared, "maps": maps}


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether two rows measure the same thing."""
    return all(a.get(name) == b.get(name) for name in ("model", "masks", "maps", "size", "threads", "clock", "tool"))


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 224], choices=FEW)
    parser.add_argument("--another-quantus", type=Path, metavar="DIR")
    options = parser.parse_args()
    others = peers.tools(options.another_quantus) if options.part == "imputation" else {}
    for threads, size in product(options.threads, options.sizes):
        torch.set_num_threads(threads)
        for row in PARTS[options.part](size, others):
            exact = {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row.items()}
            print(exact, flush=True)
            record(options.part, exact)


def record(part: str, row: dict[str, Any]) -> None:
    """Replace the row that measured the same; written at once, because the rest may take minutes."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    others = [other for other in results.get(part, {}).get("rows", []) if not same(other, row)]
    results[part] = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), "rows": [*others, row]}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
