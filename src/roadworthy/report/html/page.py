"""The report: one self-contained HTML file from plain tables. No network; the same findings give the same bytes."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from roadworthy import statistics
from roadworthy.core.files import write_atomically
from roadworthy.report.emphasis import emphasized
from roadworthy.report.findings import Findings
from roadworthy.report.html import audit, curves, forest, self_test, slope
from roadworthy.report.html.downloads import downloads
from roadworthy.report.html.examples import Picture, answer_text, data_url, steps, strips
from roadworthy.report.html.heatmaps import Heatmap, agreement_heatmaps, class_heatmap
from roadworthy.report.html.markers import SHAPES
from roadworthy.report.html.standing_tables import Tables, tables
from roadworthy.report.palette import PAPER_NAMES, Look, colors
from roadworthy.report.tables import setting_title, short_agreement
from roadworthy.statistics import Standing
from roadworthy.statistics.scores import table_blocks

_MAX_COLUMNS = 17
"""methods in the table of classes"""
FIRST_ROWS = 12
"""methods in the forest plot of the first screen"""
_STYLES = ("base.css", "charts.css", "sections.css", "media.css")
_SCRIPTS = ("charts.js", "page.js")


def write_page(path: Path, findings: Findings) -> Path:
    """Write the page atomically."""
    write_atomically(path, page(findings).encode())
    return path


def page(findings: Findings) -> str:
    """The HTML. Templates escape all text from users (names of methods, classes, files)."""
    found, looks = templates(), looks_of(findings)
    style = "".join(found.get_template(name).render(looks=list(looks.values())) for name in _STYLES)
    script = "".join(found.get_template(name).render() for name in _SCRIPTS)
    return found.get_template("page.html").render(
        **first_screen_parts(findings, looks),
        **_sections(findings, looks),
        # Neither contains text from users; the policy allows them by hash and forbids everything else.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
    )


def templates() -> Environment:
    found = Environment(
        loader=PackageLoader("roadworthy.report.html"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # Within a sentence; names of users keep their letters.
    found.filters["inline"] = lambda title: f"{title[:1].lower()}{title[1:]}"
    return found


def looks_of(findings: Findings) -> dict[str, Look]:
    named = [table["method"] for table in (findings.ranking, findings.curves) if table is not None]
    named += [findings.audit[name]["method"] for name in ("masks", "geometry", "conclusions") if name in findings.audit]
    return colors(list(dict.fromkeys(pd.concat(named).tolist())) if named else [], findings.controls)


def numbers_of(looks: Mapping[str, Look]) -> dict[str, int]:
    return {name: number for number, name in enumerate(looks)}


def first_screen_parts(findings: Findings, looks: Mapping[str, Look]) -> dict[str, Any]:
    """What the templates of the first screen need."""
    main = _main_standing(findings)
    return {
        "findings": findings,
        "looks": list(looks.items()),
        "shapes": SHAPES,
        "forest_box": forest,
        "forest": forest.forest(main, numbers_of(looks), FIRST_ROWS) if main and main.methods else None,
        "standing": main,
        "level": f"{100 * findings.confidence:g}\N{NO-BREAK SPACE}%",
    }


def _standings(findings: Findings) -> list[Standing]:
    """One per setting, that of the conclusion first."""
    if findings.ranking is None:
        return []
    pairs = pd.DataFrame(columns=statistics.PAIRWISE_COLUMNS) if findings.pairwise is None else findings.pairwise
    main = statistics.preferred_block(findings.ranking, findings.preferred)
    found = statistics.standings(findings.ranking, pairs, findings.copies, findings.margin).values()
    return sorted(found, key=lambda standing: (standing.key.evaluator, standing.key.imputer) != main)


def _main_standing(findings: Findings) -> Standing | None:
    return next(iter(_standings(findings)), None)


def _sections(findings: Findings, looks: Mapping[str, Look]) -> dict[str, Any]:
    """The template's variables; empty where a section is left out."""
    ranking, numbers = findings.ranking, numbers_of(looks)
    main = None if ranking is None else statistics.preferred_block(ranking, findings.preferred)
    standing = _main_standing(findings)
    strong = () if standing is None else emphasized(standing.rows.reset_index(), findings.copies)
    agreement = findings.agreement
    out = statistics.out_of_scope(findings.self_test["scope"]) if "scope" in findings.self_test else {}
    return {
        "settings": _tables(findings, numbers),
        "whole_forest": forest.forest(standing, numbers) if standing and len(standing.methods) > FIRST_ROWS else None,
        "slopes": [] if ranking is None or main is None else slope.slopes(ranking, agreement, numbers, strong, main),
        "slope_title": _slope_title(findings),
        "names_of_the_paper": standing is not None and bool({*standing.methods} & {*PAPER_NAMES}),
        "rows": [] if findings.curves is None else curves.rows(
            findings.curves, findings.controls, numbers, strong, findings.chance, main, out
        ),
        "shaded": bool(out),
        "self_test": self_test.section(findings.self_test),
        "strong": strong,
        "legend": _legend(findings, standing, numbers),
        "box": curves,
        "agreement_heatmaps": [] if agreement is None or main is None else agreement_heatmaps(agreement, main),
        "agreement_intervals": agreement is not None and "low" in agreement and bool(agreement["low"].notna().any()),
        "agreement": None if agreement is None else short_agreement(agreement),
        "audit_sections": audit.sections(findings.audit),
        "leaks": audit.leak_matrix(findings.audit, standing.methods if standing else (), main[1] if main else ""),
        "class_heatmap": _class_heatmap(findings, standing),
        "downloads": downloads(findings),
        "steps": steps,
        "strips": strips,
        "answer_text": answer_text,
        "data_url": data_url,
        "picture": Picture,
    }  # fmt: skip


def _tables(findings: Findings, numbers: Mapping[str, int]) -> list[Tables]:
    if findings.ranking is None:
        return []
    blocks = table_blocks(findings.ranking)
    several = findings.ranking["evaluator"].nunique() > 1
    return [
        tables(
            setting_title(standing.key.imputer, standing.key.evaluator if several else None, standing.key.units),
            blocks[standing.key],
            standing,
            numbers,
            findings.copies,
        )
        for standing in _standings(findings)
    ]


def _legend(findings: Findings, standing: Standing | None, numbers: Mapping[str, int]) -> list[tuple[str, int]]:
    """What the charts show: methods best first, then blind controls, then copies."""
    drawn = set() if findings.curves is None else set(findings.curves["method"])
    ranked = () if standing is None else (*standing.methods, *standing.controls, *standing.copies)
    names = dict.fromkeys([*ranked, *sorted(drawn, key=lambda name: (name in findings.controls, name))])
    return [(name, numbers[name]) for name in names if name in drawn]


def _slope_title(findings: Findings) -> str:
    imputers = set() if findings.ranking is None else set(findings.ranking["imputer"])
    if imputers & set(findings.debiased) and imputers & set(findings.fixed):
        return "What debiasing changed"
    return "What the imputer changed" if len(imputers) > 1 else "MoRF against LeRF"


def _class_heatmap(findings: Findings, standing: Standing | None) -> Heatmap | None:
    """Of the setting of the conclusion, methods best first."""
    if findings.classes is None or standing is None or findings.classes["label"].nunique() < 2:
        return None
    table, methods = findings.classes, _shown(standing.methods)
    rows = table[(table["evaluator"] == standing.key.evaluator) & (table["imputer"] == standing.key.imputer)]
    return class_heatmap(rows, methods) if methods else None


def _shown(methods: Sequence[str]) -> list[str]:
    return list(methods[:_MAX_COLUMNS])


def _policy(style: str, script: str) -> str:
    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
