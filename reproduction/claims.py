"""The paper's claims and what the harvested tables show about them."""

import pandas as pd

from reproduction.agreement_claims import TWO_TRAININGS, Claim, agreement_claims, trainings, whole_accuracies
from reproduction.derive import NO_RETRAIN, RETRAIN
from reproduction.outcomes import (
    DIRECTION,
    NOT_SHOWN,
    OUTCOMES,
    SHOWN,
    UNTESTABLE,
    Change,
    below_floor,
    in_words,
    is_similar,
    outcome,
    over_seeds,
)
from reproduction.tables import NOT_RUN, Results, number, only, paper, percent, spread, where

PAPERS_MSE = 0.0085


def claims(results: Results) -> list[Claim]:
    return [
        *agreement_claims(results),
        _cheap(results),
        _masks_reveal_class(results),
        _linear_hides_masks(results),
        _neighbors(results),
        _gain_error(results),
        _gain_choice(results),
        _debiasing(results),
        *toy_claims(results),
    ]


def kind(claim: Claim) -> str:
    """Its outcome, without the reason."""
    return next(name for name in OUTCOMES if claim.outcome.startswith(name))


# ── cost, leakage, neighbors ─────────────────────────────────────────────────────────────────────────────────────────


def _cheap(results: Results) -> Claim:
    name, reported = "ROAD costs about 1 % of ROAR, without the maps", "0.9 %"
    if not results.has("cost"):
        return Claim(name, reported, NOT_RUN, NOT_RUN)
    row = only(results.table("cost"), imputer="linear")
    share, low, high = (float(row[column]) for column in ("share", "share_low", "share_high"))
    result = outcome(Change(1 - share, 1 - high, 1 - low), 1, is_similar(share, 0.009))
    here = (
        f"{percent(share, 2)} % [{percent(low, 2)}, {percent(high, 2)}] in CPU seconds, extrapolated "
        "from one image to the paper's 40 epochs and 5 : 1 split"
    )
    return Claim(
        name,
        reported,
        here,
        f"{result} (far below 100 %, but not the paper's share)" if result == DIRECTION else result,
    )


def _masks_reveal_class(results: Results) -> Claim:
    name, reported = "The masks of IG-SG alone predict the class", "almost 80 %, 50,000 masks, ResNet-18"
    rows = where(results.table("mask-curve"), method="IG-SG")
    if rows.empty:  # then those of the audit, cross-validated
        rows = where(results.table("masks"), method="IG-SG", order="morf")
        rows = rows.assign(masks=rows.get("images"), reader="small reader, cross-validated")
    if rows.empty:
        return Claim(name, reported, NOT_RUN, NOT_RUN)
    best = rows.loc[rows["accuracy"].idxmax()]
    interval = f"[{percent(best['low'])}, {percent(best['high'])}]"
    here = f"{percent(best['accuracy'])} % {interval}, {best['masks']:,} masks, {best['reader']}"
    gain = Change(*(float(best[column] - 0.1) for column in ("accuracy", "low", "high")))
    result = outcome(gain, 1, is_similar(gain.value, 0.8 - 0.1))
    return Claim(name, reported, f"{here}; chance 10 %", in_words(result, {0: gain}))


def _linear_hides_masks(results: Results) -> Claim:
    name = (
        "Imputed pixels are detected almost without error after fixed imputation, with much larger error after linear"
    )
    rows = results.table("detection")
    rows = rows[rows["masks"].isin(["scatter", "blobs"])] if len(rows) else rows
    if rows.empty:
        return Claim(name, "near 0; much harder", NOT_RUN, NOT_RUN)
    fixed, linear = (where(rows, imputer=imputer).set_index(["masks", "fraction"]) for imputer in ("fixed", "linear"))
    # Not paired, so the ends are those of the two intervals: wider than needed.
    lows, highs = linear["low"] - fixed["high"], linear["high"] - fixed["low"]
    least = lows.idxmin()
    change = Change(linear["error"][least] - fixed["error"][least], lows[least], highs[least])
    errors = [f"{percent(side['error'].min())} to {percent(side['error'].max())} %" for side in (fixed, linear)]
    aucs = f"AUC {number(linear['auc'].min())} to {number(linear['auc'].max())}"
    here = f"errors {errors[0]} (fixed), {errors[1]} (linear, still detected: {aucs}), scattered pixels and blobs"
    text = in_words(outcome(change, 1), {0: change})[:-1]
    return Claim(name, "near 0; much harder", here, f"{text}, the least of {len(lows)}; the paper reports no sizes)")


def _neighbors(results: Results) -> Claim:
    name, reported = "Neighboring pixels are correlated", {"direct": 0.89, "diagonal": 0.82}
    rows = where(results.table("neighbors"), experiment="cifar10")
    if rows.empty:
        return Claim(name, ".89 direct, .82 diagonal", NOT_RUN, NOT_RUN)
    within = {one: Change(*only(rows, neighbors=one)[["within", "low", "high"]]) for one in reported}
    outcomes = [outcome(value, 1, is_similar(value.value, reported[one])) for one, value in within.items()]
    texts = [f"{spread(*value, digits=3)} {one}" for one, value in within.items()]
    return Claim(name, ".89 direct, .82 diagonal", ", ".join(texts), over_seeds(outcomes))


# ── GAIN ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _gain_error(results: Results) -> Claim:
    """Compared in removed pixels, the stricter of the two definitions."""
    name, reported = "GAIN imputes scattered pixels with an MSE of .0085 (alpha 100, hint rate .01)", ".0085"
    rows = results.table("gain-masks")
    rows = rows[rows["imputer"].str.startswith("GAIN")] if len(rows) else rows
    if rows.empty:
        return Claim(name, reported, NOT_RUN, NOT_RUN)
    best = rows.loc[rows["mse"].idxmin()]
    removed = spread(best["mse"], best["low"], best["high"], 4)
    here = f"{best['imputer']}: {removed} in removed pixels, {number(best['all_pixels'], 4)} over all"
    if best["high"] <= PAPERS_MSE:
        return Claim(name, reported, here, f"{SHOWN} (at most .0085 in removed pixels, so over all pixels too)")
    text = (
        "at most .0085 over all pixels, but not shown in removed ones" if best["all_pixels"] <= PAPERS_MSE else "above"
    )
    half = number((best["high"] - best["low"]) / 2, 4)
    return Claim(name, reported, here, f"{NOT_SHOWN} ({text}; an error of {half} below it could have been shown)")


def _gain_choice(results: Results) -> Claim:
    name, reported = "Of 16 settings of GAIN, alpha 100 with hint rate .01 imputes best", ".0085, next .0088"
    table = results.table("gain-masks-search")
    if len(table) < len(paper("gain")):
        return Claim(name, reported, NOT_RUN if table.empty else f"{len(table)} of 16 trained", NOT_RUN)
    ranked = table.sort_values("imputation")
    texts = [f"alpha {row.alpha:g}, hint {row.hint:g}: {number(row.imputation, 4)}" for row in ranked.itertuples()]
    result = f"{UNTESTABLE} (each setting was trained once, for 2 epochs instead of 100: no interval)"
    return Claim(name, reported, f"best {texts[0]}; next {texts[1]}", result)


# ── geometry ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _debiasing(results: Results) -> Claim:
    name, reported = "Debiasing brings MoRF and LeRF of retraining closer", ".57 → .68"
    table = results.table("debiased")
    reason = below_floor("cifar10", whole_accuracies(results, "cifar10", [RETRAIN]))
    if reason:
        return Claim(name, reported, NOT_RUN if table.empty else "", f"{UNTESTABLE} ({reason})")
    if table.empty:
        return Claim(name, reported, NOT_RUN, NOT_RUN)
    if trainings(results, "cifar10", [RETRAIN, NO_RETRAIN]) > 1:  # γ is measured on the maps without retraining
        return Claim(name, reported, NOT_RUN, f"{NOT_RUN} ({TWO_TRAININGS})")
    changes = {int(row.seed): Change(row.change, row.low, row.high) for row in table.itertuples()}
    texts = [
        f"seed {row.seed}: {number(row.before)} → {number(row.after)} ({row.methods} methods)"
        for row in table.itertuples()
    ]
    result = over_seeds([outcome(change, 1, is_similar(change.value, 0.11)) for change in changes.values()])
    return Claim(name, reported, "kept, " + "; ".join(texts), in_words(result, changes))


TOY = {
    "gauss second in MoRF and next to worst in LeRF": "uninformative gauss is second in MoRF, next to worst in LeRF",
    "true first and worst last in both": "both orders find the true ordering best and the inverted one worst",
    "rand, semi and gauss reversed from MoRF to LeRF": "rand, semi and gauss rank in LeRF as in MoRF, reversed",
}
"""sentence of `toy_worlds` to the paper's"""


def toy_claims(results: Results) -> list[Claim]:
    table, found = results.table("toy-shares"), []
    for sentence, text in TOY.items():
        rows = where(table, sentence=sentence)
        name = f"Toy worlds, as a rule: {text}"
        if rows.empty:
            found.append(Claim(name, "in its world", NOT_RUN, NOT_RUN))
            continue
        found.append(Claim(name, "in its world", _share(rows.iloc[0]), _in_most_worlds(rows.iloc[0])))
    return found


def _share(row: pd.Series) -> str:
    interval = f"[{percent(row['low'], 0)}, {percent(row['high'], 0)}]"
    return f"in {row['holds']} of {row['worlds']} random worlds: {percent(row['share'], 0)} % {interval}"


def _in_most_worlds(row: pd.Series) -> str:
    """The paper has one world, so that a sentence holds in some is known: is it typical?"""
    above = Change(row["share"] - 0.5, row["low"] - 0.5, row["high"] - 0.5)
    result = outcome(above, 1)
    words = {SHOWN: "in most worlds", NOT_SHOWN: "neither in most worlds nor in few"}.get(
        result, "in a minority of worlds"
    )
    return f"{result} ({words})"
