"""Plans from Python: run, resumed, loaded, audited; and nothing stale."""

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from commands import contents
from roadworthy.core.errors import DataError, IncompleteError, InputError, PlanError, StoreError
from roadworthy.experiments.plans import plan_from
from roadworthy.experiments.run import load, open_run, run, run_plan, write_report
from roadworthy.experiments.runner import Silent
from roadworthy.experiments.stores.run_directory import RunDirectory


def started(project, store=None, **options):
    return run(project.path, store or project.store, progress=False, **options)


def probabilities(comparison, method):
    table = comparison.per_image()
    return table.loc[(table["method"] == method) & (table["fraction"] > 0), "probability"].to_numpy()


def stored(project):
    return RunDirectory(project.store).ids()


def test_a_plan_runs_the_users_own_method_and_imputer(project):
    # Plans knew names of the registry only.
    project.write_plan(evaluation={"imputers": ["mine:gray", "linear"]})
    comparison = started(project)
    ranking = comparison.ranking()
    assert set(ranking["method"]) == {"own", "G", "random"}
    assert set(ranking["imputer"]) == {"gray", "linear"}
    # The class is the brightest quadrant: brightness itself beats the rest.
    assert (ranking.drop_duplicates("imputer")["method"] == "own").all()


def test_a_run_directory_filled_from_python_is_loaded_as_that_of_a_plan(project):
    # Without the command line nothing said what kind of run it was, and it was read as a saved comparison.
    plan = project.write_plan()
    ran, loaded = started(project), load(project.store)
    for comparison in (ran, loaded):
        assert comparison.source is not None
        assert comparison.plan_text == plan.text
        assert comparison.results.manifest["kind"] == "plan"
    assert ran.ranking().equals(loaded.ranking())
    with pytest.raises(StoreError, match="already holds results"):
        ran.save(project.store)


def test_a_second_run_computes_nothing_and_leaves_every_byte(project):
    project.write_plan()
    started(project)
    before = contents(project.store)
    started(project)
    assert contents(project.store) == before


def test_a_killed_run_is_resumed_with_the_same_bytes(project, tmp_path):
    project.write_plan()
    started(project)
    whole = contents(project.store)

    class Killed(Exception):
        pass

    class Kill(Silent):
        events = 0

        def on_event(self, event):
            self.events += 1
            if self.events == 7:
                raise Killed

    half = RunDirectory(tmp_path / "half")
    with pytest.raises(Killed):
        run_plan(project.write_plan(), half, "local", 1, "local", Kill())
    assert 0 < len(half.ids()) < len(whole)
    started(project, half.root)
    assert contents(half.root) == whole


def test_what_is_added_later_is_all_that_is_computed(project):
    project.write_plan()
    started(project)
    before = stored(project)
    project.write_plan(methods={"IG": {"name": "ig", "steps": 2}})
    comparison = started(project)
    added = stored(project) - before
    # 3 blocks of maps, and of predictions of 2 orders and 2 fractions
    assert len(added) == 3 + 3 * 2 * 2
    assert set(comparison.ranking()["method"]) == {"own", "G", "IG", "random"}


def test_processes_give_the_bytes_of_this_process(project, tmp_path):
    project.write_plan(evaluation={"controls": ["random", "blurred"]})
    started(project)
    started(project, tmp_path / "processes", jobs=2)
    assert contents(tmp_path / "processes") == contents(project.store)


# ── nothing stale ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_changed_weights_are_used_by_the_next_run_in_the_same_process(project):
    # Models were cached by the repr of their plan: the second run measured the first one's weights.
    weights = project.root / "w.safetensors"
    project.write_plan(model={"weights": "w.safetensors"})
    found = []
    for scale in (40.0, 1.0):
        save_file({"scale": torch.tensor(scale)}, weights)
        found.append(probabilities(started(project), "own"))
    assert found[0].mean() > found[1].mean() + 0.1  # small logits: less certain
    fresh = run(project.path, project.root / "fresh", progress=False)
    assert np.array_equal(found[1], probabilities(fresh, "own"))


def test_changed_code_is_used_by_the_next_run_in_the_same_process(project):
    project.write_plan()
    first = started(project).ranking().set_index("method")
    project.mine.write_text(project.mine.read_text().replace("return batch.images\n", "return -batch.images\n"))
    second = started(project).ranking().set_index("method")
    assert first.loc["own", "srg"] > 0 > second.loc["own", "srg"]
    assert first.loc["G", "srg"] == second.loc["G", "srg"]


def test_changed_images_are_used_by_the_next_run_in_the_same_process(project):
    project.write_plan()
    before = started(project)
    image = sorted((project.root / "images" / "0").iterdir())[0]
    Image.new("RGB", (12, 12), (0, 0, 0)).save(image)
    after = started(project)
    changed = before.per_image()["probability"] != after.per_image()["probability"]
    assert set(before.per_image().loc[changed, "id"]) == {0}


def test_an_audit_of_a_loaded_run_is_not_computed_from_other_images_weights_or_code(project):
    # It would have been stored as the audit of the run.
    project.write_plan()
    started(project)

    def audit():
        load(project.store).audit(fractions=(0.3,), questions=("geometry",), progress=False)

    original = project.mine.read_text()
    project.mine.write_text(original.replace("return batch.images\n", "return -batch.images\n"))
    with pytest.raises(PlanError, match="mine:brightness"):
        audit()
    project.mine.write_text(original.replace("40.0", "41.0"))
    with pytest.raises(PlanError, match="weights"):
        audit()
    project.mine.write_text(original)
    image = sorted((project.root / "images" / "3").iterdir())[-1]
    content = image.read_bytes()
    Image.new("RGB", (12, 12), (0, 0, 0)).save(image)
    with pytest.raises(DataError, match="fingerprint"):
        audit()
    image.write_bytes(content)
    audit()
    assert len(list((project.store / "audits").iterdir())) == 3  # a method each


def test_an_audit_of_a_loaded_run_waits_for_no_other_writer(project):
    project.write_plan()
    started(project)
    with RunDirectory(project.store).locked(), pytest.raises(StoreError, match="in use"):
        load(project.store).audit(fractions=(0.3,), questions=("geometry",), progress=False)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


FAILS = "\n\ndef fails(model, batch, key):\n    assert {}, 'no map for this image'\n    return batch.images\n"


def test_a_method_that_always_fails_stops_the_run_before_any_work(project):
    project.mine.write_text(project.mine.read_text() + FAILS.format(False))
    project.write_plan(methods={"bad": "mine:fails"})
    with pytest.raises(AssertionError, match="no map") as caught:
        started(project)
    assert any("'bad'" in note for note in caught.value.__notes__)
    assert not stored(project)


def test_a_method_that_fails_on_a_later_image_is_recorded_and_the_others_go_on(project):
    project.mine.write_text(project.mine.read_text() + FAILS.format("17 not in batch.ids"))
    project.write_plan(methods={"bad": "mine:fails"})
    comparison = started(project)
    assert set(comparison.ranking()["method"]) == {"own", "G", "random"}
    (failure,) = RunDirectory(project.store).failures().values()
    assert failure["label"]["method"] == "bad"
    assert "no map for this image" in failure["traceback"]
    missing = comparison.results.missing
    assert set(missing["method"]) == {"bad"}
    # Its maps of two of three blocks were made, but only what is complete counts.
    project.mine.write_text(project.mine.read_text().replace("assert 17 not in batch.ids, 'no map for this image'", ""))
    assert set(started(project).ranking()["method"]) == {"own", "G", "random", "bad"}
    assert RunDirectory(project.store).failures() == {}


# ── loading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_are_read_without_data_or_code(project):
    project.write_plan()
    ranking = started(project).ranking()
    for path in (project.mine, project.path):
        path.unlink()
    (project.root / "images").rename(project.root / "elsewhere")
    loaded = load(project.store)
    assert loaded.ranking().equals(ranking)
    page = loaded.report(project.root / "page.html").read_text()
    assert "own" in page
    with pytest.raises(PlanError, match="images"):
        loaded.audit(progress=False)


def test_a_run_directory_may_move(project):
    project.write_plan()
    ranking = started(project).ranking()
    project.store.rename(project.root / "moved")
    moved = load(project.root / "moved")
    assert moved.ranking().equals(ranking)
    assert moved.findings().examples  # the images are found by the plan's folder


def test_a_folder_without_results_is_an_error_that_names_the_cure(project, tmp_path):
    with pytest.raises(StoreError, match="roadworthy run"):
        load(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    project.write_plan()
    run_plan(project.write_plan(), RunDirectory(project.store), "local", 1, "local", Silent())
    for path in (project.store / "predictions").glob("*/*"):
        path.unlink()
    with pytest.raises(IncompleteError, match="no complete curve"):
        load(project.store)
    page = write_report(project.store, project.root / "page.html").read_text()
    assert "Nothing can be ranked yet" in page


def test_a_plan_that_was_not_read_from_a_file_is_an_error(project):
    # Its run directory could not be read again.
    with pytest.raises(InputError, match="file"):
        run(plan_from(project.tables(), project.root), project.store, progress=False)


def test_another_plan_in_the_same_directory_is_the_one_that_is_shown(project):
    project.write_plan()
    started(project)
    complaints = []
    other = project.write_plan(methods={"own": None})
    run_plan(other, RunDirectory(project.store), "local", 1, "local", Silent(), complaints.extend)
    assert "another plan" in complaints[0]
    assert set(load(project.store).ranking()["method"]) == {"G", "random"}
    assert open_run(project.store).plan.text == other.text
