"""The first screen as a cell of a notebook: no style sheet, no script, its own background."""

from roadworthy.report.findings import Findings
from roadworthy.report.html.page import first_screen_parts, looks_of, templates


def first_screen(findings: Findings) -> str:
    """State, conclusion, cards and forest plot with inline styles: notebooks drop style sheets."""
    return templates().get_template("card.html").render(first_screen_parts(findings, looks_of(findings)))
