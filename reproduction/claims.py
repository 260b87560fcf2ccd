"""The paper's claims and what the committed tables show about them."""

from typing import NamedTuple

import pandas as pd
from scipy import stats

from reproduction.changes import Side, pairings
from reproduction.outcomes import (
    DIRECTION,
    OUTCOMES,
    UNTESTABLE,
    Change,
    below_floor,
    in_words,
    is_similar,
    outcome,
)
from reproduction.tables import (
    AGAIN,
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
    whole_accuracy,
)


class Claim(NamedTuple):
    name: str
    paper: str
    here: str
    outcome: str
    """one of OUTCOMES, and in parentheses the change with its interval or the reason"""


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
    name = f"{_title(experiment)}, {evaluator}: MoRF and LeRF"
    return _agreement(name, experiment, (evaluator, "morf"), (evaluator, "lerf"))


def _agreement_of_evaluators(experiment: str, order: str) -> Claim:
    name = f"{_title(experiment)}, {ORDERS[order]}: retrain and no-retrain"
    return _agreement(name, experiment, ("retrain", order), ("no-retrain", order))


def _agreement(name: str, experiment: str, a: Side, b: Side) -> Claim:
    before, after = (_in_paper(experiment, (*a, imputer), (*b, imputer)) for imputer in ("fixed", "linear"))
    name = f"{name} agree {'better' if after > before else 'less'} with linear than with fixed imputation"
    here, source = _here(experiment, a, b), _source(experiment, a, b)
    if source != experiment:
        accuracy = percent(whole_accuracy(source))
        here += f". With the network trained again (accuracy {accuracy} %): {_here(source, a, b)}"
    result = _outcome_of_change(experiment, source, a, b, after - before)
    return Claim(name, f"{number(before)} → {number(after)}", here, result)


def _source(experiment: str, a: Side, b: Side) -> str:
    """The experiment that has the interval of the change."""
    again = AGAIN.get(experiment, experiment)
    known = [name for name in (experiment, again) if change_row(name, a, b, pairings(a, b)[0]) is not None]
    return known[0] if known else experiment


def _outcome_of_change(experiment: str, source: str, a: Side, b: Side, claimed: float) -> str:
    accuracies = {evaluator: whole_accuracy(source, evaluator) for evaluator in (a[0], b[0])}
    reason = below_floor(experiment, accuracies)
    if reason:
        return f"{UNTESTABLE} ({reason})"
    row = change_row(source, a, b, pairings(a, b)[0])
    if row is None:
        return f"{UNTESTABLE} (the predictions per image were not kept)"
    change = Change(row["change"], row["low"], row["high"])
    after = agreement(source, (*a, "linear"), (*b, "linear"), row["pairing"])
    agrees = claimed < 0 or (after is not None and after["low"] > 0)  # disagreeing less is not yet agreement
    result = outcome(change, claimed, is_similar(change.value, claimed) and agrees)
    return in_words(result, change)


def change_row(experiment: str, a: Side, b: Side, pairing: str) -> pd.Series | None:
    sides = dict(zip(("evaluator_a", "order_a", "evaluator_b", "order_b"), (*a, *b), strict=True))
    rows = where(ours("changes"), experiment=experiment, pairing=pairing, **sides)
    return None if rows.empty else rows.iloc[0]


def _here(experiment: str, a: Side, b: Side) -> str:
    texts = {pairing: _before_and_after(experiment, a, b, pairing) for pairing in pairings(a, b)}
    return "; ".join(f"{pairing}: {text}" if len(texts) > 1 else text for pairing, text in texts.items())


def _before_and_after(experiment: str, a: Side, b: Side, pairing: str) -> str:
    pair = (agreement(experiment, (*a, imputer), (*b, imputer), pairing) for imputer in ("fixed", "linear"))
    return " → ".join(spread(row) for row in pair)


def _in_paper(table: str, a: Setting, b: Setting) -> float:
    row = pair_row(paper("agreement"), a, b, table=table)
    if row is None:
        raise LookupError(f"the paper's table {table} has no {a} with {b}")
    return float(row["spearman"])


def _title(experiment: str) -> str:
    return {"cifar10": "CIFAR-10", "food101": "Food-101"}[experiment]


# ── cost, leakage, imputers ──────────────────────────────────────────────────────────────────────────────────────────


def _cheap() -> Claim:
    row = only(ours("cost"), imputer="linear")
    share, low, high = (float(row[name]) for name in ("share", "share_low", "share_high"))
    result = outcome(Change(1 - share, 1 - high, 1 - low), 1, is_similar(share, 0.009))
    return Claim(
        "ROAD costs about 1 % of ROAR, without the maps",
        "0.9 %",
        f"{percent(share, 2)} % [{percent(low, 2)}, {percent(high, 2)}], extrapolated from seconds per image to the "
        "paper's 40 epochs and 5 : 1 split",
        f"{result} (far below 100 %, but not the paper's share)" if result == DIRECTION else result,
    )


def _masks_reveal_class() -> Claim:
    masks = where(ours("masks"), experiment="cifar10", order="morf")
    rows = where(masks, method="IG-SG")
    best, largest = (table.loc[table["accuracy"].idxmax()] for table in (rows, masks))
    interval = f"[{percent(best['low'])}, {percent(best['high'])}] at {percent(best['fraction'], 0)} % removed"
    here = (
        f"{percent(best['accuracy'])} % {interval}, {best['images']:,.0f} masks; "
        f"chance {percent(best['chance'])} %; highest: {largest['method']}, {percent(largest['accuracy'])} %"
    )
    gain = Change(*(float(best[name] - best["chance"]) for name in ("accuracy", "low", "high")))
    result = outcome(gain, 1, is_similar(gain.value, 0.8 - 0.1))
    if result == DIRECTION:
        result += " (above chance, but far below the paper's, which used 50 times as many masks)"
    return Claim("The masks of IG-SG alone predict the class", "almost 80 %, 50,000 masks", here, result)


def _linear_hides_masks() -> Claim:
    rows = where(ours("detection"), experiment="cifar10")
    rows = rows[rows["masks"].isin(["scatter", "blobs"])]
    fixed, linear = (where(rows, imputer=imputer).set_index(["masks", "fraction"]) for imputer in ("fixed", "linear"))
    # Not paired, so the ends are those of the two intervals: wider than needed.
    lows, highs = linear["low"] - fixed["high"], linear["high"] - fixed["low"]
    least = lows.idxmin()
    change = Change(linear["error"][least] - fixed["error"][least], lows[least], highs[least])
    errors = [f"{percent(side['error'].min())} to {percent(side['error'].max())} %" for side in (fixed, linear)]
    aucs = f"AUC {number(linear['auc'].min())} to {number(linear['auc'].max())}"
    return Claim(
        "Imputed pixels are detected almost without error after fixed imputation, with much larger error after linear",
        "near 0; much harder",
        f"errors {errors[0]} (fixed), {errors[1]} (linear, still detected: {aucs}), scattered pixels and blobs",
        f"{in_words(outcome(change, 1), change)[:-1]}, the least of six; the paper reports no sizes)",
    )


def _neighbors() -> Claim:
    reported = {"direct": 0.89, "diagonal": 0.82}
    rows = where(ours("neighbors"), experiment="cifar10").set_index("neighbors")
    within = {kind: Change(*(rows.loc[kind, name] for name in ("within", "low", "high"))) for kind in reported}
    results = {outcome(value, 1, is_similar(value.value, reported[kind])) for kind, value in within.items()}
    texts = [f"{number(c.value, 3)} [{number(c.low, 3)}, {number(c.high, 3)}] {kind}" for kind, c in within.items()]
    weakest = max(results, key=OUTCOMES.index)
    return Claim("Neighboring pixels are correlated", ".89 direct, .82 diagonal", ", ".join(texts), weakest)


def _gain() -> Claim:
    table = ours("gain-search")
    best = table.loc[table["imputation"].idxmin()]
    here = f"best of four: alpha {best['alpha']:g}, hint {best['hint']:g}, MSE {number(best['imputation'], 4)}"
    return Claim(
        "GAIN imputes best with alpha 100 and hint rate .01",
        "MSE .0085",
        here,
        f"{UNTESTABLE} (four settings instead of 16, each trained once, for 1 epoch: no interval)",
    )


# ── geometry ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _debiasing() -> Claim:
    texts = []
    for pairing in ("kept", "removed"):
        rows = [
            only(ours("debiased-agreement"), experiment="cifar10", imputer=name, pairing=pairing)
            for name in ("linear", "linear + debiased")
        ]
        values = " → ".join(number(float(row["spearman"])) for row in rows)
        texts.append(f"{pairing}: {values} ({rows[0]['methods']} methods at {rows[0]['fractions']} fractions)")
    reason = below_floor("cifar10", {"retrain": whole_accuracy("cifar10", "retrain")})
    result = f"{UNTESTABLE} ({reason or 'no interval'})"
    return Claim("Debiasing brings MoRF and LeRF of retraining closer", ".57 → .68", "; ".join(texts), result)


def toy_order(order: str) -> list[str]:
    """Orderings of the toy world, best first, by their mean accuracy."""
    means = where(ours("toy"), order=order).groupby("method")["accuracy"].mean()
    return list(means.sort_values(ascending=order == "morf").index)


def _toy() -> Claim:
    gaps = {name: _over_seeds(values) for name, values in _gaps_of_gauss().items()}
    least = min(gaps, key=lambda name: gaps[name].low)
    morf, lerf = toy_order("morf"), toy_order("lerf")
    gap = gaps[least]
    return Claim(
        "Toy world: gauss, which is uninformative, comes second in MoRF and second to last in LeRF",
        "as claimed",
        f"MoRF: {', '.join(morf)}; LeRF: {', '.join(lerf)} (one of {ours('toy-seeds')['seed'].nunique()} worlds)",
        f"{in_words(outcome(gap, 1), gap)[:-1]}: the least of its four distances to its neighbors, accuracy)",
    )


def _gaps_of_gauss() -> dict[str, pd.Series]:
    """Per world, the accuracy by which gauss is above the lowest ordering and below the third one."""
    gaps = {}
    for order, lowest in (("morf", "true"), ("lerf", "worst")):
        table = where(ours("toy-seeds"), order=order).pivot(index="seed", columns="method", values="accuracy")
        gaps[f"{order}, below"] = table["gauss"] - table[lowest]
        gaps[f"{order}, above"] = table.drop(columns=["gauss", lowest]).min(axis=1) - table["gauss"]
    return gaps


def _over_seeds(values: pd.Series) -> Change:
    """The mean, with its interval by Student's t."""
    half = float(stats.t.isf(0.025, len(values) - 1) * values.std() / len(values) ** 0.5)
    return Change(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half)
