"""The ranking on a terminal, with agreement and warnings; the conclusion comes last, where one looks first."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from roadworthy.core.text import printable
from roadworthy.report.findings import Card
from roadworthy.report.tables import setting_title, short_ranking, units_of
from roadworthy.statistics import CONFIDENCE, BlockKey, Standing

LEGEND = "◦ control  ↓ lower ↑ higher is better  [ ] {:g} % interval  ( ) possible ranks"


def titled_table(title: str, *columns: str, numbers: Sequence[str] = ()) -> Table:
    """An empty table, narrow enough for 80 columns; `numbers` are the columns to align right."""
    table = Table(
        title=escape(title), title_justify="left", title_style="bold", caption_justify="left", box=box.SIMPLE_HEAD,
        pad_edge=False, show_edge=False, min_width=min(len(title), 76),
    )  # fmt: skip
    for column in columns:
        table.add_column(escape(column), justify="right" if column in numbers else "left")
    return table


def show_ranking(
    console: Console,
    ranking: pd.DataFrame,
    standings: Mapping[BlockKey, Standing],
    agreement: pd.DataFrame | None = None,
    *,
    state: str,
    conclusion: str,
    details: Sequence[str] = (),
    cards: Sequence[Card] = (),
    accuracy: str = "",
    warnings: Sequence[str] = (),
    self_test: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    closing: Sequence[str] = (),
) -> None:
    """Print tables of `roadworthy.statistics`; `agreement` is None where fewer than two methods can be compared.

    `state`, `conclusion`, `details`: the conclusion; `cards` answer what one asks next. `accuracy`: before removal.
    `self_test`: its sentences. `confidence`: of the intervals. `closing`: lines before the conclusion.
    """
    several = ranking["evaluator"].nunique() > 1
    for (evaluator, imputer), block in ranking.groupby(["evaluator", "imputer"], sort=False):
        title = setting_title(imputer, evaluator if several else None, units_of(block))
        console.print(_ranking_table(title, short_ranking(block, standings)))
        console.print()
    _say(console, LEGEND.format(100 * confidence), style="dim")
    if accuracy:
        _say(console, f"Accuracy before removal: {accuracy}")
    if agreement is not None:
        _show_agreement(console, agreement, several)
    _list(console, "Warnings", warnings)
    _list(console, "Self-test", self_test)
    _list(console, "Details", details)
    _show_cards(console, cards)
    if closing:
        console.print()
    for line in closing:
        console.print(line, markup=False, highlight=False, soft_wrap=True)  # a path can be copied whole
    show_conclusion(console, state, conclusion)


_TONES = {"good": "green", "bad": "red", "open": "yellow", "plain": ""}


def _show_cards(console: Console, cards: Sequence[Card]) -> None:
    """A question and its answer to a line, the detail below the answer."""
    if not cards:
        return
    console.print()
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    for card in cards:
        grid.add_row(card.question, _text(card.answer, _TONES[card.tone]))
        grid.add_row("", _text(card.detail, "dim"))
    console.print(grid)


def show_conclusion(console: Console, state: str, sentence: str) -> None:
    console.print()
    for line in filter(None, (state, sentence)):
        console.print(_text(line, "bold"))


def show_leakage(console: Console, conclusions: pd.DataFrame, imputers: int = 3) -> None:
    """The bits that were found to leak, a row per method, a column per imputer and order; `imputers` to a table."""
    names, orders = list(dict.fromkeys(conclusions["imputer"])), list(dict.fromkeys(conclusions["order"]))
    cells = {(row.method, row.imputer, row.order): row for row in conclusions.itertuples()}
    for start in range(0, len(names), imputers):
        pairs = [(imputer, order) for imputer in names[start : start + imputers] for order in orders]
        columns = [f"{imputer}\n{order}" for imputer, order in pairs]
        table = titled_table("Does the removed region give the class away?", "method", *columns, numbers=columns)
        for method in dict.fromkeys(conclusions["method"]):
            table.add_row(escape(str(method)), *(_bits(cells.get((method, *pair))) for pair in pairs))
        console.print(table)
        console.print()
    _say(console, "At least so many bits of the class come through the mask; – none found", style="dim")


def _bits(row: Any) -> str:
    if row is None:
        return ""
    return f"[red]{row.bits:.2f}[/]" if row.found else "–"


def _text(text: str, style: str) -> Text:
    """Without markup, and without control characters, which a Text would pass on."""
    return Text(printable(text), style=style)


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, markup=False, highlight=False, style=style)


def _list(console: Console, title: str, lines: Sequence[str]) -> None:
    """Lines with a hanging indent, so that one sees where each begins."""
    if not lines:
        return
    console.print()
    console.print(_text(title, "bold"))
    for line in lines:
        _say(console, fill(line, console.width, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))


def _ranking_table(title: str, rows: pd.DataFrame) -> Table:
    names = [str(column) for column in rows.columns]
    table = titled_table(title, *names, numbers=[name for name in names if name not in ("rank", "method")])
    for column in table.columns:
        column.no_wrap = True
    for row in rows.itertuples(index=False):
        cells = dict(zip(names, (str(cell).replace(" (control)", " ◦") for cell in row), strict=True))
        rank, _, possible = cells["rank"].partition(" ")
        cells["rank"] = f"{rank:>2} {possible}".rstrip()
        table.add_row(*map(escape, cells.values()), style="dim" if cells["method"].endswith(" ◦") else None)
    return table


def _show_agreement(console: Console, table: pd.DataFrame, several: bool) -> None:
    same = (table["imputer_a"] == table["imputer_b"]) & (table["evaluator_a"] == table["evaluator_b"])
    orders = table[same & (table["order_a"] != table["order_b"])]
    if orders.empty:
        return
    console.print()
    titles = {"removed": "same fraction removed", "kept": "removed by MoRF = kept by LeRF"}
    pairings = list(dict.fromkeys(orders["pairing"]))
    numbers = [titles[pairing] for pairing in pairings]
    names = [*(["evaluator"] if several else []), "imputer"]
    shown = titled_table("Do MoRF and LeRF rank the methods alike?", *names, *numbers, numbers=numbers)
    for (evaluator, imputer), rows in orders.groupby(["evaluator_a", "imputer_a"], sort=False):
        values = {row.pairing: _agreement(row) for row in rows.itertuples()}
        name = [str(evaluator), str(imputer)] if several else [str(imputer)]
        shown.add_row(*map(escape, name), *(values.get(pairing, "–") for pairing in pairings))
    console.print(shown)
    _say(console, "Mean Spearman correlation: 1 identical, 0 unrelated, −1 reversed", style="dim")


def _agreement(row: Any) -> str:
    if not row.fractions:
        return "undefined: all methods tie"
    interval = f" [{row.low:+.2f}, {row.high:+.2f}]" if row.low == row.low else ""  # not NaN
    return f"{row.spearman:+.2f}{escape(interval)}".replace("-", "−")
