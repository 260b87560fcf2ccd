"""Tables as LaTeX, for booktabs: agreement of the settings, accuracies of a method, runtimes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from roadworthy.report.figures.curves import in_order
from roadworthy.report.figures.leakage import order_name
from roadworthy.report.figures.style import EVALUATORS, ORDERS
from roadworthy.statistics import Setting, agreement_matrix

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def escaped(text: object) -> str:
    r"""
    >>> escaped("50% of_{x}")
    '50\\% of\\_\\{x\\}'
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in str(text))


def agreement_table(table: pd.DataFrame) -> str:
    """Spearman's rank correlation of every two settings, the lower triangle; ± its standard error over runs."""
    settings = _settings(table)
    several = bool((table["runs"] > 1).any())
    names = [str(one) for one in settings]
    means, errors = (
        agreement_matrix(table, measure).loc[names, names].to_numpy(dtype=float)
        for measure in ("spearman_runs" if several else "spearman", "spearman_runs_error")
    )
    errors = np.where(np.eye(len(names)) == 1, np.nan, errors)  # a setting agrees with itself for sure
    heads = [f"{_place(one)} {escaped(one.imputer)}" for one in settings]
    rows = []
    for number, head in enumerate(heads):
        cells = [_number(*pair, 2) for pair in zip(means[number], errors[number], strict=True)]
        rows.append([f"({number + 1}) {head}", *cells[: number + 1], *[""] * (len(heads) - number - 1)])
    caption = "Spearman rank correlation of the methods' rankings between settings, mean over the shares removed."
    return _tabular(["", *(f"({number + 1})" for number in range(len(settings)))], rows, "l" + "r" * len(rows), caption)


def _settings(table: pd.DataFrame) -> list[Setting]:
    """The paper's order: MoRF before LeRF, retrained before not, then the imputers as they came."""
    sides = [table[[f"{field}_{side}" for field in Setting._fields]].itertuples(index=False) for side in "ab"]
    there = list(dict.fromkeys(Setting(*row) for side in sides for row in side))
    orders = in_order([one.order for one in there], ORDERS)
    evaluators = in_order([one.evaluator for one in there], {"retrain": "", **EVALUATORS})
    imputers = list(dict.fromkeys(one.imputer for one in there))
    return sorted(
        there, key=lambda one: (orders.index(one.order), evaluators.index(one.evaluator), imputers.index(one.imputer))
    )


def _place(setting: Setting) -> str:
    return escaped(f"{order_name(setting.order)}, {EVALUATORS.get(setting.evaluator, setting.evaluator)},")


def accuracy_table(curves: pd.DataFrame, method: str) -> str:
    """One method's accuracies in per cent, a row per setting, a column per share removed; ± half its 95 % interval."""
    own = curves[curves["method"] == method]
    fractions = sorted(own["fraction"].unique())
    rows = []
    for (order, evaluator, imputer), points in own.groupby(["order", "evaluator", "imputer"], sort=False):
        by_fraction = points.set_index("fraction")
        half = (by_fraction["high"] - by_fraction["low"]) / 2
        cells = [
            _number(100 * by_fraction["accuracy"].get(fraction, np.nan), 100 * half.get(fraction, np.nan), 1)
            for fraction in fractions
        ]
        rows.append([f"{_place(Setting(str(evaluator), str(order), str(imputer)))} {escaped(imputer)}", *cells])
    caption = (
        f"Accuracy (\\%) of {escaped(method)} by share of pixels removed, $\\pm$ half of its 95\\,\\% interval. "
        "MoRF: lower is better. LeRF: higher is better."
    )
    head = ["removed", *(f"{fraction:.0%}".replace("%", r"\,\%") for fraction in fractions)]
    return _tabular(head, rows, "l" + "r" * len(fractions), caption)


def runtime_table(runtimes: pd.DataFrame) -> str:
    """Seconds per curve (one method, one order, all shares removed) by evaluator and imputer."""
    rows = [
        [
            escaped(EVALUATORS.get(evaluator, evaluator)),
            escaped(imputer),
            f"{seconds:.4g}",
            f"{100 * relative:.3g}\\,\\%",
        ]
        for evaluator, imputer, seconds, relative in runtimes.to_numpy().tolist()
    ]
    caption = "Mean runtime of one curve: one method in one order at all shares removed."
    return _tabular(["evaluator", "filled by", "seconds", "relative"], rows, "llrr", caption)


def _number(value: float, error: float, digits: int) -> str:
    if np.isnan(value):
        return "--"
    spread = "" if np.isnan(error) else f" {{\\scriptsize$\\pm${error:.{digits}f}}}"
    return f"${value:.{digits}f}${spread}"


def _tabular(head: Sequence[str], rows: Sequence[Sequence[str]], columns: str, caption: str) -> str:
    lines = [" & ".join(cells) + r" \\" for cells in (head, *rows)]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs} and \usepackage{graphicx}",
            r"\begin{table}",
            r"\centering",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}}",
            rf"\caption{{{caption}}}",
            r"\end{table}",
            "",
        ]
    )
