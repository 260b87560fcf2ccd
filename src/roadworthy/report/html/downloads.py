"""Tables as CSV inside the page: links that need neither a script nor a request."""

import base64
from typing import NamedTuple

import pandas as pd

from roadworthy.core.text import csv_bytes
from roadworthy.report.findings import Findings


class Download(NamedTuple):
    file: str
    url: str
    size: str


def downloads(findings: Findings) -> dict[str, Download]:
    """By table; those that are there."""
    tables = {
        "ranking": findings.ranking,
        "pairwise": findings.pairwise,
        "curves": findings.curves,
        "agreement": findings.agreement,
        "classes": findings.classes,
        **{f"audit-{name}": table for name, table in findings.audit.items()},
        **{f"self-test-{name}": table for name, table in findings.self_test.items()},
    }
    return {name: _download(name, table) for name, table in tables.items() if table is not None and len(table)}


def _download(name: str, table: pd.DataFrame) -> Download:
    # Six digits say more than any interval allows, and keep the page small.
    rounded = table.assign(**{
        column: [float(f"{value:.6g}") for value in table[column]]
        for column in table.columns if table[column].dtype.kind == "f"
    })  # fmt: skip
    content = csv_bytes(rounded)
    url = "data:text/csv;charset=utf-8;base64," + base64.b64encode(content).decode()
    return Download(f"roadworthy-{name}.csv", url, f"{max(1, round(len(content) / 1024)):,} KB")
