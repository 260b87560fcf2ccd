"""Tables harvested from run directories: complete points only, earlier rows are kept, ids are those of the plans."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import roadworthy as rw
from reproduction import debias, derive, harvest
from reproduction.derive import agreement_table, change_table, complete
from reproduction.ids import point_ids
from reproduction.kept import bits_of, bits_path, committed, read_bits, write_bits
from reproduction.left import left, run_left
from reproduction.stages import Stage
from reproduction.tables import METHODS, POINT, Results
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.pending import survey
from roadworthy.experiments.plans import read_plan
from roadworthy.experiments.run import prepare
from roadworthy.experiments.stores.run_directory import RunDirectory

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
self_test = false
imputers = ["fixed"]
fractions = [0.3, 0.7]
seeds = {seeds}
controls = ["random"]

[run]
block_size = 8
"""


pytestmark = pytest.mark.filterwarnings(
    "ignore::roadworthy.core.errors.RandomWeightsWarning", "ignore::roadworthy.core.errors.LowAccuracyWarning"
)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A plan with two seeds, and a run directory with one of them."""
    monkeypatch.setattr(harvest, "STAGES", (Stage("mine"), Stage("missing")))
    for name, seeds in (("mine", "[0, 1]"), ("part", "[0]")):
        (tmp_path / f"{name}.toml").write_text(PLAN.format(seeds=seeds))
    rw.run(tmp_path / "part.toml", store=tmp_path / "runs" / "mine", progress=False)
    return tmp_path / "runs", Results(tmp_path / "results")


def contents(results):
    return {path.name: path.read_bytes() for path in results.folder.rglob("*.*") if path.is_file()}


def test_complete_points_are_harvested_with_their_ids_and_earlier_rows_are_kept(folders):
    runs, results = folders
    table = harvest.harvest(runs, results, runs.parent)
    # 2 methods and a control × 2 orders × (2 fractions with seed 0, and none removed with both seeds)
    assert table.groupby("fraction").size().to_dict() == {0.0: 12, 0.3: 6, 0.7: 6}
    comparison = rw.load(runs / "mine")
    bits = read_bits(bits_path(results, "mine"))
    for row in table[table["seed"] == 0].itertuples():
        point = Point(row.method, row.order, row.imputer, row.evaluator, row.fraction, row.seed)
        assert row.accuracy == comparison.predictions[point].correct.mean()
        if row.method != "random":
            assert np.array_equal(np.unpackbits(bits[row.item], count=12), comparison.predictions[point].correct)
    # 12 curve points of each seed, and the one of whole images
    assert results.facts()["mine"]["points"] == {"0": [13, 13], "1": [1, 13]}
    assert {point.method for point in committed(results, "mine")} == {"IG", "other"}
    assert {point.seed for point in committed(results, "mine")} == {0}  # curves of seed 1 are incomplete
    before = contents(results)
    harvest.harvest(runs, results, runs.parent)
    harvest.harvest(runs.parent / "gone", results, runs.parent)  # the run directories may vanish
    assert contents(results) == before


def test_a_directory_that_was_only_merged_from_another_plan_is_not_harvested(folders):
    runs, results = folders
    other = PLAN.format(seeds="[0]").replace('other = "gradient"', 'another = "gradient"')
    (runs.parent / "mine.toml").write_text(other)
    assert len(harvest.harvest(runs, results, runs.parent)) == 0


def test_the_processor_time_of_a_finished_plan_is_kept(folders):
    runs, results = folders
    (runs.parent / "mine.toml").write_text(PLAN.format(seeds="[0]"))
    harvest.harvest(runs, results, runs.parent)
    manifest = harvest.RunDirectory(runs / "mine").manifest()
    assert results.facts()["mine"]["cpu_seconds"] == round(sum(manifest["cpu_seconds"].values()))


def made_up(evaluator, seed, better):
    """Predictions of the paper's methods on 200 images at .3 and .7. In LeRF the last method is best; in MoRF as well,
    but with fixed imputation the first."""
    draws = np.random.default_rng(seed)
    points = {}
    places = product(("morf", "lerf"), ("fixed", "linear"), enumerate(METHODS), (0.0, 0.3, 0.7))
    for order, imputer, (rank, method), fraction in places:
        merit = rank if imputer == "linear" or order == "lerf" or not better else 7 - rank
        share = 0.1 + 0.1 * (merit if order == "lerf" else 7 - merit) if fraction else 1.0
        correct = (draws.random(200) < share).astype(np.int64)
        values = (np.arange(200), np.ones(200, np.int64), correct, correct.astype(np.float32))
        points[Point(method, order, imputer, evaluator, fraction, seed)] = Predictions(*values)
    return points


def kept(results, plan, predictions):
    """As `harvest` writes it."""
    ids = {point: f"{plan} {point}" for point in predictions}
    table = pd.concat([results.table("points"), harvest.point_rows(plan, predictions, ids)])
    results.write("points", table)
    write_bits(bits_of(predictions, ids), bits_path(results, plan))


@pytest.fixture
def two_stages(tmp_path, monkeypatch):
    results = Results(tmp_path)
    kept(results, "cifar10-tables", made_up("no-retrain", 0, True))
    kept(results, "cifar10-tables-retrain", made_up("retrain", 0, True) | made_up("retrain", 1, True))
    facts = {name: {"fractions": [0.3, 0.7]} for name in ("cifar10-tables", "cifar10-tables-retrain")}
    monkeypatch.setattr(Results, "facts", lambda self: facts)
    monkeypatch.setattr(derive, "MAIN", {"cifar10": tuple(facts)})
    return results


def test_agreement_and_its_change_follow_from_the_committed_files_alone(two_stages):
    table, changes = agreement_table(two_stages), change_table(two_stages)
    for seed in (0, 1):
        both = {**made_up("no-retrain", 0, True), **made_up("retrain", seed, True)}
        expected = statistics.agreement({point._replace(seed=0): one for point, one in both.items()})
        found = table[table["seed"] == seed]
        trained = (expected["evaluator_a"] != "no-retrain") | (expected["evaluator_b"] != "no-retrain")
        expected = expected if seed == 0 else expected[trained]
        assert len(found) == len(expected)
        assert sorted(found["spearman"]) == pytest.approx(sorted(expected["spearman"]))
    # no-retrain once, retrain with two seeds; orders in two pairings each, then retrain ~ no-retrain in two orders
    assert len(changes) == 2 + 2 * 2 + 2 * 2
    orders = changes[changes["evaluator_a"] == changes["evaluator_b"]]
    assert (orders["low"] > 1).all()  # from about −1 to about 1


def test_a_setting_that_lacks_a_point_is_left_out():
    points = {Point(method, "morf", "fixed", "retrain", f, 0): None for method in METHODS for f in (0, 0.3)}
    assert len(complete(points, {"retrain": 2})) == 16
    assert complete(points, {"retrain": 3}) == {}  # another fraction was not run yet
    points.popitem()
    assert complete(points, {"retrain": 2}) == {}


def test_a_new_row_replaces_the_old_one_of_the_same_point():
    columns = ["plan", *POINT, "accuracy"]
    old = pd.DataFrame([("p", "IG", "morf", "fixed", "retrain", 0.3, 0, 0.5)], columns=columns)
    new = old.assign(accuracy=0.6)
    assert harvest.merged(old, new, columns[:-1])["accuracy"].tolist() == [0.6]
    assert len(harvest.merged(old, new.assign(seed=1), columns[:-1])) == 2


def test_debiasing_by_equal_gammas_changes_no_ranking_and_by_others_it_does(tmp_path, monkeypatch):
    """Accuracies .9 on whole images; removed, the methods lie .02 apart. With γ = .5 all differences double."""
    points, images = {}, 1000
    for place, fraction, seed in product(("morf", "lerf"), (0.0, 0.3, 0.7), (0, 1)):
        for rank, method in enumerate(METHODS):
            share = 0.9 if fraction == 0 else 0.7 + 0.02 * (rank if place == "lerf" else 7 - rank)
            correct = (np.arange(images) < round(share * images)).astype(np.int64)
            values = (np.arange(images), np.ones(images, np.int64), correct, correct.astype(np.float32))
            points[Point(method, place, "linear", "retrain", fraction, seed)] = Predictions(*values)
    results = Results(tmp_path)
    kept(results, debias.PLAN, points)
    monkeypatch.setattr(Results, "facts", lambda self: {debias.PLAN: {"fractions": [0.3, 0.7]}})
    assert debias.debiased_table(results).empty  # γ was not measured yet
    places = list(product(METHODS, ("morf", "lerf"), (0.3, 0.7)))
    gammas = pd.DataFrame(places, columns=["method", "order", "fraction"])
    results.write("geometry", gammas.assign(gamma=0.5))
    table = debias.debiased_table(results)
    # Both orders rank the methods alike: 1 before and after. 8 methods at 2 fractions.
    assert table[["before", "after", "methods"]].to_numpy().tolist() == [[1, 1, 16], [1, 1, 16]]
    # Dividing by a γ that falls with the rank in LeRF alone turns its ranking around: .9 − (.2 − .02 r)/γ
    falling = [1 / (1 + 0.35 * METHODS.index(m)) if order == "lerf" else 0.5 for m, order, _ in places]
    results.write("geometry", gammas.assign(gamma=falling))
    assert (debias.debiased_table(results)["change"] < 0).all()


def test_only_points_that_are_not_harvested_are_left(folders):
    runs, results = folders
    plan, store = read_plan(runs.parent / "mine.toml"), RunDirectory(runs / "mine")
    prepared = prepare(plan)
    elsewhere = RunDirectory(runs.parent / "elsewhere")
    everything = left(survey(prepared.design, elsewhere), set())
    assert [point.seed for point in everything] == [0] * 18 + [1] * 18  # 3 methods, 2 orders, fraction 0 and two more
    done = set(harvest.harvest(runs, results, runs.parent)["item"])
    assert {point.seed for point in left(survey(prepared.design, elsewhere), done)} == {1}  # also where seed 0 is gone
    assert run_left(plan, store, done) == 0
    complete = harvest.harvest(runs, results, runs.parent)
    assert set(complete["item"]) == set(point_ids(prepared.design).values())
    assert results.facts()["mine"]["points"] == {"0": [13, 13], "1": [13, 13]}


def test_rows_of_another_model_do_not_outlive_a_harvest(folders):
    runs, results = folders
    table = harvest.harvest(runs, results, runs.parent)
    stale = table.assign(item=[f"old{number}" for number in range(len(table))], method="GB")
    results.write("points", pd.concat([table, stale]))
    again = harvest.harvest(runs, results, runs.parent)
    assert again["item"].tolist() == table["item"].tolist()
