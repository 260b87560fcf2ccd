"""docs/reproduction.md matches the committed results, and these carry the ids that the plans give them."""

import json
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from reproduction import gain_masks, mask_curve, stopping
from reproduction.agreement_claims import agreement_claims, result_of, trainings
from reproduction.claims import claims, kind
from reproduction.derive import TABLES
from reproduction.document import DOCUMENT, document
from reproduction.harvest import OF_TABLE
from reproduction.ids import audit_ids, point_id, point_ids, points_id, with_root
from reproduction.kept import bits_path, read_bits
from reproduction.later import later_tables
from reproduction.outcomes import NOT_SHOWN, OUTCOMES, SHOWN, UNTESTABLE, Change, in_words, over_seeds
from reproduction.run import commands, layout
from reproduction.stages import AUDITED, MAIN, QUESTIONS, SHARES, STAGES
from reproduction.tables import HERE, METHODS, NOT_RUN, PLANS, POINT, Results, only, where
from reproduction.weights import rounded
from roadworthy.core.results import Point
from roadworthy.experiments.build import build_data
from roadworthy.experiments.fingerprints import Fingerprints
from roadworthy.experiments.items import Item, fingerprint_blocks, sequential_rows
from roadworthy.experiments.plan_design import design_of
from roadworthy.experiments.plans import read_plan

RESULTS = Results()
RUN = sorted(RESULTS.facts())


def fingerprints(plan):
    return Fingerprints.from_json(RESULTS.facts()[plan]["fingerprints"])


@cache
def design(plan):
    """From the plan and the fingerprints alone."""
    return design_of(read_plan(PLANS / f"{plan}.toml"), fingerprints(plan))


def test_page_matches_the_committed_results():
    assert DOCUMENT.read_text(encoding="utf-8") == document(RESULTS), "run python -m reproduction.document"


def test_every_plan_of_the_page_exists():
    assert {stage.plan for stage in STAGES} >= {plan for plans in MAIN.values() for plan in plans}
    for stage in STAGES:
        assert (PLANS / f"{stage.plan}.toml").exists()


@pytest.mark.parametrize("plan", RUN)
def test_every_committed_point_has_the_id_that_its_plan_gives_it(plan):
    expected, rows = point_ids(design(plan)), RESULTS.points(plan)
    assert len(rows)
    for row in rows.itertuples():
        assert expected[Point(*(getattr(row, name) for name in POINT))] == row.item


@pytest.mark.parametrize("plan", RUN)
def test_the_facts_count_the_committed_points(plan):
    rows, counts = RESULTS.points(plan), RESULTS.facts()[plan]["points"]
    for seed, (done, total) in counts.items():
        assert where(rows, seed=int(seed))["item"].nunique() == done <= total


@pytest.mark.parametrize("plan", RUN)
def test_committed_accuracies_are_those_of_the_committed_images(plan):
    bits, rows = read_bits(bits_path(RESULTS, plan)), RESULTS.points(plan)
    rows = rows[rows["item"].isin(bits)]
    assert set(design(plan).methods) >= set(rows[rows["fraction"] > 0]["method"])
    for row in rows.drop_duplicates("item").itertuples():
        assert np.unpackbits(bits[row.item], count=row.images).mean() == pytest.approx(row.accuracy, abs=1e-5)


@pytest.mark.parametrize("table", [name for name in QUESTIONS if RESULTS.has(name)])
def test_every_row_of_the_audit_has_the_id_of_its_item(table):
    by_measure = audit_ids(design(AUDITED), SHARES)
    rows = RESULTS.table(table).to_dict("records")
    assert [by_measure[OF_TABLE[table](row)] for row in rows] == [row["item"] for row in rows]


@pytest.mark.parametrize("plan", RUN)
def test_committed_fingerprints_are_those_of_the_data(plan, real_data):
    placed, prints = with_root(read_plan(PLANS / f"{plan}.toml"), real_data), fingerprints(plan)
    for key, images, blocks in (("data", prints.images, prints.data), ("train", prints.train_images, prints.train)):
        if images:
            data = build_data(placed, key)
            assert len(data) == images
            assert fingerprint_blocks(data, sequential_rows(images, prints.block_size)) == list(blocks)


def test_a_point_in_several_blocks_has_an_id_of_its_own():
    first, second = (Item("predictions", {"block": index}, {}) for index in (0, 1))
    assert point_id([first]) == first.id
    assert len({first.id, second.id, point_id([first, second]), point_id([second, first])}) == 4


@pytest.mark.parametrize("name", TABLES)
def test_agreement_changes_and_scores_follow_from_the_committed_points(name):
    found, table = TABLES[name](RESULTS), RESULTS.table(name)
    pd.testing.assert_frame_equal(found, table, atol=0.005, check_dtype=False)  # else: python -m reproduction.derive
    assert list(found["points"]) == list(table["points"])


def test_early_stopping_is_replayed_by_the_rules_of_compare(monkeypatch):
    """The first random order of each rule, from the committed points; the whole table takes half a minute."""
    monkeypatch.setattr(stopping, "ORDERINGS", 1)
    table = RESULTS.table("stopping")
    first = table[table["ordering"] == 0].reset_index(drop=True)
    pd.testing.assert_frame_equal(stopping.stopping_table(RESULTS), first, check_dtype=False)
    assert (table["best"].fillna(0) <= table["first_three"].fillna(np.inf)).all()
    assert table.loc[table["until"] == "best", ["first_three", "all"]].isna().all(axis=None)


def test_places_are_settled_from_the_top():
    """Four methods, best first: the first two are separated from all that follow, the last two are not decided."""
    above = np.triu(np.ones((4, 4), bool), k=1)
    above[2, 3] = False
    tied, means = np.zeros((4, 4), bool), np.array([0.4, 0.3, 0.2, 0.1])
    assert [stopping.settled(above, tied, means, leading) for leading in (1, 2, 3)] == [True, True, False]
    tied[2, 3] = tied[3, 2] = True
    assert stopping.settled(above, tied, means, 3)


def test_methods_far_apart_are_decided_at_the_first_look_and_equal_ones_never():
    """Constant scores .5 apart; then coin flips of ±.5, whose means are equal: a tie would need more images."""
    names = tuple("abcd")
    values = np.repeat(np.array([0.9, 0.4, -0.1, -0.6])[:, None], 2000, axis=1)
    rule = stopping.rule_of(names, 2000, "ranked", finite=False)
    counts = stopping.looks(2000)
    assert (counts[0], counts[-1]) == (stopping.FIRST, 2000)
    needed, wrong = stopping.images_until(names, values, rule, counts)
    assert (needed, wrong) == ([counts[0]] * 3, 0)
    draws = np.random.default_rng(0)
    noise = np.where(draws.random((4, 2000)) < 0.5, 0.5, -0.5)
    needed, _ = stopping.images_until(names, noise, rule, counts)
    assert np.isnan(needed).all()


def test_what_later_papers_ask_follows_from_the_committed_points():
    for name, found in later_tables(RESULTS).items():
        table = RESULTS.table(name)
        pd.testing.assert_frame_equal(found, table, atol=0.005, check_dtype=False)
        assert list(found["points"]) == list(table["points"])


def test_the_id_of_a_change_is_that_of_its_points():
    for row in RESULTS.table("changes").itertuples():
        points = RESULTS.points(*MAIN[row.data])
        points = points[points["method"].isin(METHODS) & points["imputer"].isin(["fixed", "linear"])]
        sides = {(row.evaluator_a, row.order_a), (row.evaluator_b, row.order_b)}
        used = [side in sides for side in zip(points["evaluator"], points["order"], strict=True)]
        seed = [0 if evaluator == "no-retrain" else row.seed for evaluator in points["evaluator"]]
        assert points_id(points["item"][np.array(used) & (points["seed"] == seed)]) == row.points
        assert row.low <= row.change <= row.high


@pytest.mark.parametrize(
    ("name", "module"),
    [("gain-masks", gain_masks), ("gain-masks-search", gain_masks), ("mask-curve", mask_curve)],
)
def test_rows_without_a_plan_have_the_ids_of_their_settings(name, module):
    table = RESULTS.table(name)
    if len(table):
        assert list(module.with_ids(table)["item"]) == list(table["item"])


def test_ids_of_settings_differ_where_the_settings_do():
    rows = [(name, 0, 0, 0, 0, 0, 0, 0) for name in (*gain_masks.PLAIN, "GAIN, default", "GAIN, long")]
    table = pd.DataFrame(rows, columns=gain_masks.COLUMNS)
    ids = [gain_masks.with_ids(table, gain_masks.SIZES[size])["item"] for size in ("full", "tiny")]
    assert len({*ids[0], *ids[1]}) == 10


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_claim_has_one_of_the_outcomes_and_a_name_of_its_own():
    found = claims(RESULTS)
    assert {kind(claim) for claim in found} <= set(OUTCOMES)
    assert len({claim.name for claim in found}) == len(found) == 24


def test_without_results_every_claim_of_a_change_was_not_run_yet(tmp_path):
    found = {kind(claim) for claim in agreement_claims(Results(tmp_path)) if "Food-101" not in claim.name}
    assert found == {NOT_RUN}
    assert document(Results(tmp_path)).startswith("# The paper's tables")


@pytest.mark.parametrize(("seeds", "expected"), [((0,), NOT_RUN), ((0, 1), SHOWN)])
def test_a_claim_is_shown_only_once_every_seed_was_run(tmp_path, monkeypatch, seeds, expected):
    results = Results(tmp_path)
    a, b = ("retrain", "morf"), ("retrain", "lerf")
    points = [("cifar10-tables-retrain", "id", "IG", "morf", "fixed", "retrain", 0.0, seed, 0.7) for seed in seeds]
    results.write("points", pd.DataFrame(points, columns=["plan", "item", *POINT, "accuracy"]))
    changes = [("cifar10", seed, *a, *b, "kept", 0.6, 0.5, 0.7) for seed in seeds]
    names = ["data", "seed", "evaluator_a", "order_a", "evaluator_b", "order_b", "pairing", "change", "low", "high"]
    results.write("changes", pd.DataFrame(changes, columns=names))
    settings = [f"{field}_{side}" for side in "ab" for field in ("evaluator", "order", "imputer")]
    rows = [("cifar10", seed, *a, "linear", *b, "linear", "kept", 0.6, 0.5) for seed in seeds]
    results.write("agreement", pd.DataFrame(rows, columns=["data", "seed", *settings, "pairing", "spearman", "low"]))
    counts = {str(seed): [9 if seed in seeds else 1, 9] for seed in (0, 1)}
    facts = {"cifar10-tables-retrain": {"points": counts, "fingerprints": {"model": "one"}}}
    monkeypatch.setattr(Results, "facts", lambda self: facts)
    text = result_of(results, "cifar10", a, b, 0.62)
    assert text.startswith(expected)
    assert "seed 1" in text if expected == SHOWN else "1 of 2 seeds" in text


@pytest.mark.parametrize(("explained", "expected"), [("one", 1), ("other", 2)])
def test_no_claim_is_decided_by_points_that_explain_two_trainings(tmp_path, monkeypatch, explained, expected):
    results, plans = Results(tmp_path), {"cifar10-tables": "no-retrain", "cifar10-tables-retrain": "retrain"}
    points = [(plan, "id", "IG", "morf", "fixed", evaluator, 0.0, 0, 0.7) for plan, evaluator in plans.items()]
    results.write("points", pd.DataFrame(points, columns=["plan", "item", *POINT, "accuracy"]))
    models = dict(zip(plans, ("one", explained), strict=True))
    facts = {plan: {"points": {"0": [1, 9]}, "fingerprints": {"model": model}} for plan, model in models.items()}
    monkeypatch.setattr(Results, "facts", lambda self: facts)
    assert trainings(results, "cifar10", ["retrain", "no-retrain"]) == expected
    assert trainings(results, "cifar10", ["retrain"]) == 1
    for a, b in ((("retrain", "morf"), ("no-retrain", "morf")), (("retrain", "morf"), ("retrain", "lerf"))):
        text = result_of(results, "cifar10", a, b, 0.6)
        assert ("two trainings" in text) == (expected == 2 and b[0] == "no-retrain")


def test_seeds_that_disagree_show_nothing_and_the_words_say_what_could_have_been_shown():
    changes = {0: Change(0.3, 0.1, 0.5), 1: Change(-0.1, -0.2, 0.1)}
    assert over_seeds([SHOWN, NOT_SHOWN]) == NOT_SHOWN
    # half of the wider interval: (.5 − .1)/2
    assert "a change of .20 could" in in_words(NOT_SHOWN, changes)


def test_the_main_claim_without_retraining_is_shown_on_cifar10():
    claim = next(claim for claim in claims(RESULTS) if claim.name.startswith("CIFAR-10, no-retrain"))
    assert kind(claim) == SHOWN
    wanted = {"data": "cifar10", "evaluator_a": "no-retrain", "evaluator_b": "no-retrain", "pairing": "kept"}
    assert only(RESULTS.table("changes"), **wanted)["low"] > 0.2


def test_the_commands_run_every_plan_and_end_with_the_page():
    steps = [" ".join(command) for command in commands(layout("tiny"))]
    for stage in STAGES:
        assert any(f"run {layout('tiny').plan(stage.plan)}" in step for step in steps)
    assert [step.split()[0] for step in steps[-3:]] == [
        "reproduction.harvest",
        "reproduction.derive",
        "reproduction.document",
    ]


def test_what_is_in_the_results_is_not_computed_again_if_only_what_is_left_is_wanted(tmp_path):
    place = layout("full", left=True, jobs=2)._replace(results=tmp_path)
    everything = {" ".join(command) for command in commands(place)}
    facts = {"cifar10-tables": {"points": {"0": [9, 9]}}, "food101-tables": {"points": {"0": [8, 9]}}}
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    for name in ("geometry", "detection", "masks", "toy-worlds", "cost"):
        (tmp_path / f"{name}.csv").write_text("item\n")
    gone = everything - {" ".join(command) for command in commands(place)}
    assert sorted(step.split()[0] for step in gone) == ["reproduction.left", "reproduction.toy_worlds", "roadworthy"]
    (left,) = (step for step in gone if "reproduction.left" in step)
    assert left.endswith("/runs/cifar10-tables --jobs=2")


def test_explained_models_are_taken_from_the_repository_unless_they_are_to_be_trained():
    stored, trained = (commands(layout("full", trains=trains)) for trains in (False, True))
    assert stored[0][:1] == ["reproduction.weights"]
    assert not any("train" in command for command in stored)
    assert [command[1] for command in trained[:2]] == ["train", "train"]
    assert trained[2][0] == "reproduction.weights"
    assert "--keep" in trained[2]


def test_weights_are_rounded_to_half_precision_with_their_header(tmp_path):
    weights = {"layer": torch.tensor([1 / 3, 1e-3]), "count": torch.tensor(7)}
    save_file(weights, tmp_path / "trained.safetensors", {"training": "20 epochs"})
    rounded(tmp_path / "trained.safetensors", tmp_path / "kept" / "half.safetensors")
    kept = load_file(tmp_path / "kept" / "half.safetensors")
    assert kept["layer"].dtype == torch.float16
    assert kept["layer"].float().allclose(weights["layer"], rtol=2**-11, atol=0)
    assert kept["count"] == 7
    with safe_open(tmp_path / "kept" / "half.safetensors", "pt") as file:
        assert file.metadata() == {"training": "20 epochs"}


@pytest.mark.slow
@pytest.mark.timeout(1800)  # 150 s on a quiet core
@pytest.mark.filterwarnings("ignore")
def test_the_reproduction_in_miniature_goes_from_nothing_to_its_page(tmp_path):
    script = [sys.executable, "-m", "reproduction.run", "--size", "tiny", "--out", str(tmp_path)]
    subprocess.run(script, cwd=HERE.parent, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=1790)
    results = Results(tmp_path / "results")
    assert set(results.facts()) == {stage.plan for stage in STAGES}
    for plan, facts in results.facts().items():
        assert all(done == total for done, total in facts["points"].values()), plan
        assert facts["cpu_seconds"] >= 0
    tables = ("agreement", "changes", "scores", "filtered", "targets", "carried", "carried-agreement", "stopping")
    for name in (
        *tables,
        "gain-masks",
        "gain-masks-search",
        "mask-curve",
        "toy-shares",
        "neighbors",
        "cost",
        *QUESTIONS,
    ):
        assert len(results.table(name)), name
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert page == document(results)
    assert {kind(claim) for claim in agreement_claims(results)} == {UNTESTABLE}  # nothing was learned
    assert DOCUMENT.read_text(encoding="utf-8") == document(RESULTS)  # left alone


def test_rows_of_other_steps_of_the_gains_are_kept_in_place_unless_their_settings_changed():
    def table(**mse):
        rows = [(name, 0, 0, value, 0.0, 0.0, 0.0, 9) for name, value in mse.items()]
        return gain_masks.with_ids(pd.DataFrame(rows, columns=gain_masks.COLUMNS))

    old = table(**{"fixed": 1.0, "GAIN, default": 2.0, "linear": 3.0})
    old.loc[2, "item"] = "of other settings"
    merged = gain_masks.with_kept(old, table(**{"fixed": 4.0, "GAIN, long": 5.0}))
    assert dict(zip(merged["imputer"], merged["mse"], strict=True)) == {"fixed": 4, "GAIN, default": 2, "GAIN, long": 5}
    assert list(merged["imputer"]) == ["fixed", "GAIN, default", "GAIN, long"]
