"""The report: one self-contained HTML file from plain tables. No network; the same findings give the same bytes."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from roadworthy import statistics
from roadworthy.core.files import write_atomically
from roadworthy.report.findings import Findings
from roadworthy.report.html import audit, charts
from roadworthy.report.html.examples import data_url, strips
from roadworthy.report.html.heatmaps import Heatmap, agreement_heatmaps, class_heatmaps
from roadworthy.report.palette import colors
from roadworthy.report.tables import ranking_tables, short_agreement

_MAX_COLUMNS = 17
"""methods in the table of classes"""


def write_page(path: Path, findings: Findings) -> Path:
    """Write the page atomically."""
    write_atomically(path, page(findings).encode())
    return path


def page(findings: Findings) -> str:
    """The HTML. Templates escape all text from users (names of methods, classes, files)."""
    templates = Environment(
        loader=PackageLoader("roadworthy.report.html"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    looks = colors(_methods(findings), findings.controls)
    style = templates.get_template("page.css").render(looks=list(looks.values()))
    script = templates.get_template("page.js").render()
    return templates.get_template("page.html").render(
        **_sections(findings, {name: number for number, name in enumerate(looks)}),
        findings=findings,
        level=f"{100 * findings.confidence:g}\N{NO-BREAK SPACE}%",
        # Neither contains text from users; the policy allows them by hash and forbids everything else.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
        looks=list(looks.items()),
        box=charts,
        data_url=data_url,
        strips=strips,
    )


def _methods(findings: Findings) -> list[str]:
    named = [table["method"] for table in (findings.ranking, findings.curves) if table is not None]
    named += [findings.audit[name]["method"] for name in ("masks", "geometry", "conclusions") if name in findings.audit]
    return list(dict.fromkeys(pd.concat(named).tolist())) if named else []


def _sections(findings: Findings, numbers: dict[str, int]) -> dict[str, Any]:
    """The template's variables; empty where a section is left out."""
    ranking, curves, agreement = findings.ranking, findings.curves, findings.agreement
    return {
        "rankings": [] if ranking is None else ranking_tables(ranking, numbers, findings),
        "rows": [] if curves is None else charts.rows(curves, findings.controls, numbers),
        "agreement_heatmaps": [] if agreement is None else agreement_heatmaps(agreement),
        "agreement": None if agreement is None else short_agreement(agreement),
        "audit_sections": audit.sections(findings.audit),
        "class_heatmaps": _class_heatmaps(findings),
    }


def _class_heatmaps(findings: Findings) -> list[Heatmap]:
    """Of the setting of the conclusion, methods best first."""
    if findings.classes is None or findings.ranking is None or findings.classes["label"].nunique() < 2:
        return []
    ranking, table = findings.ranking, findings.classes
    evaluator, imputer = statistics.preferred_block(ranking, findings.preferred)
    block = ranking[(ranking["evaluator"] == evaluator) & (ranking["imputer"] == imputer) & ~ranking["control"]]
    rows = table[(table["evaluator"] == evaluator) & (table["imputer"] == imputer)]
    return class_heatmaps(rows, block["method"].tolist()[:_MAX_COLUMNS]) if len(block) else []


def _policy(style: str, script: str) -> str:
    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
