"""Run all benchmarks and write what they print to docs/performance.md, with the name of the machine.

python bench/report.py
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
BENCHES = {
    "Imputation": ["imputation.py"],
    "A comparison against its forward passes": ["comparison.py"],
    "Memory of a comparison": ["comparison.py", "memory"],
    "Maps against Captum's NoiseTunnel": [
        "attributions.py",
        *filter(None, [os.environ.get("ROADWORTHY_DATA")]),
    ],
    "Retraining with linear against fixed imputation": ["retraining.py"],
    "The leakage audit, given the maps": ["audit.py"],
    "Statistics": ["statistics.py"],
    "The run directory": ["run_directory.py"],
    "The report": ["page.py"],
}


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"


def output_of(arguments: list[str]) -> str:
    command = [sys.executable, str(ROOT / "bench" / arguments[0]), *arguments[1:]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    page = [
        "# Performance\n\nWritten by `make bench`. Every ratio comes from one run on one otherwise idle machine.\n",
        f"Machine: {machine()}.\n",
    ]
    for title, arguments in BENCHES.items():
        text = output_of(arguments)
        print(f"## {title}\n{text}", flush=True)
        page.append(f"## {title}\n\n`python bench/{' '.join(arguments[:1])}`\n\n```text\n{text.rstrip()}\n```\n")
    (ROOT / "docs" / "performance.md").write_text("\n".join(page))


if __name__ == "__main__":
    main()
