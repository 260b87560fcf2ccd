"""docs/reproduction.md matches the committed results, and these carry the ids that the plans give them."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest

from reproduction.claims import claims
from reproduction.document import DOCUMENT, document
from reproduction.ids import (
    audit_ids,
    detection_measure,
    geometry_measure,
    mask_measure,
    point_id,
    point_ids,
    with_root,
)
from reproduction.tables import AUDITED, EXPERIMENTS, HERE, METHODS, PLANS, SHARES, agreement, only, ours, where
from roadworthy import statistics
from roadworthy.core.results import Point
from roadworthy.experiments.build import Fingerprints, build_data, design_of
from roadworthy.experiments.items import Item, fingerprint_blocks, sequential_rows
from roadworthy.experiments.plans import read_plan

RUNS = [(experiment, run) for experiment, runs in EXPERIMENTS.items() for run in runs]
POINT = ["method", "order", "imputer", "evaluator", "fraction", "seed"]


def facts():
    return json.loads((HERE / "results" / "facts.json").read_text(encoding="utf-8"))


def committed_fingerprints(experiment, run):
    return Fingerprints.from_json(facts()[experiment]["runs"][run]["fingerprints"])


@cache
def design(experiment, run):
    """From the plan and the fingerprints alone."""
    return design_of(read_plan(PLANS / f"{run}.toml"), committed_fingerprints(experiment, run))


@cache
def ids(experiment):
    return {point: id for run in EXPERIMENTS[experiment] for point, id in point_ids(design(experiment, run)).items()}


def test_page_matches_the_committed_results():
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run python -m reproduction.document"


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_point_of_the_plans_is_in_the_table_with_its_id(experiment):
    table = where(ours("points"), experiment=experiment)
    points = [Point(*values) for values in table[POINT].itertuples(index=False, name=None)]
    assert dict(zip(points, table["item"], strict=True)) == ids(experiment)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_debiased_point_has_its_id(experiment):
    table = where(ours("debiased"), experiment=experiment)
    for row in table.itertuples():
        assert ids(experiment)[Point(row.method, row.order, "linear", row.evaluator, row.fraction, 0)] == row.item


@pytest.mark.parametrize("experiment", AUDITED)
def test_every_row_of_the_audit_has_the_id_of_its_item(experiment):
    by_measure = audit_ids(design(experiment, EXPERIMENTS[experiment][0]), SHARES)
    measure_of = {
        "masks": lambda row: mask_measure(row.method, row.order, row.fraction),
        "detection": lambda row: detection_measure(row.imputer, row.masks),
        "geometry": lambda row: geometry_measure(row.method),
    }
    for name in AUDITED[experiment]:
        table = where(ours(name), experiment=experiment)
        assert len(table)
        assert [by_measure[measure_of[name](row)] for row in table.itertuples()] == list(table["item"])


@pytest.mark.parametrize(("experiment", "run"), RUNS)
def test_committed_fingerprints_are_those_of_the_data(experiment, run, real_data):
    plan, prints = with_root(read_plan(PLANS / f"{run}.toml"), real_data), committed_fingerprints(experiment, run)
    for key, images, blocks in (("data", prints.images, prints.data), ("train", prints.train_images, prints.train)):
        if images:
            data = build_data(plan, key)
            assert len(data) == images
            assert fingerprint_blocks(data, sequential_rows(images, prints.block_size)) == list(blocks)


def test_a_point_in_several_blocks_has_an_id_of_its_own():
    first, second = (Item("predictions", {"block": index}, {}) for index in (0, 1))
    assert point_id([first]) == first.id
    assert len({first.id, second.id, point_id([first, second]), point_id([second, first])}) == 4


def test_agreement_follows_from_the_accuracies_of_the_points():
    table = ours("points")
    table = table[table["method"].isin(METHODS) & (table["fraction"] > 0)]
    for row in ours("agreement").itertuples():
        a, b = (
            merits(
                table, row.experiment, *(getattr(row, f"{field}_{side}") for field in ("evaluator", "order", "imputer"))
            )
            for side in "ab"
        )
        methods = a.index.intersection(b.index)
        a, b = a.loc[methods], b.loc[methods]
        correlations = []
        for fraction in a.columns:
            other = round(1 - fraction, 9) if row.pairing == "kept" else fraction
            if other in b.columns and np.ptp(a[fraction]) > 0 and np.ptp(b[other]) > 0:
                correlations.append(statistics.spearman(a[fraction].to_numpy(), b[other].to_numpy()))
        assert len(correlations) == row.fractions
        assert row.spearman == pytest.approx(np.mean(correlations), abs=1e-5)


def merits(table: pd.DataFrame, experiment, evaluator, order, imputer):
    """methods × fractions, higher = better"""
    rows = where(table, experiment=experiment, evaluator=evaluator, order=order, imputer=imputer)
    # Six digits are exact for an accuracy on 1,000 images.
    accuracies = rows.pivot_table(index="method", columns="fraction", values="accuracy").round(6)
    return accuracies if order == "lerf" else -accuracies


def test_main_claims_reproduce():
    orders = [(("no-retrain", "morf", imputer), ("no-retrain", "lerf", imputer)) for imputer in ("fixed", "linear")]
    fixed, linear = (agreement("cifar10", *pair, "kept")["spearman"] for pair in orders)
    assert linear - fixed >= 0.4
    for order in ("morf", "lerf"):
        pairs = [(("retrain", order, imputer), ("no-retrain", order, imputer)) for imputer in ("fixed", "linear")]
        fixed, linear = (agreement("cifar10", *pair)["spearman"] for pair in pairs)
        assert linear > fixed
    assert only(ours("cost"), imputer="linear")["road"] < 0.02 * only(ours("cost"), imputer="fixed")["roar"]


def test_every_claim_has_an_outcome_unless_points_are_missing():
    missing = any(content["missing"] for content in facts().values())
    for claim in claims():
        assert claim.outcome.startswith(("holds", "does not hold")) or (missing and "–" in claim.here)
