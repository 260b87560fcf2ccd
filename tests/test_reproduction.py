"""docs/reproduction.md says what the committed results say, and these are what the plans' trials gave."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

from reproduction.claims import claims
from reproduction.collect import AUDITED, EXPERIMENTS, METHODS, SHARES
from reproduction.document import DOCUMENT, document
from reproduction.tables import HERE, agreement, only, ours
from roadworthy import statistics
from roadworthy.experiments.auditing import Settings, audit_items
from roadworthy.experiments.items import Fingerprints, trial_items
from roadworthy.experiments.plans.reading import read_plan

STORES = [(name, store) for name, stores in EXPERIMENTS.items() for store in stores]


def facts():
    return json.loads((HERE / "results" / "facts.json").read_text(encoding="utf-8"))


def prints(experiment, store):
    return Fingerprints(**facts()[experiment]["stores"][store]["fingerprints"])


@cache
def trials(store, experiment):
    """point to trial id, from the plan alone and the fingerprints of what it read"""
    plan = read_plan(HERE.parent / "plans" / f"{store}.toml")
    return {point: item.id for point, item in trial_items(plan, prints(experiment, store))}


def test_the_page_is_what_the_committed_results_give():
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run python -m reproduction.document"


def test_every_dot_carries_the_id_that_its_plan_gives_it():
    table = ours("trials")
    points = table[["method", "order", "imputer", "evaluator", "fraction", "seed"]].itertuples(index=False, name=None)
    for experiment, trial, point in zip(table["experiment"], table["trial"], points, strict=True):
        known = {key: id for store in EXPERIMENTS[experiment] for key, id in trials(store, experiment).items()}
        assert known[point] == trial


@pytest.mark.parametrize("experiment", AUDITED)
def test_every_row_of_the_audit_carries_the_id_of_its_item(experiment):
    store = EXPERIMENTS[experiment][0]
    plan = read_plan(HERE.parent / "plans" / f"{store}.toml")
    items = audit_items(plan, prints(experiment, store), Settings(SHARES))
    ids = {item.id for item in items.values()}
    for name in AUDITED[experiment]:
        table = ours(name)
        found = set(table.loc[table["experiment"] == experiment, "item"])
        assert found
        assert found <= ids


def test_agreements_follow_from_the_accuracies_of_the_trials():
    table = ours("trials")
    table = table[table["method"].isin(METHODS) & (table["fraction"] > 0)]
    for row in ours("agreement").itertuples():
        found = []
        one, other = (
            accuracies(
                table, row.experiment, *(getattr(row, f"{field}_{side}") for field in ("evaluator", "order", "imputer"))
            )
            for side in "ab"
        )
        both = one.index.intersection(other.index)
        one, other = one.loc[both], other.loc[both]
        for fraction in one.columns:
            there = round(1 - fraction, 9) if row.pairing == "kept" else fraction
            if there in other.columns and np.ptp(one[fraction]) > 0 and np.ptp(other[there]) > 0:
                found.append(statistics.spearman(one[fraction].to_numpy(), other[there].to_numpy()))
        assert len(found) == row.fractions
        assert row.spearman == pytest.approx(np.mean(found), abs=1e-5)


def accuracies(table: pd.DataFrame, experiment, evaluator, order, imputer):
    """methods × shares, higher = better"""
    wanted = (table["experiment"] == experiment) & (table["evaluator"] == evaluator)
    here = table[wanted & (table["order"] == order) & (table["imputer"] == imputer)]
    # 1,000 images: six digits of an accuracy are all of it.
    square = here.pivot_table(index="method", columns="fraction", values="accuracy").round(6)
    return square if order == "lerf" else -square


def test_the_bars_of_a_reproduction_are_met():
    orders = [(("no-retrain", "morf", fill), ("no-retrain", "lerf", fill)) for fill in ("fixed", "linear")]
    fixed, linear = (agreement("cifar10", *pair, "kept")["spearman"] for pair in orders)
    assert linear - fixed >= 0.4
    for order in ("morf", "lerf"):
        evaluators = [(("retrain", order, fill), ("no-retrain", order, fill)) for fill in ("fixed", "linear")]
        fixed, linear = (agreement("cifar10", *pair)["spearman"] for pair in evaluators)
        assert linear > fixed
    assert only(ours("cost"), imputer="linear")["road"] < 0.02 * only(ours("cost"), imputer="fixed")["roar"]


def test_every_claim_has_a_verdict_unless_dots_are_missing():
    missing = any(one["missing"] for one in facts().values())
    for claim in claims():
        assert claim.prediction.startswith(("holds", "does not hold")) or (missing and "–" in claim.here)
