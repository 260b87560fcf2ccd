"""LaTeX tables (booktabs): agreement of the settings, accuracies of a method, runtimes.

pandas' Styler writes and escapes them. The cells are strings: names in the first columns, LaTeX in the others.
"""

import numpy as np
import pandas as pd

from roadworthy.report.figures.agreement import in_paper_order
from roadworthy.report.figures.style import EVALUATORS, order_name
from roadworthy.statistics import Setting, agreement_matrix


def agreement_table(table: pd.DataFrame) -> str:
    """Spearman rank correlation of every two settings, lower triangle; ± its standard error over runs."""
    settings = in_paper_order(table)
    several_runs = bool((table["runs"] > 1).any())
    names = [str(setting) for setting in settings]
    means, errors = (
        agreement_matrix(table, measure).loc[names, names].to_numpy(dtype=float)
        for measure in ("spearman_runs" if several_runs else "spearman", "spearman_runs_error")
    )
    errors = np.where(np.eye(len(names)) == 1, np.nan, errors)  # a setting's agreement with itself is exact
    rows = [
        [f"({row + 1}) {_name(setting)}"]
        + [_number(means[row, column], errors[row, column], 2) if column <= row else "" for column in range(len(names))]
        for row, setting in enumerate(settings)
    ]
    columns = ["", *(f"({number + 1})" for number in range(len(settings)))]
    caption = "Spearman rank correlation of the methods' rankings between settings, mean over the fractions removed."
    return _latex(pd.DataFrame(rows, columns=columns), 1, caption)


def _name(setting: Setting) -> str:
    evaluator = EVALUATORS.get(setting.evaluator, setting.evaluator)
    return f"{order_name(setting.order)}, {evaluator}, {setting.imputer}"


def accuracy_table(curves: pd.DataFrame, method: str) -> str:
    """Accuracies of one method in percent, one row per setting, one column per fraction; ± half the 95 % interval."""
    points = curves[curves["method"] == method]
    fractions = sorted(points["fraction"].unique())
    rows = []
    for (order, evaluator, imputer), block in points.groupby(["order", "evaluator", "imputer"], sort=False):
        by_fraction = block.set_index("fraction")
        half = (by_fraction["high"] - by_fraction["low"]) / 2
        cells = [
            _number(100 * by_fraction["accuracy"].get(fraction, np.nan), 100 * half.get(fraction, np.nan), 1)
            for fraction in fractions
        ]
        rows.append([_name(Setting(str(evaluator), str(order), str(imputer))), *cells])
    caption = (
        r"Accuracy (\%) by fraction of pixels removed, $\pm$ half of its 95\,\% interval. "
        "MoRF: lower is better. LeRF: higher is better."
    )
    columns = [f"{method}, removed:", *(f"{fraction:.0%}" for fraction in fractions)]
    return _latex(pd.DataFrame(rows, columns=columns), 1, caption)


def runtime_table(runtimes: pd.DataFrame) -> str:
    """Seconds per curve (one method and order, all fractions) by evaluator and imputer."""
    rows = [
        [EVALUATORS.get(evaluator, evaluator), imputer, f"{seconds:.4g}", f"{100 * relative:.3g}\\,\\%"]
        for evaluator, imputer, seconds, relative in runtimes.to_numpy().tolist()
    ]
    caption = "Mean runtime of one curve: one method in one order at all fractions removed."
    return _latex(pd.DataFrame(rows, columns=["evaluator", "imputer", "seconds", "relative"]), 2, caption)


def _number(value: float, error: float, digits: int) -> str:
    if np.isnan(value):
        return "--"
    spread = "" if np.isnan(error) else f" {{\\scriptsize$\\pm${error:.{digits}f}}}"
    return f"${value:.{digits}f}${spread}"


def _latex(table: pd.DataFrame, names: int, caption: str) -> str:
    """A table environment no wider than the line. The header and the first `names` columns are escaped."""
    styler = table.style.hide(axis="index").format_index(escape="latex", axis="columns")
    styler.format(escape="latex", subset=list(table.columns[:names]))
    column_format = "l" * names + "r" * (len(table.columns) - names)
    text = styler.to_latex(hrules=True, column_format=column_format, caption=caption, position_float="centering")
    shrink = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    text = text.replace(r"\begin{tabular}", f"{shrink}\n\\begin{{tabular}}").replace(
        r"\end{tabular}", r"\end{tabular}}"
    )
    return "% needs \\usepackage{booktabs} and \\usepackage{graphicx}\n" + text
