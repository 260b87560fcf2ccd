"""Agreement and accuracies beside the paper's, for docs/reproduction.md."""

from collections.abc import Callable

from reproduction.derive import NO_RETRAIN, RETRAIN, WARM
from reproduction.stages import MAIN
from reproduction.tables import (
    GAP,
    IMPUTERS,
    ORDERS,
    SETTINGS,
    TITLES,
    Results,
    Setting,
    in_paper,
    markdown,
    name_of,
    number,
    only,
    pair_rows,
    paper,
    percent,
    spread,
    where,
)

PAPER_FRACTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)


def agreement(results: Results) -> str:
    orders, evaluators = [], []
    for data in MAIN:
        for evaluator in (NO_RETRAIN, RETRAIN, WARM):
            for imputer in IMPUTERS:
                a, b = (evaluator, "morf", imputer), (evaluator, "lerf", imputer)
                cells = [_cells(results, data, a, b, pairing) for pairing in ("kept", "removed")]
                if evaluator == WARM and cells == [GAP, GAP]:
                    continue
                orders.append((f"{TITLES[data]}, {evaluator}, {imputer}", _in_paper(data, a, b), *cells))
        for evaluator in (RETRAIN, WARM):
            for order, imputer in ((order, imputer) for order in ORDERS for imputer in IMPUTERS):
                a, b = (evaluator, order, imputer), (NO_RETRAIN, order, imputer)
                cell = _cells(results, data, a, b, "removed")
                if evaluator == WARM and cell == GAP:
                    continue
                name = f"{TITLES[data]}, {ORDERS[order]}, {evaluator}, {imputer}"
                evaluators.append((name, _in_paper(data, a, b), cell))
    return f"""## Agreement

Spearman correlation of the rankings of two settings, averaged over fractions: the paper's consistency. Several values
are those of several seeds. From `agreement.csv`; the paper's deviations over runs are in
`reproduction/paper/agreement.csv`.

{markdown(("MoRF ~ LeRF", "paper", "here, kept", "here, removed"), orders)}

With the evaluation without retraining, ROAD:

{markdown(("~ no-retrain", "paper", "here"), evaluators)}"""


def _cells(results: Results, data: str, a: Setting, b: Setting, pairing: str, short: bool = False) -> str:
    rows = pair_rows(results.table("agreement"), a, b, data=data, pairing="removed" if a[1] == b[1] else pairing)
    texts = [number(row.spearman) if short else spread(row.spearman, row.low, row.high) for row in rows.itertuples()]
    return ", ".join(texts) or GAP


def _in_paper(data: str, a: Setting, b: Setting) -> str:
    value = in_paper(data, a, b)
    return GAP if value is None else number(value)


def matrix(data: str) -> Callable[[Results], str]:
    def section(results: Results) -> str:
        rows = []
        for i, row in enumerate(SETTINGS):
            cells = [_cell(results, data, row, column) if j < i else "" for j, column in enumerate(SETTINGS)]
            rows.append((f"**{i + 1}** {name_of(row)}", *cells))
        table = markdown(("ours / paper", *(f"**{i + 1}**" for i in range(len(SETTINGS)))), rows)
        text = "MoRF and LeRF are paired by `kept`; values of two seeds are separated by a comma."
        return f"## Agreement of all settings, {TITLES[data]}\n\n{text}\n\n{table}"

    return section


def _cell(results: Results, data: str, a: Setting, b: Setting) -> str:
    return f"{_cells(results, data, a, b, 'kept', short=True)} / {_in_paper(data, a, b)}"


def accuracies(results: Results) -> str:
    text = (
        "Percent, ours with half the width of its interval / the paper's, by fraction removed (in LeRF too); retrained "
        "networks of several seeds are separated by a comma."
    )
    parts = [f"## Accuracies of IG-SG and GB-SG, CIFAR-10\n\n{text}"]
    for method in ("IG-SG", "GB-SG"):
        rows = []
        for setting in SETTINGS:
            cells = [_accuracy(results, method, setting, fraction) for fraction in PAPER_FRACTIONS]
            rows.append((name_of(setting), *cells))
        parts.append(f"**{method}**\n\n{markdown(('setting', *(f'{f:.0%}' for f in PAPER_FRACTIONS)), rows)}")
    return "\n\n".join(parts)


def _accuracy(results: Results, method: str, setting: Setting, fraction: float) -> str:
    evaluator, order, imputer = setting
    wanted = {"method": method, "evaluator": evaluator, "order": order, "imputer": imputer, "fraction": fraction}
    rows = where(results.points(*MAIN["cifar10"]), **wanted)
    texts = [f"{percent(row.accuracy)} ±{percent((row.high - row.low) / 2)}" for row in rows.itertuples()]
    return f"{', '.join(texts) or GAP} / {only(paper('accuracy'), **wanted)['accuracy']:.1f}"
