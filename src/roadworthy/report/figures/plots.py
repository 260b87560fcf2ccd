"""Figures for notebooks and papers, one call each: ranking, agreement, ranks by imputer."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from roadworthy.report.figures.style import COLUMN, PAGE, literal, styled
from roadworthy.report.palette import Look

SCORES = {"srg": "LeRF − MoRF area", "morf": "MoRF area (lower is better)", "lerf": "LeRF area (higher is better)"}


@styled
def ranking_plot(ranking: pd.DataFrame, looks: Mapping[str, Look]) -> Figure:
    """Leading scores with their intervals, best on top; one panel per evaluator and imputer."""
    blocks = list(ranking.groupby(["evaluator", "imputer"], sort=False))
    height = 0.6 + 0.17 * max(len(block) for _, block in blocks)
    figure = Figure(figsize=(COLUMN * len(blocks), height), layout="constrained")
    for panel, ((evaluator, imputer), block) in zip(
        figure.subplots(1, len(blocks), squeeze=False)[0], blocks, strict=True
    ):
        score = next(name for name in SCORES if name in block and block[name].notna().any())
        rows = block[block[score].notna()].iloc[::-1]
        for place, row in enumerate(rows.to_dict("records")):
            look = looks[str(row["method"])]
            ends = [[row[score] - row[f"{score}_low"]], [row[f"{score}_high"] - row[score]]]
            panel.errorbar(
                [row[score]], [place], xerr=ends, fmt="o" if not row["control"] else "D", color=look.color, capsize=2,
                alpha=0.6 if row["control"] else 1.0,
            )  # fmt: skip
        panel.set_yticks(range(len(rows)), [literal(name) for name in rows["method"]])
        panel.set_xlabel(SCORES[score])
        panel.set_title(literal(f"{imputer}, {evaluator}"))
    return figure


@styled
def agreement_plot(matrix: pd.DataFrame) -> Figure:
    """A square of correlations: a row and a column per setting."""
    size = len(matrix)
    side = min(PAGE, 1.6 + 0.55 * size)
    figure = Figure(figsize=(side, side), layout="constrained")
    panel = figure.subplots()
    panel.imshow(matrix.to_numpy(dtype=float), vmin=-1, vmax=1, cmap="RdBu")
    names = [literal(name) for name in matrix.columns]
    panel.set_xticks(range(size), names, rotation=45, ha="right")
    panel.set_yticks(range(size), [literal(name) for name in matrix.index])
    panel.grid(False)
    values = matrix.to_numpy(dtype=float)
    for row, column in np.ndindex(size, size):
        value = float(values[row, column])
        if not np.isnan(value):
            panel.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7)
    return figure


@styled
def ranks_plot(ranking: pd.DataFrame, looks: Mapping[str, Look]) -> Figure:
    """How the ranks of the methods change between imputers: a line per method."""
    score = next(name for name in SCORES if name in ranking and ranking[name].notna().any())
    methods = ranking[~ranking["control"]]
    table = methods.pivot_table(index="method", columns="imputer", values=score, sort=False)
    ranks = table.rank(ascending=score == "morf", method="min")
    figure = Figure(figsize=(COLUMN, 0.6 + 0.25 * len(ranks)), layout="constrained")
    panel = figure.subplots()
    for method, row in ranks.iterrows():
        panel.plot(range(len(row)), row, marker="o", color=looks[str(method)].color)
        panel.annotate(literal(method), (len(row) - 1, row.iloc[-1]), xytext=(6, 0), textcoords="offset points",
                       va="center")  # fmt: skip
    panel.set_xticks(range(len(ranks.columns)), [literal(name) for name in ranks.columns])
    panel.set_ylabel("rank")
    panel.invert_yaxis()
    panel.set_yticks(range(1, len(ranks) + 1))
    panel.margins(x=0.25)
    return figure
