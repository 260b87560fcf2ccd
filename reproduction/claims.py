"""What the paper says, and whether it holds here: one line each, from the committed tables alone."""

from typing import NamedTuple

from reproduction.tables import (
    EVALUATORS,
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
"""A correlation has to move by more than this for a claim to hold; less is partly."""


class Claim(NamedTuple):
    name: str
    paper: str
    here: str
    prediction: str
    """holds, holds partly or does not hold, and by how much"""


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
        _masks_leak(),
        _linear_hides(),
        _neighbors(),
        _gain(),
        _debiasing(),
        _toy(),
    ]


# ── agreement, from fixed to linear fill ─────────────────────────────────────────────────────────────────────────────


def _agreement_of_orders(experiment: str, evaluator: str) -> Claim:
    pairs = [((evaluator, "morf", fill), (evaluator, "lerf", fill)) for fill in ("fixed", "linear")]
    return _moved(
        f"{_title(experiment)}, {EVALUATORS[evaluator]}: MoRF and LeRF", experiment, pairs, ("removed", "kept")
    )


def _agreement_of_evaluators(experiment: str, order: str) -> Claim:
    pairs = [(("retrain", order, fill), ("no-retrain", order, fill)) for fill in ("fixed", "linear")]
    return _moved(f"{_title(experiment)}, {ORDERS[order]}: retrain and no-retrain", experiment, pairs, ("removed",))


def _moved(name: str, experiment: str, pairs: list[tuple[Setting, Setting]], pairings: tuple[str, ...]) -> Claim:
    """It holds if the agreement moves as the paper's does, under every pairing, and is sure in the end."""
    before, after = (_said(experiment, *pair) for pair in pairs)
    way = 1 if after > before else -1
    verb = "agree better" if way > 0 else "agree less"
    name, said = f"{name} {verb} with linear fill than with fixed", f"{number(before)} → {number(after)}"
    moves, lows, texts = [], [], []
    for pairing in pairings:
        fixed, linear = (agreement(experiment, *pair, pairing) for pair in pairs)
        if fixed is None or linear is None:
            return Claim(name, said, GAP, "not run")
        moves.append(float(linear["spearman"] - fixed["spearman"]))
        lows.append(float(linear["low"]))
        texts.append(f"{f'{pairing}: ' if len(pairings) > 1 else ''}{spread(fixed)} → {spread(linear)}")
    word, by = _word([way * move for move in moves], SURE), ", ".join(f"{move:+.2f}" for move in moves)
    if way > 0 and word == "holds" and min(lows) <= 0:  # to disagree less is not yet to agree
        return Claim(name, said, "; ".join(texts), f"holds partly ({by}, but no sure agreement)")
    return Claim(name, said, "; ".join(texts), f"{word} ({by})")


def _said(table: str, a: Setting, b: Setting) -> float:
    row = pair_row(paper("agreement"), a, b, table=table)
    if row is None:
        raise LookupError(f"the paper's {table} has no {a} with {b}")
    return float(row["spearman"])


def _word(moves: list[float], sure: float = 0.0) -> str:
    """
    >>> _word([0.2, 0.3], 0.1), _word([0.2, -0.1], 0.1), _word([0.05], 0.1), _word([-0.2])
    ('holds', 'holds partly', 'holds partly', 'does not hold')
    """
    if min(moves) > sure:
        return "holds"
    return "holds partly" if max(moves) > 0 else "does not hold"


def _title(experiment: str) -> str:
    return {"cifar10": "CIFAR-10", "food101": "Food-101"}[experiment]


# ── cost, leaks, fills ───────────────────────────────────────────────────────────────────────────────────────────────


def _cheap() -> Claim:
    share = only(ours("cost"), imputer="linear")["road"] / only(ours("cost"), imputer="fixed")["roar"]
    here = f"{percent(share, 2)} % at the paper's 40 epochs and 5 : 1 split, extrapolated from seconds per image"
    return Claim("ROAD costs about 1 % of ROAR, maps left aside", "0.9 %", here, _word([0.02 - share]))


def _masks_leak() -> Claim:
    every = where(ours("masks"), experiment="cifar10", order="morf")
    rows = where(every, method="IG-SG")
    best, most = (table.loc[table["accuracy"].idxmax()] for table in (rows, every))
    interval = f"[{percent(best['low'])}, {percent(best['high'])}] at {percent(best['fraction'], 0)} % removed"
    here = (
        f"{percent(best['accuracy'])} % {interval}, {best['images']:,.0f} masks; "
        f"chance {percent(best['chance'])} %; most: {most['method']}, {percent(most['accuracy'])} %"
    )
    word = _word(list(rows["low"] - rows["chance"]))
    return Claim("The masks of IG-SG alone give the class away", "almost 80 %, 50,000 masks", here, word)


def _linear_hides() -> Claim:
    rows = where(ours("recovery"), experiment="cifar10", masks="scatter")
    fixed, linear = (where(rows, imputer=fill)["error"] for fill in ("fixed", "linear"))
    ranges = [f"{percent(one.min())} to {percent(one.max())} %" for one in (fixed, linear)]
    return Claim(
        "Which pixels were imputed can be told almost without error under fixed fill, much worse under linear fill",
        "near 0; much harder",
        f"errors {ranges[0]} (fixed), {ranges[1]} (linear)",
        _word([linear.min() - 5 * fixed.max(), linear.min() - fixed.max()]),
    )


def _neighbors() -> Claim:
    found = where(ours("neighbors"), experiment="cifar10").set_index("neighbors")["within"]
    here = f"{number(found['direct'])} direct, {number(found['diagonal'])} diagonal, within images"
    near = [0.05 - abs(found["direct"] - 0.89), 0.05 - abs(found["diagonal"] - 0.82)]
    return Claim("Neighboring pixels are alike", ".89 direct, .82 diagonal", here, _word(near))


def _gain() -> Claim:
    table = ours("gain-search")
    best = table.loc[table["imputation"].idxmin()]
    here = f"best of four: alpha {best['alpha']:g}, hint {best['hint']:g}, MSE {number(best['imputation'], 4)}"
    return Claim(
        "GAIN fills best with alpha 100 and hint rate .01",
        "MSE .0085",
        here,
        _word([1.0 if best["alpha"] == 100 else -1.0, 1.0 if best["hint"] == 0.01 else -1.0]),
    )


# ── geometry ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _debiasing() -> Claim:
    moves, texts = [], []
    for pairing in ("removed", "kept"):
        before, after = (
            float(only(ours("debiased-agreement"), experiment="cifar10", imputer=name, pairing=pairing)["spearman"])
            for name in ("linear", "linear + debiased")
        )
        moves.append(after - before)
        texts.append(f"{pairing}: {number(before)} → {number(after)}")
    if not all(move == move for move in moves):
        return Claim(
            "Debiasing brings MoRF and LeRF of retraining closer", ".57 → .68", "; ".join(texts), "cannot be told"
        )
    return Claim(
        "Debiasing brings MoRF and LeRF of retraining closer",
        ".57 → .68",
        "; ".join(texts),
        f"{_word(moves)} ({', '.join(f'{move:+.2f}' for move in moves)})",
    )


def toy_order(order: str) -> list[str]:
    """Orderings of the toy world, best first, by their mean accuracy."""
    means = where(ours("toy"), order=order).groupby("method")["accuracy"].mean()
    return list(means.sort_values(ascending=order == "morf").index)


def _toy() -> Claim:
    morf, lerf = toy_order("morf"), toy_order("lerf")
    return Claim(
        "Toy world: gauss, which knows nothing, comes second in MoRF and next to worst in LeRF",
        "so",
        f"MoRF: {', '.join(morf)}; LeRF: {', '.join(lerf)}",
        _word([1.0 if morf[1] == "gauss" else -1.0, 1.0 if lerf[-2] == "gauss" else -1.0]),
    )
