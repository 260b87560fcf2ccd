"""The four questions that every output answers beside the conclusion, in a few words each."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from roadworthy.core.results import Copy
from roadworthy.experiments.self_test.result import SelfTest
from roadworthy.experiments.wording import at_least, at_most, bounds, listed, settling, settling_pairs
from roadworthy.report.findings import Card
from roadworthy.report.ranks import PAIRINGS
from roadworthy.statistics import Standing

_FEWEST_RANKED = 4
"""methods: the rank correlation of fewer is −1, 1 or little else"""
_NO_LEAK = "no leak found"


def cards(
    standing: Standing,
    agreement: pd.DataFrame | None,
    audit: Mapping[str, pd.DataFrame],
    confidence: float,
    near_chance: bool = False,
    copies: Mapping[str, Copy] | None = None,
    self_test: SelfTest | None = None,
) -> tuple[Card, ...]:
    """Of the setting of the conclusion.

    `agreement`: with intervals. `audit`: tables by name, empty if none was made. `near_chance`: the model's accuracy is
    not clearly above chance. `copies`: controls made from a method's maps. `self_test`: what the benchmark can see.
    """
    benchmark = _benchmark(standing, agreement, audit, near_chance, copies or {})
    return (
        _best(standing, confidence),
        _controls(standing),
        _first_place(standing, confidence),
        benchmark if self_test is None or near_chance else _tested(benchmark, self_test),
    )


def _tested(benchmark: Card, self_test: SelfTest) -> Card:
    """With the result of the self-test as the answer, and what was the answer as a detail."""
    doubtful: Literal["good", "bad", "open"] = "good" if benchmark.tone in ("good", "plain") else "open"
    tones: dict[str, Literal["good", "bad", "open"]] = {"passed": doubtful, "not seen": "open", "failed": "bad"}
    tone = "bad" if benchmark.tone == "bad" else tones[self_test.state]
    detail = "; ".join(part for part in (benchmark.answer, benchmark.detail) if part)
    return Card(benchmark.question, f"self-test {self_test.state}", f"{self_test.summary}; {detail}", tone)


def _best(standing: Standing, confidence: float) -> Card:
    question = "Best score"
    if not standing.methods:
        return Card(question, "none", "Only controls were evaluated in all orders.", "open")
    value, low, high = (
        float(standing.rows[f"{standing.score}{end}"].loc[standing.best]) for end in ("", "_low", "_high")
    )
    answer = f"{standing.best} {_signless(value)}"
    if np.isnan(low):
        return Card(question, answer, "one image: no interval", "plain")
    return Card(question, answer, f"{100 * confidence:g} % interval {_signless(low)} to {_signless(high)}", "plain")


def _controls(standing: Standing) -> Card:
    question = "Does it beat the blind controls?"
    if not standing.controls or not standing.methods:
        return Card(question, "not tested", "No control was evaluated.", "open")
    best = standing.best
    beaten = [name for name in standing.controls if standing.clear(best, name)]
    behind = [name for name in standing.controls if standing.clear(name, best)]
    still_open = [name for name in standing.controls if name not in (*beaten, *behind)]
    parts = [f"{mark} {name}" for mark, names in (("✓", beaten), ("?", still_open), ("✗", behind)) for name in names]
    tone: Literal["good", "bad", "open"] = "bad" if behind else "open" if still_open else "good"
    return Card(question, "  ".join(parts), _others_and_controls(standing), tone)


def _others_and_controls(standing: Standing) -> str:
    """How many methods clearly beat every control, and which clearly beat none."""
    methods, controls = standing.methods, standing.controls
    if len(methods) == 1:
        return "✓ clearly better, ? not clear, ✗ clearly worse"
    all_beaten = sum(not standing.unbeaten_controls(name) for name in methods)
    text = f"{all_beaten} of {len(methods)} methods clearly beat {'all' if len(controls) > 1 else 'it'}"
    none_beaten = [name for name in methods if len(standing.unbeaten_controls(name)) == len(controls)]
    return f"{text}; {listed(none_beaten)} {'beats' if len(none_beaten) == 1 else 'beat'} none" if none_beaten else text


def _first_place(standing: Standing, confidence: float) -> Card:
    question = "How sure is first place?"
    others = standing.methods[1:]
    if not others:
        return Card(question, "no other method", "There is nothing to rank it against.", "plain")
    rivals = standing.leaders[1:]
    if not rivals:
        nearest = min(others, key=lambda name: standing.difference(standing.best, name).low)
        lead = standing.difference(standing.best, nearest).low
        answer = f"clearly first of {len(standing.methods)} methods"
        return Card(question, answer, f"{at_least(lead)} ahead of {nearest}", "good")
    pairs = [standing.difference(a, b) for row, a in enumerate(standing.leaders) for b in standing.leaders[row + 1 :]]
    if all(pair.tie for pair in pairs):
        return Card(question, f"tied with {listed(rivals, 2)}", at_most(max(pair.most for pair in pairs)), "plain")
    detail = settling(standing, settling_pairs(standing, rivals), confidence) or "More images are needed."
    return Card(question, "not clear", f"{listed(rivals)} may be first too. {detail}", "open")


def _benchmark(
    standing: Standing,
    agreement: pd.DataFrame | None,
    audit: Mapping[str, pd.DataFrame],
    near_chance: bool,
    copies: Mapping[str, Copy],
) -> Card:
    """MoRF and LeRF of the same setting should rank alike; what a mask reveals should not give away the class."""
    question = "Can the benchmark be trusted?"
    if near_chance:
        return Card(question, "no", "The model's accuracy is not clearly above chance.", "bad")
    leak = _leak(standing, audit)
    rows = _between_orders(agreement, standing)
    if not rows:
        return Card(question, "orders not compared", leak, "open")
    if len(standing.methods) < _FEWEST_RANKED:
        return Card(question, "too few methods to say", f"Agreement needs {_FEWEST_RANKED} of them; {leak}", "plain")
    first, *others = rows
    smooth = [method for method, copy in _blurred(copies) if copy in standing.copies and standing.clear(copy, method)]
    doubts = [f"{_signed(row.spearman)} {PAIRINGS[row.pairing]}" for row in others]
    doubts += [f"blurring {listed(smooth)} raises the score"] if smooth else []
    agreeing = all(row.low > 0 for row in rows)
    tone: Literal["good", "bad", "open"] = "good" if agreeing and not smooth and leak == _NO_LEAK else "open"
    answer = f"MoRF ~ LeRF {_signed(first.spearman)} {bounds(first.low, first.high, 2)}"
    detail = "; ".join([f"agreement {PAIRINGS[first.pairing]}", *doubts, leak])
    return Card(question, answer, detail, "bad" if first.high < 0 or leak.startswith("leak found") else tone)


def _between_orders(agreement: pd.DataFrame | None, standing: Standing) -> list[Any]:
    """MoRF against LeRF in the setting of the conclusion: a row per pairing, the paper's first."""
    if agreement is None or agreement.empty:
        return []
    key = standing.key
    own = [agreement[f"{field}_{side}"] == getattr(key, field) for field in key._fields for side in "ab"]
    table = agreement[np.logical_and.reduce(own) & (agreement["order_a"] != agreement["order_b"])]
    # `kept` sorts before `removed`.
    return list(table[table["spearman"].notna()].sort_values("pairing", kind="stable").itertuples())


def _blurred(copies: Mapping[str, Copy]) -> list[tuple[str, str]]:
    """Methods and their blurred copies."""
    return [(copy.of, name) for name, copy in copies.items() if copy.how == "blurred"]


def _leak(standing: Standing, audit: Mapping[str, pd.DataFrame]) -> str:
    table = audit.get("conclusions")
    if table is None:
        return "leakage not audited"
    rows = table[(table["imputer"] == standing.key.imputer) & table["method"].isin(standing.methods)]
    if rows.empty:
        return "leakage not audited"
    found = rows.loc[rows["found"].astype(bool), "method"].nunique()
    if not found:
        return _NO_LEAK
    return f"leak found in {found} of {rows['method'].nunique()} methods"


def _signless(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
