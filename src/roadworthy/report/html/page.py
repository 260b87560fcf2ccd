"""One self-contained HTML page from plain tables: no network, no state, the same bytes for the same findings."""

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
from roadworthy.report.html import audits, charts
from roadworthy.report.html.squares import agreement_squares, class_squares
from roadworthy.report.html.strips import data_url
from roadworthy.report.palette import colors
from roadworthy.report.tables import short_agreement, standings

_MOST_COLUMNS = 17
"""methods in the table of classes: more do not fit a page"""


def write_page(path: Path, findings: Findings) -> Path:
    """Write the page; the file appears whole or not at all."""
    write_atomically(path, page(findings).encode())
    return path


def page(findings: Findings) -> str:
    """All text of a user (names of methods, classes, files) is escaped by the template."""
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
        # Neither holds a word of the user's; the policy names them by their sums and forbids everything else.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
        looks=list(looks.items()),
        box=charts,
        data_url=data_url,
    )


def _methods(findings: Findings) -> list[str]:
    named = [table["method"] for table in (findings.ranking, findings.curves) if table is not None]
    named += [
        findings.audits[name]["method"] for name in ("masks", "geometry", "conclusions") if name in findings.audits
    ]
    return list(dict.fromkeys(pd.concat(named).tolist())) if named else []


def _sections(findings: Findings, numbers: dict[str, int]) -> dict[str, Any]:
    """What the template shows, section by section; empty where there is nothing to tell."""
    ranking, curves, agreement = findings.ranking, findings.curves, findings.agreement
    return {
        "standings": [] if ranking is None else standings(ranking, numbers, findings.audits.get("conclusions")),
        "rows": [] if curves is None else charts.rows(curves, findings.controls, numbers),
        "squares": [] if agreement is None else agreement_squares(agreement),
        "agreement": None if agreement is None else short_agreement(agreement),
        "audits": audits.sections(findings.audits),
        "classes": _classes(findings),
    }


def _classes(findings: Findings) -> Any:
    """The setting that speaks first, its methods best first."""
    if findings.classes is None or findings.ranking is None or findings.classes["label"].nunique() < 2:
        return []
    ranking, table = findings.ranking, findings.classes
    evaluator, imputer = statistics.main_block(ranking)
    block = ranking[(ranking["evaluator"] == evaluator) & (ranking["imputer"] == imputer) & ~ranking["control"]]
    here = table[(table["evaluator"] == evaluator) & (table["imputer"] == imputer)]
    return class_squares(here, block["method"].tolist()[:_MOST_COLUMNS]) if len(block) else []


def _policy(style: str, script: str) -> str:
    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_sum(style)}'; script-src '{_sum(script)}'"
    )


def _sum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
