"""A comparison on a terminal: rankings, agreement, the prediction and what to beware of."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from roadworthy.experiments.comparison import Comparison
from roadworthy.report.tables import short_ranking

console = Console()


def show(comparison: Comparison) -> None:
    ranking = comparison.ranking()
    several = ranking["evaluator"].nunique() > 1
    for (evaluator, imputer), block in ranking.groupby(["evaluator", "imputer"], sort=False):
        title = escape(f"{f'{evaluator} · f' if several else 'F'}illed by: {imputer}")
        table = Table(title=title, title_justify="left", title_style="bold")
        rows = short_ranking(block)
        for column in rows.columns:
            table.add_column(str(column), no_wrap=True)
        for row, control in zip(rows.itertuples(index=False), block["control"], strict=True):
            cells = (escape(str(cell).replace(" (control)", " ◦")) for cell in row)
            table.add_row(*cells, style="dim" if control else None)
        console.print(table)
    console.print(
        "◦ control   ↓ a low area is good   ↑ a high one   [ ] 95 % interval   ( ) ranks left open", markup=False
    )
    _show_agreement(comparison, several)
    console.print(comparison.prediction(), markup=False, highlight=False)
    for text in comparison.warnings()["text"]:
        console.print(f"Beware: {text}", markup=False, highlight=False)


def _show_agreement(comparison: Comparison, several: bool) -> None:
    if comparison.ranking().query("not control")["method"].nunique() < 2:
        return
    table = comparison.agreement()
    same = (table["imputer_a"] == table["imputer_b"]) & (table["evaluator_a"] == table["evaluator_b"])
    orders = table[same & (table["order_a"] != table["order_b"])]
    if orders.empty:
        return
    console.print("Do MoRF and LeRF agree on the methods? Mean Spearman correlation, 1 = fully:")
    for row in orders.itertuples():
        evaluator = f"{row.evaluator_a:12} " if several else ""
        found = f"{row.spearman:+.2f}" if row.fractions else "one of the two ranks nothing: all methods tie"
        console.print(f"  {evaluator}{row.imputer_a:8} {row.pairing:8} {found}", markup=False, highlight=False)
