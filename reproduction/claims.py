"""The paper's claims and whether they hold here, from the committed tables alone."""

from typing import NamedTuple

from reproduction.tables import (
    GAP,
    ORDERS,
    Setting,
    agreement,
    number,
    only,
    ours,
    pair_row,
    paper,
    percent,
    spread,
    where,
)

SURE = 0.1
"""A claim holds if a correlation changes by more than this, and partly if by less."""


class Claim(NamedTuple):
    name: str
    paper: str
    here: str
    outcome: str
    """holds, holds partly or does not hold, and the change"""


def claims() -> list[Claim]:
    return [
        _agreement_of_orders("cifar10", "no-retrain"),
        _agreement_of_orders("cifar10", "retrain"),
        _agreement_of_evaluators("cifar10", "morf"),
        _agreement_of_evaluators("cifar10", "lerf"),
        _agreement_of_orders("food101", "retrain"),
        _agreement_of_orders("food101", "no-retrain"),
        _agreement_of_evaluators("food101", "morf"),
        _agreement_of_evaluators("food101", "lerf"),
        _cheap(),
        _masks_reveal_class(),
        _linear_hides_masks(),
        _neighbors(),
        _gain(),
        _debiasing(),
        _toy(),
    ]


# ── agreement with fixed and with linear imputation ──────────────────────────────────────────────────────────────────


def _agreement_of_orders(experiment: str, evaluator: str) -> Claim:
    pairs = [((evaluator, "morf", imputer), (evaluator, "lerf", imputer)) for imputer in ("fixed", "linear")]
    return _change(f"{_title(experiment)}, {evaluator}: MoRF and LeRF", experiment, pairs, ("kept", "removed"))


def _agreement_of_evaluators(experiment: str, order: str) -> Claim:
    pairs = [(("retrain", order, imputer), ("no-retrain", order, imputer)) for imputer in ("fixed", "linear")]
    return _change(f"{_title(experiment)}, {ORDERS[order]}: retrain and no-retrain", experiment, pairs, ("removed",))


def _change(name: str, experiment: str, pairs: list[tuple[Setting, Setting]], pairings: tuple[str, ...]) -> Claim:
    """Holds if the agreement changes as in the paper under every pairing and, where it should grow, ends above 0."""
    before, after = (_in_paper(experiment, *pair) for pair in pairs)
    sign = 1 if after > before else -1
    verb = "agree better" if sign > 0 else "agree less"
    name, reported = f"{name} {verb} with linear than with fixed imputation", f"{number(before)} → {number(after)}"
    changes, lows, texts = [], [], []
    for pairing in pairings:
        fixed, linear = (agreement(experiment, *pair, pairing) for pair in pairs)
        if fixed is None or linear is None:
            return Claim(name, reported, GAP, "not run")
        changes.append(float(linear["spearman"] - fixed["spearman"]))
        lows.append(float(linear["low"]))
        texts.append(f"{f'{pairing}: ' if len(pairings) > 1 else ''}{spread(fixed)} → {spread(linear)}")
    outcome = _outcome([sign * change for change in changes], SURE)
    details = ", ".join(f"{change:+.2f}" for change in changes)
    if sign > 0 and outcome == "holds" and min(lows) <= 0:  # disagreeing less is not yet agreement
        outcome, details = "holds partly", f"{details}; the agreement is not significantly above 0"
    return Claim(name, reported, "; ".join(texts), f"{outcome} ({details})")


def _in_paper(table: str, a: Setting, b: Setting) -> float:
    row = pair_row(paper("agreement"), a, b, table=table)
    if row is None:
        raise LookupError(f"the paper's table {table} has no {a} with {b}")
    return float(row["spearman"])


def _outcome(changes: list[float], sure: float = 0.0) -> str:
    """
    >>> _outcome([0.2, 0.3], 0.1), _outcome([0.2, -0.1], 0.1), _outcome([0.05], 0.1), _outcome([-0.2])
    ('holds', 'holds partly', 'holds partly', 'does not hold')
    """
    if min(changes) > sure:
        return "holds"
    return "holds partly" if max(changes) > 0 else "does not hold"


def _title(experiment: str) -> str:
    return {"cifar10": "CIFAR-10", "food101": "Food-101"}[experiment]


# ── cost, leakage, imputers ──────────────────────────────────────────────────────────────────────────────────────────


def _cheap() -> Claim:
    share = only(ours("cost"), imputer="linear")["road"] / only(ours("cost"), imputer="fixed")["roar"]
    here = f"{percent(share, 2)} % at the paper's 40 epochs and 5 : 1 split, extrapolated from seconds per image"
    return Claim("ROAD costs about 1 % of ROAR, without the maps", "0.9 %", here, _outcome([0.02 - share]))


def _masks_reveal_class() -> Claim:
    masks = where(ours("masks"), experiment="cifar10", order="morf")
    rows = where(masks, method="IG-SG")
    best, largest = (table.loc[table["accuracy"].idxmax()] for table in (rows, masks))
    interval = f"[{percent(best['low'])}, {percent(best['high'])}] at {percent(best['fraction'], 0)} % removed"
    here = (
        f"{percent(best['accuracy'])} % {interval}, {best['images']:,.0f} masks; "
        f"chance {percent(best['chance'])} %; highest: {largest['method']}, {percent(largest['accuracy'])} %"
    )
    outcome = _outcome(list(rows["low"] - rows["chance"]))
    return Claim("The masks of IG-SG alone predict the class", "almost 80 %, 50,000 masks", here, outcome)


def _linear_hides_masks() -> Claim:
    rows = where(ours("detection"), experiment="cifar10", masks="scatter")
    fixed, linear = (where(rows, imputer=imputer)["error"] for imputer in ("fixed", "linear"))
    ranges = [f"{percent(errors.min())} to {percent(errors.max())} %" for errors in (fixed, linear)]
    return Claim(
        "Imputed pixels are detected almost without error after fixed imputation, with much larger error after linear",
        "near 0; much harder",
        f"errors {ranges[0]} (fixed), {ranges[1]} (linear)",
        _outcome([linear.min() - 5 * fixed.max(), linear.min() - fixed.max()]),
    )


def _neighbors() -> Claim:
    within = where(ours("neighbors"), experiment="cifar10").set_index("neighbors")["within"]
    here = f"{number(within['direct'])} direct, {number(within['diagonal'])} diagonal, within images"
    tolerances = [0.05 - abs(within["direct"] - 0.89), 0.05 - abs(within["diagonal"] - 0.82)]
    return Claim("Neighboring pixels are correlated", ".89 direct, .82 diagonal", here, _outcome(tolerances))


def _gain() -> Claim:
    table = ours("gain-search")
    best = table.loc[table["imputation"].idxmin()]
    here = f"best of four: alpha {best['alpha']:g}, hint {best['hint']:g}, MSE {number(best['imputation'], 4)}"
    return Claim(
        "GAIN imputes best with alpha 100 and hint rate .01",
        "MSE .0085",
        here,
        _outcome([1.0 if best["alpha"] == 100 else -1.0, 1.0 if best["hint"] == 0.01 else -1.0]),
    )


# ── geometry ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _debiasing() -> Claim:
    changes, texts = [], []
    for pairing in ("kept", "removed"):
        before, after = (
            float(only(ours("debiased-agreement"), experiment="cifar10", imputer=name, pairing=pairing)["spearman"])
            for name in ("linear", "linear + debiased")
        )
        changes.append(after - before)
        texts.append(f"{pairing}: {number(before)} → {number(after)}")
    details = ", ".join(f"{change:+.2f}" for change in changes)
    defined = all(change == change for change in changes)
    outcome = f"{_outcome(changes)} ({details})" if defined else "undefined"
    return Claim("Debiasing brings MoRF and LeRF of retraining closer", ".57 → .68", "; ".join(texts), outcome)


def toy_order(order: str) -> list[str]:
    """Orderings of the toy world, best first, by their mean accuracy."""
    means = where(ours("toy"), order=order).groupby("method")["accuracy"].mean()
    return list(means.sort_values(ascending=order == "morf").index)


def _toy() -> Claim:
    morf, lerf = toy_order("morf"), toy_order("lerf")
    return Claim(
        "Toy world: gauss, which is uninformative, comes second in MoRF and second to last in LeRF",
        "as claimed",
        f"MoRF: {', '.join(morf)}; LeRF: {', '.join(lerf)}",
        _outcome([1.0 if morf[1] == "gauss" else -1.0, 1.0 if lerf[-2] == "gauss" else -1.0]),
    )
