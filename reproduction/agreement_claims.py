"""The paper's main claims: with linear imputation two settings agree better (or worse) than with fixed imputation."""

from collections.abc import Mapping
from typing import NamedTuple

from reproduction.derive import BEFORE_AFTER, NO_RETRAIN, RETRAIN, WARM, Side, pairings
from reproduction.outcomes import (
    UNTESTABLE,
    Change,
    below_floor,
    in_words,
    is_similar,
    outcome,
    over_seeds,
)
from reproduction.stages import MAIN
from reproduction.tables import NOT_RUN, ORDERS, TITLES, Results, in_paper, number, pair_rows, spread, where

TWO_TRAININGS = "what is there compares two trainings of the explained model"


class Claim(NamedTuple):
    name: str
    paper: str
    here: str
    outcome: str
    """one of OUTCOMES, and in parentheses the changes with their intervals or the reason"""


def agreement_claims(results: Results) -> list[Claim]:
    claims = []
    for data in MAIN:
        for evaluator in (NO_RETRAIN, RETRAIN, WARM):
            claims.append(_claim(results, data, (evaluator, "morf"), (evaluator, "lerf")))
        for evaluator in (RETRAIN, WARM):
            claims += [_claim(results, data, (evaluator, order), (NO_RETRAIN, order)) for order in ORDERS]
    return claims


def _claim(results: Results, data: str, a: Side, b: Side) -> Claim:
    """Of a warm start, the paper's number is that of retraining."""
    sides = [tuple(RETRAIN if name == WARM else name for name in side) for side in (a, b)]
    before, after = (in_paper(data, (*sides[0], imputer), (*sides[1], imputer)) for imputer in BEFORE_AFTER)  # type: ignore[arg-type]
    if before is None or after is None:
        raise LookupError(f"the paper's table of {data} has no {a} with {b}")
    better = "better" if after > before else "less"
    name = f"{TITLES[data]}, {_subject(a, b)} agree {better} with linear than with fixed imputation"
    reported = f"{number(before)} → {number(after)}" + (" (retrained)" if WARM in (a[0], b[0]) else "")
    return Claim(name, reported, here(results, data, a, b) or NOT_RUN, result_of(results, data, a, b, after - before))


def _subject(a: Side, b: Side) -> str:
    if a[0] == b[0]:
        return f"{a[0]}: MoRF and LeRF"
    return f"{ORDERS[a[1]]}: {a[0]} and {b[0]}"


def here(results: Results, data: str, a: Side, b: Side) -> str:
    """Before and after, per seed and pairing, as far as it was measured."""
    texts = []
    for pairing in pairings(a, b):
        ends = [
            pair_rows(results.table("agreement"), (*a, imputer), (*b, imputer), data=data, pairing=pairing)
            for imputer in BEFORE_AFTER
        ]
        for seed in sorted(set(ends[0].get("seed", ())) & set(ends[1].get("seed", ()))):
            rows = [where(part, seed=seed).iloc[0] for part in ends]
            text = " → ".join(spread(row["spearman"], row["low"], row["high"]) for row in rows)
            label = [pairing] * (a[1] != b[1]) + [f"seed {seed}"] * (a[0] != NO_RETRAIN)
            texts.append(f"{', '.join(label)}: {text}" if label else text)
    return "; ".join(texts)


def result_of(results: Results, data: str, a: Side, b: Side, claimed: float) -> str:
    """By the interval of the change, per seed; shown only if every seed agrees."""
    evaluators = list(dict.fromkeys((a[0], b[0])))
    if data == "food101" and RETRAIN in evaluators:
        return f"{UNTESTABLE} (not run: training ten classes from scratch for every point is beyond the budget)"
    seeds = planned_seeds(results, data, a[0])
    reason = below_floor(data, whole_accuracies(results, data, evaluators))
    if reason:
        return f"{UNTESTABLE} ({reason})"
    changes = changes_by_seed(results, data, a, b)
    if trainings(results, data, evaluators) > 1:
        return f"{NOT_RUN} ({TWO_TRAININGS})"
    if not seeds or len(changes) < len(seeds):
        return _unfinished(results, data, a[0], changes, seeds)
    outcomes = []
    for seed, change in changes.items():
        after = where(pair_rows(results.table("agreement"), (*a, "linear"), (*b, "linear"), data=data), seed=seed)
        low = where(after, pairing=pairings(a, b)[0])["low"].iloc[0]
        agrees = claimed < 0 or low > 0  # disagreeing less is not yet agreement
        outcomes.append(outcome(change, claimed, is_similar(change.value, claimed) and agrees))
    return in_words(over_seeds(outcomes), changes)


def trainings(results: Results, data: str, evaluators: list[str]) -> int:
    """How many trainings of the explained model the points of these evaluators explain: one, unless some are older."""
    points, facts = results.points(*MAIN[data]), results.facts()
    plans = {str(plan) for name in evaluators for plan in where(points, evaluator=name)["plan"]}
    return len({facts[plan]["fingerprints"]["model"] for plan in plans})


def changes_by_seed(results: Results, data: str, a: Side, b: Side) -> dict[int, Change]:
    names = dict(zip(("evaluator_a", "order_a", "evaluator_b", "order_b"), (*a, *b), strict=True))
    rows = where(results.table("changes"), data=data, pairing=pairings(a, b)[0], **names)
    return {int(row.seed): Change(row.change, row.low, row.high) for row in rows.itertuples()}


def planned_seeds(results: Results, data: str, evaluator: str) -> list[int]:
    """Those of the plan, also if they were not run yet."""
    counts = _counts(results, data, evaluator)
    return [0] if evaluator == NO_RETRAIN and counts else sorted(map(int, counts))


def whole_accuracies(results: Results, data: str, evaluators: list[str]) -> dict[str, float]:
    """On images from which nothing was removed; of several trainings the lowest."""
    rows = where(results.points(*MAIN[data]), fraction=0.0)
    found = {name: where(rows, evaluator=name)["accuracy"] for name in evaluators}
    return {name: float(values.min()) for name, values in found.items() if len(values)}


def _counts(results: Results, data: str, evaluator: str) -> dict[str, list[int]]:
    """By seed, how many points are done and how many there are."""
    points = results.points(*MAIN[data])
    plans = set(where(points, evaluator=evaluator)["plan"])
    facts = results.facts()
    return next((facts[plan]["points"] for plan in MAIN[data] if plan in plans), {})


def _unfinished(results: Results, data: str, evaluator: str, changes: Mapping[int, Change], seeds: list[int]) -> str:
    if not seeds:
        return NOT_RUN
    counts = _counts(results, data, evaluator)
    done, total = (sum(column) for column in zip(*counts.values(), strict=True))
    text = f"{done} of {total} points"
    if changes:
        text += f", {len(changes)} of {len(seeds)} seeds: {in_words('', changes).strip()[1:-1]}"
    return f"{NOT_RUN} ({text})"
