"""A comparison as numbers by name and as two files, metrics.json and curves.csv, which DVC and others read."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from roadworthy.core.files import write_atomically
from roadworthy.experiments.comparison import Comparison

SCORES = ("srg", "morf", "lerf")


def metrics(comparison: Comparison) -> dict[str, Any]:
    """evaluator ► imputer ► method ► score, its interval and rank; without what was not measured."""
    nested: dict[str, Any] = {}
    for row in comparison.ranking().to_dict("records"):
        entry = nested.setdefault(str(row["evaluator"]), {}).setdefault(str(row["imputer"]), {})
        entry[str(row["method"])] = {
            f"{score}{field}": _number(row[f"{score}{field}"])
            for score in SCORES
            for field in ("", "_low", "_high", "_rank")
            if not pd.isna(row.get(f"{score}{field}"))
        }
    return nested


def _number(value: Any) -> float | int:
    number = float(value)
    return int(number) if number.is_integer() and not isinstance(value, float) else number


def flat(nested: Mapping[str, Any], prefix: str = "roadworthy") -> dict[str, float]:
    """Scalars by path, "roadworthy/no-retrain/linear/IG/srg", in letters that every tool accepts."""
    result: dict[str, float] = {}
    for name, value in nested.items():
        path = f"{prefix}/{re.sub(r'[^A-Za-z0-9_. -]', '_', name)}"
        if isinstance(value, Mapping):
            result |= flat(value, path)
        elif math.isfinite(value):
            result[path] = float(value)
    return result


def write_metrics(comparison: Comparison, folder: Path) -> tuple[Path, Path]:
    """metrics.json and curves.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    scores, curves = folder / "metrics.json", folder / "curves.csv"
    write_atomically(scores, (json.dumps(metrics(comparison), indent=2, ensure_ascii=False) + "\n").encode())
    write_atomically(curves, comparison.curves().to_csv(index=False).encode())
    return scores, curves
