"""When, where and with what a comparison was computed, for people."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pandas as pd

from roadworthy.experiments.results import Runtime
from roadworthy.report.tables import day


def provenance(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Versions, date, machine and fingerprints."""
    versions = dict(manifest.get("versions", {}))
    facts = {"Roadworthy": versions.pop("roadworthy", version("roadworthy"))}
    date = datetime.fromisoformat(manifest["date"]) if "date" in manifest else datetime.now(UTC)
    facts["Date"] = day(date)
    if manifest.get("kind"):
        facts["Versions"] = ", ".join(f"{name} {number}" for name, number in versions.items())
        machine = manifest.get("machine", {})
        facts["Machine"] = ", ".join(f"{key} {value}" for key, value in machine.items() if value)
        facts |= _fingerprints(manifest.get("fingerprints", {}))
        if seconds := sum(manifest.get("durations", {}).values()):
            facts["Computed in"] = f"{seconds:,.0f} s, all items together"
    return {name: text for name, text in facts.items() if text}


def _fingerprints(prints: Mapping[str, Any]) -> dict[str, str]:
    texts = {name: value for name, value in prints.items() if isinstance(value, str) and value}
    return {f"Fingerprint of {name}": value for name, value in texts.items()}


def runtime_table(runtimes: Sequence[Runtime]) -> pd.DataFrame | None:
    if not runtimes:
        return None
    rows = [(row.evaluator, row.imputer, f"{row.seconds:,.2f}", f"{row.relative:.1%}") for row in runtimes]
    return pd.DataFrame(rows, columns=["evaluator", "imputer", "seconds per curve", "relative"])
