"""The ranking on a terminal, with agreement and warnings; the conclusion comes last, where one looks first."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from roadworthy.report.tables import setting_title, short_ranking
from roadworthy.statistics import CONFIDENCE

LEGEND = "◦ control   ↓ lower is better   ↑ higher is better   [ ] {:g} % interval   ( ) possible ranks"


def show_ranking(
    console: Console,
    ranking: pd.DataFrame,
    agreement: pd.DataFrame | None = None,
    *,
    state: str,
    conclusion: str,
    details: Sequence[str] = (),
    accuracy: str = "",
    warnings: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> None:
    """Print tables of `roadworthy.statistics`; `agreement` is None where fewer than two methods can be compared.

    `state`, `conclusion`, `details`: the conclusion. `accuracy`: before removal. `confidence`: of the intervals.
    """
    several = ranking["evaluator"].nunique() > 1
    for (evaluator, imputer), block in ranking.groupby(["evaluator", "imputer"], sort=False):
        console.print(_ranking_table(setting_title(imputer, evaluator if several else None), block))
    console.print(LEGEND.format(100 * confidence), markup=False, highlight=False)
    if accuracy:
        console.print(f"Accuracy before removal: {accuracy}", markup=False, highlight=False)
    if agreement is not None:
        _show_agreement(console, agreement, several)
    for warning in warnings:
        console.print(f"Warning: {warning}", markup=False, highlight=False)
    console.print()
    console.print(Text(state, style="bold"))
    console.print(conclusion, markup=False, highlight=False)
    for line in details:
        console.print(f"- {line}", markup=False, highlight=False)


def _ranking_table(title: str, block: pd.DataFrame) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    rows = short_ranking(block)
    for column in rows.columns:
        table.add_column(str(column), no_wrap=True)
    for row, control in zip(rows.itertuples(index=False), block["control"], strict=True):
        cells = (escape(str(cell).replace(" (control)", " ◦")) for cell in row)
        table.add_row(*cells, style="dim" if control else None)
    return table


def _show_agreement(console: Console, table: pd.DataFrame, several: bool) -> None:
    same = (table["imputer_a"] == table["imputer_b"]) & (table["evaluator_a"] == table["evaluator_b"])
    orders = table[same & (table["order_a"] != table["order_b"])]
    if orders.empty:
        return
    console.print("Do MoRF and LeRF rank the methods alike? Mean Spearman correlation, 1 = identical:")
    for row in orders.itertuples():
        evaluator = f"{row.evaluator_a:12} " if several else ""
        value = f"{row.spearman:+.2f}" if row.fractions else "undefined: in one of the two all methods tie"
        console.print(f"  {evaluator}{row.imputer_a:8} {row.pairing:8} {value}", markup=False, highlight=False)
