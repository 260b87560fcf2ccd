"""Tables harvested from long computations: complete points only, earlier rows are kept, ids are those of the plans."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

import roadworthy as rw
from reproduction import harvest
from reproduction.collect import POINT
from reproduction.ids import point_ids
from reproduction.tables import HERE, ours
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.build import Fingerprints, design_of
from roadworthy.experiments.plans import read_plan
from roadworthy.experiments.stores.run_directory import RunDirectory

FACTS = {"fingerprints": {}, "versions": {}, "date": ""}

PLAN = """
[data]
name = "digits"
split = "test"
images = 12

[model]
name = "small-cnn"
channels = 1
classes = 10

[methods]
IG = {{ name = "ig", steps = 2 }}
other = "gradient"

[evaluation]
imputers = ["fixed"]
fractions = [0.3, 0.7]
seeds = {seeds}
controls = []

[run]
block_size = 8
"""


pytestmark = pytest.mark.filterwarnings(
    "ignore::roadworthy.core.errors.RandomWeightsWarning", "ignore::roadworthy.core.errors.LowAccuracyWarning"
)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A plan with two seeds, and a run directory with one of them."""
    monkeypatch.setattr(harvest, "STAGES", ("mine", "missing"))
    monkeypatch.setattr(harvest, "PLANS", tmp_path)
    for name, seeds in (("mine", "[0, 1]"), ("part", "[0]")):
        (tmp_path / f"{name}.toml").write_text(PLAN.format(seeds=seeds))
    rw.run(tmp_path / "part.toml", store=tmp_path / "runs" / "mine", progress=False)
    return tmp_path / "runs", tmp_path / "results"


def test_complete_points_are_harvested_with_their_ids_and_earlier_rows_are_kept(folders):
    runs, out = folders
    out.mkdir()
    table = harvest.harvest(runs, out)
    # 2 methods × 2 orders × (2 fractions with seed 0, and none removed with both seeds)
    assert table.groupby("fraction").size().to_dict() == {0.0: 8, 0.3: 4, 0.7: 4}
    comparison = rw.load(runs / "mine")
    for row in table[table["seed"] == 0].itertuples():
        point = Point(row.method, row.order, row.imputer, row.evaluator, row.fraction, row.seed)
        assert row.accuracy == comparison.predictions[point].correct.mean()
        if row.method == "IG":
            assert np.array_equal(harvest.correct(row.item, 12, out), comparison.predictions[point].correct)
    before = [(out / name).read_bytes() for name in ("tables-points.csv", "tables-correct.npz", "tables-facts.json")]
    harvest.harvest(runs, out)
    harvest.harvest(runs.parent / "gone", out)  # the run directories may vanish
    after = [(out / name).read_bytes() for name in ("tables-points.csv", "tables-correct.npz", "tables-facts.json")]
    assert before == after


def made_up(evaluator, seed, settings=(("morf", "linear"), ("lerf", "linear"))):
    """Predictions of the paper's methods on 200 images at .3 and .7, some better than others."""
    draws = np.random.default_rng(seed)
    points = {}
    for (order, imputer), (rank, method), fraction in product(settings, enumerate(harvest.METHODS), (0.0, 0.3, 0.7)):
        wrong = (draws.random(200) < 0.1 * rank).astype(np.int64) if fraction else np.zeros(200, np.int64)
        values = (np.arange(200), np.zeros(200, np.int64), wrong, np.full(200, np.nan, np.float32))
        points[Point(method, order, imputer, evaluator, fraction, seed)] = Predictions(*values)
    return points


def test_agreement_follows_from_the_committed_files_alone(tmp_path, monkeypatch):
    stores = {"cifar10-tables": made_up("no-retrain", 0), "cifar10-tables-retrain": made_up("retrain", 0)}
    stores["cifar10-tables-retrain"] |= made_up("retrain", 1)
    ids = {point: f"{point}" for points in stores.values() for point in points}
    monkeypatch.setattr(harvest, "harvested", lambda plan, store: (stores[plan], {p: ids[p] for p in stores[plan]}))
    monkeypatch.setattr(RunDirectory, "manifest", lambda self: FACTS if self.root.name in stores else {})
    harvest.harvest(tmp_path, tmp_path)
    table = harvest.agreements(tmp_path)
    for seed in (0, 1):
        both = {**stores["cifar10-tables"], **made_up("retrain", seed)}
        expected = statistics.agreement({point._replace(seed=0): one for point, one in both.items()})
        found = table[table["seed"] == seed]
        assert len(found) == len(expected) > 4
        assert sorted(found["spearman"]) == sorted(expected["spearman"])  # the tables differ in the order of settings


def test_a_setting_that_lacks_a_method_is_left_out():
    points = {Point(method, "morf", "fixed", "retrain", 0.3, 0): None for method in harvest.METHODS}
    assert len(harvest._complete(points)) == 8
    points.popitem()
    assert harvest._complete(points) == {}


def test_a_new_row_replaces_the_old_one_of_the_same_point():
    columns = ["plan", *POINT, "accuracy"]
    old = pd.DataFrame([("p", "IG", "morf", "fixed", "retrain", 0.3, 0, 0.5)], columns=columns)
    new = old.assign(accuracy=0.6)
    assert harvest.merged(old, new)["accuracy"].tolist() == [0.6]
    assert len(harvest.merged(old, new.assign(seed=1))) == 2


committed = pytest.mark.skipif(not (HERE / "results" / "tables-points.csv").exists(), reason="nothing harvested yet")


@committed
def test_every_committed_point_has_the_id_that_its_plan_gives_it():
    facts = json.loads((HERE / "results" / "tables-facts.json").read_text(encoding="utf-8"))
    for plan, rows in ours("tables-points").groupby("plan"):
        prints = Fingerprints.from_json(facts[plan]["fingerprints"])
        expected = point_ids(design_of(read_plan(harvest.PLANS / f"{plan}.toml"), prints))
        for row in rows.itertuples():
            place = (row.method, row.order, row.imputer, row.evaluator, row.fraction, row.seed)
            assert expected[Point(*place)] == row.item


@committed
def test_committed_accuracies_are_those_of_the_committed_images():
    table = ours("tables-points")
    kept = table[table["method"].isin(harvest.METHODS)]
    assert len(kept)
    for row in kept.itertuples():
        assert harvest.correct(row.item, row.images).mean() == pytest.approx(row.accuracy, abs=1e-5)
