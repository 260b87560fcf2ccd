"""Results: what is collected from a store, and what a saved comparison keeps."""

import json

import numpy as np
import pandas as pd
import pytest

import roadworthy as rw
import worlds
from roadworthy import statistics
from roadworthy.core.errors import InputError, StoreError
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.results import maps_of
from roadworthy.experiments.run import load
from roadworthy.experiments.stores.run_directory import RunDirectory

WORLD = worlds.quadrants(n=60)
FLAT = WORLD.truth * 0  # constant maps: a warning about ties


@pytest.fixture(scope="module")
def comparison():
    return rw.compare(
        WORLD.model,
        rw.datasets.Arrays(WORLD.images, WORLD.labels, classes=("a", "b", "c", "d")),
        {"truth": WORLD.truth, "flat": FLAT},
        imputers={"fancy": rw.NoisyLinear(), "mean": "fixed"},
        fractions=(0.3, 0.6),
        seeds=(0, 1),
        controls=("random", "blurred", "inverted"),
        confidence=0.9,
        margin=0.03,
        target="prediction",
        progress=False,
    )


@pytest.fixture(scope="module")
def loaded(comparison, tmp_path_factory):
    return load(comparison.save(tmp_path_factory.mktemp("saved") / "run"))


TABLES = ("ranking", "scores", "curves", "pairwise", "agreement", "warnings", "per_image", "per_class")


@pytest.mark.parametrize("name", TABLES)
def test_a_saved_comparison_has_the_same_tables(comparison, loaded, name):
    pd.testing.assert_frame_equal(getattr(comparison, name)(), getattr(loaded, name)())


def test_a_table_is_computed_once_and_handed_out_as_a_copy(loaded, tmp_path, monkeypatch):
    computed = []
    for name in ("curves", "per_class", "ranking", "agreement_intervals"):
        function = getattr(statistics, name)
        monkeypatch.setattr(
            statistics,
            name,
            lambda *args, name=name, f=function, **options: computed.append(name) or f(*args, **options),
        )
    fresh = Comparison(loaded.results)
    tables = {name: getattr(fresh, name) for name in ("curves", "per_class", "ranking", "agreement")}
    for table in tables.values():
        before, changed = table(), table()
        changed["added"] = 0
        changed.iloc[0, 0] = "changed"
        pd.testing.assert_frame_equal(table(), before)
    fresh.report(tmp_path / "page.html")
    fresh.plot.curves()
    assert sorted(computed) == ["agreement_intervals", "curves", "per_class", "ranking"]


def test_a_saved_comparison_keeps_predictions_to_the_byte(comparison, loaded):
    assert list(comparison.predictions) == list(loaded.predictions)
    for point, predictions in comparison.predictions.items():
        for field in ("ids", "labels", "predicted", "probability"):
            before, after = getattr(predictions, field), getattr(loaded.predictions[point], field)
            assert before.dtype == after.dtype
            assert np.array_equal(before, after)


def test_a_saved_comparison_keeps_controls_copies_ties_classes_and_the_preferred_setting(comparison, loaded):
    for field in ("controls", "copies", "ties", "classes", "preferred", "linear_imputers", "fixed_imputers", "about",
                  "unlabeled", "available", "stopping", "confidence", "margin", "target"):  # fmt: skip
        assert getattr(loaded.results, field) == getattr(comparison.results, field), field
    assert loaded.results.preferred == ("no-retrain", "fancy")
    assert loaded.results.ties["flat"].constant == 1
    assert set(loaded.results.copies) == {"truth blurred", "truth inverted", "flat blurred", "flat inverted"}
    assert (loaded.results.confidence, loaded.results.margin, loaded.results.target) == (0.9, 0.03, "prediction")
    assert str(loaded) == str(comparison)
    assert loaded.conclusion() == comparison.conclusion()


def test_a_saved_comparison_keeps_its_stopping_rule(tmp_path):
    # It was lost: loaded again, the table had fixed-sample intervals, which are too narrow after early stopping.
    stopped = rw.compare(
        WORLD.model, (WORLD.images, WORLD.labels), {"truth": WORLD.truth}, fractions=(0.3, 0.6), controls=("random",),
        until="ranked", confidence=0.9, margin=0.05, map_batch_size=16, progress=False,
    )  # fmt: skip
    again = load(stopped.save(tmp_path / "run"))
    assert again.results.stopping == stopped.results.stopping
    assert again.results.stopping.confidence == 0.9
    pd.testing.assert_frame_equal(again.ranking(), stopped.ranking())
    pd.testing.assert_frame_equal(again.pairwise(), stopped.pairwise())
    fixed = rw.statistics.pairwise(again.predictions, again.controls)
    assert (again.pairwise()["high"] - again.pairwise()["low"] > fixed["high"] - fixed["low"]).all()
    assert again.conclusion() == stopped.conclusion()
    assert any("of 60 images" in line for line in again.conclusion().details)


def test_a_comparison_that_was_saved_before_confidence_and_margin_were_kept_has_the_defaults(comparison, tmp_path):
    folder = comparison.save(tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("confidence", "margin", "target"):
        del manifest["results"][name]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    results = load(folder).results
    assert (results.confidence, results.margin, results.target) == (0.95, 0.02, "label")


def test_a_saved_comparison_is_not_written_over_results(comparison, tmp_path):
    comparison.save(tmp_path / "run")
    with pytest.raises(StoreError, match="already holds results"):
        comparison.save(tmp_path / "run")


def test_a_saved_comparison_has_no_images(loaded, tmp_path):
    with pytest.raises(InputError, match="compare again"):
        loaded.audit()
    assert "holds no images" in loaded.report(tmp_path / "page.html").read_text()


def test_a_saved_comparison_says_when_and_with_what_it_was_made(loaded):
    manifest = loaded.results.manifest
    assert manifest["kind"] == "comparison"
    assert manifest["versions"]["roadworthy"] == rw.__version__
    assert loaded.findings().facts["Roadworthy"] == rw.__version__


def test_a_corrupt_item_of_a_saved_comparison_is_named(comparison, tmp_path):
    folder = comparison.save(tmp_path / "run")
    path = sorted((folder / "predictions").glob("*/*"))[0]
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(StoreError, match=path.name):
        load(folder)
    path.unlink()
    with pytest.raises(StoreError, match=path.name):
        load(folder)


def test_a_run_directory_of_another_format_is_refused_by_name(comparison, tmp_path):
    folder = comparison.save(tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(StoreError, match="format 99"):
        load(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="not a valid manifest"):
        load(folder)


def test_maps_are_read_in_the_order_of_the_requested_rows(comparison):
    source = comparison.source
    rows = [50, 3, 17]
    assert np.array_equal(maps_of(source.design, source.state, source.store, "truth", rows), WORLD.truth[rows])
    inverted = maps_of(source.design, source.state, source.store, "truth inverted", rows)
    assert np.array_equal(inverted, -WORLD.truth[rows])
    assert maps_of(source.design, source.state, source.store, "truth blurred", rows).shape == (3, 12, 12)


def test_runtimes_are_seconds_per_curve_relative_to_retraining_with_a_fixed_imputer(comparison):
    rows = {(row.evaluator, row.imputer): row for row in comparison.results.runtimes}
    assert rows.keys() == {("no-retrain", "fancy"), ("no-retrain", "mean")}
    assert all(row.seconds > 0 for row in rows.values())
    assert max(row.relative for row in rows.values()) == 1  # nothing was retrained: relative to the most expensive


def test_the_store_of_a_saved_comparison_holds_an_item_per_point(comparison, tmp_path):
    store = RunDirectory(comparison.save(tmp_path / "run"))
    assert len(store.ids()) == len(comparison.predictions)
    assert store.clean() == []
