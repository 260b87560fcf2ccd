"""Run the benches side by side and write what they print to docs/performance.md, with the machine named.

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
    "Filling holes": ["imputation.py"],
    "A whole comparison against bare forward passes": ["comparison.py"],
    "Its memory": ["comparison.py", "memory"],
    "The eight maps against Captum's NoiseTunnel": [
        "attributions.py",
        *filter(None, [os.environ.get("ROADWORTHY_DATA")]),
    ],
    "Retraining with linear against fixed fill": ["retraining.py"],
    "The leakage audit, given the maps": ["audit.py"],
    "Statistics": ["statistics.py"],
    "The lab book": ["lab_book.py"],
    "The page": ["page.py"],
}


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"


def printed(words: list[str]) -> str:
    command = [sys.executable, str(ROOT / "bench" / words[0]), *words[1:]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    page = [
        "# Performance\n\nWritten by `make bench`; every ratio is of one run on one machine, which did nothing else.\n",
        f"Machine: {machine()}.\n",
    ]
    for title, words in BENCHES.items():
        text = printed(words)
        print(f"## {title}\n{text}", flush=True)
        page.append(f"## {title}\n\n`python bench/{' '.join(words[:1])}`\n\n```text\n{text.rstrip()}\n```\n")
    (ROOT / "docs" / "performance.md").write_text("\n".join(page))


if __name__ == "__main__":
    main()
