"""Running items: in dependency order, grouped, once each; a failing one does not stop the others."""

from collections import deque
from threading import Barrier

import numpy as np
import pytest

from roadworthy.experiments import runner
from roadworthy.experiments.items import Block, Item
from roadworthy.experiments.runner import ManifestWriter, Outcome, Silent, TaskGraph, grouping, run_items
from roadworthy.experiments.stores.run_directory import RunDirectory

BLOCK = Block("test", 0, (0, 1), "f")


def item(name, *needs):
    return Item("maps", {"name": name}, {"method": name}, needs)


def alone(item):
    return item.id


class Fake:
    """Computes `room` tasks at a time; returns what it was given, or fails by name."""

    def __init__(self, room=1, failing=()):
        self.capacity, self.failing, self.order, self.inputs, self._tasks = room, failing, [], {}, deque()

    @property
    def room(self):
        return self.capacity - len(self._tasks)

    def submit(self, task):
        assert self.room > 0
        self._tasks.append(task)
        self.order.append([item.label["method"] for item in task.items])
        self.inputs[task.id] = set(task.inputs)

    def completed(self):
        task = self._tasks.pop()
        if any(item.label["method"] in self.failing for item in task.items):
            return task, Outcome([], 0.0, "Traceback\nValueError: boom")
        return task, Outcome([{"maps": np.zeros(1)} for _ in task.items], 2.0, cpu_seconds=1.0)


@pytest.fixture
def store(tmp_path):
    return RunDirectory(tmp_path / "run")


def run(store, items, executor, group_key=alone, listener=None):
    manifest = ManifestWriter(store)
    failed = run_items(items, store, executor, group_key, manifest, listener or Silent())
    manifest.save()
    return failed


@pytest.fixture
def chain():
    base = item("base")
    left, right = item("left", base), item("right", base)
    return base, left, right, item("top", left, right)


@pytest.mark.parametrize("room", [1, 2, 5])
def test_items_come_after_what_they_need_and_get_its_arrays(store, chain, room):
    executor = Fake(room)
    assert run(store, chain, executor) == 0
    assert executor.order == [["base"], ["left"], ["right"], ["top"]]
    assert executor.inputs[chain[3].id] == {chain[1].id, chain[2].id}
    assert store.ids() == {one.id for one in chain}


def test_needs_that_are_stored_already_are_read_from_the_store(store, chain):
    store.write(chain[0], {"maps": np.ones(1)})
    executor = Fake()
    assert run(store, chain[1:], executor) == 0
    assert executor.order[0] == ["left"]
    assert executor.inputs[chain[1].id] == {chain[0].id}


def test_a_failing_item_is_recorded_and_only_what_needs_it_is_left_out(store, chain):
    other = item("other")
    executor = Fake(failing={"left"})
    assert run(store, [*chain, other], executor) == 1
    assert store.ids() == {chain[0].id, chain[2].id, other.id}
    assert store.failures()[chain[1].id]["traceback"].endswith("boom")
    assert ["top"] not in executor.order


def test_a_later_success_removes_the_failure(store, chain):
    run(store, chain, Fake(failing={"left"}))
    run(store, [chain[1], chain[3]], Fake())
    assert store.failures() == {}
    assert chain[3].id in store.ids()


def test_the_duration_of_a_task_is_shared_by_its_items_and_kept_over_runs(store, chain):
    events = []

    class Listener(Silent):
        def on_event(self, event):
            events.append(event)

    run(store, chain, Fake(), lambda item: "left or right" if item.label["method"] in ("left", "right") else item.id,
        Listener())  # fmt: skip
    seconds = {one.label["method"]: store.manifest()["durations"][one.id] for one in chain}
    assert seconds == {"base": 2.0, "left": 1.0, "right": 1.0, "top": 2.0}
    cpu_seconds = {one.label["method"]: store.manifest()["cpu_seconds"][one.id] for one in chain}
    assert cpu_seconds == {"base": 1.0, "left": 0.5, "right": 0.5, "top": 1.0}
    assert [(event.item.label["method"], event.seconds) for event in events] == list(seconds.items())
    run(store, [item("more")], Fake())
    assert len(store.manifest()["durations"]) == len(store.manifest()["cpu_seconds"]) == 5


def test_items_of_a_task_are_written_together_and_reported_in_their_order(store):
    items, together, reported = [item(name) for name in "abcd"], Barrier(4, timeout=10), []

    class Slow:
        """A disk on which a write ends once four have begun."""

        def __getattr__(self, name):
            return getattr(store, name)

        def write(self, one, arrays):
            together.wait()
            store.write(one, arrays)

    class Listener(Silent):
        def on_event(self, event):
            assert event.item.id in store.ids()
            reported.append(event.item.label["method"])

    assert run(Slow(), items, Fake(), lambda item: "one task", Listener()) == 0
    assert reported == ["a", "b", "c", "d"]


def test_the_manifest_is_written_in_a_fiftieth_of_the_time_at_most(store, monkeypatch):
    now, writes = [0.0], []
    monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
    manifest = ManifestWriter(store)

    def slow(content):  # two seconds: a hundred until the next one
        now[0] += 2
        writes.append(now[0])

    monkeypatch.setattr(RunDirectory, "write_manifest", lambda _, content: slow(content))
    for _ in range(300):
        now[0] += 1
        manifest.duration(item("a"), 1.0, 1.0)
    assert writes == [13, 116, 219]  # after more than 10 s, which take 11; then 100 s, 1 to exceed them, 2 to write


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_group_starts_once_all_that_its_items_need_is_done(chain):
    base, left, right, top = chain
    slow = item("slow")
    graph = TaskGraph([base, slow, left, item("also", slow), top, right],
                      lambda item: "pair" if item.label["method"] in ("left", "also") else item.id)  # fmt: skip
    names = [[one.label["method"] for one in group] for group in graph.groups]
    assert names == [["base"], ["slow"], ["left", "also"], ["top"], ["right"]]
    assert [graph.next(), graph.next(), graph.next()] == [0, 1, None]
    graph.done(0)
    assert [graph.next(), graph.next()] == [4, None]  # right needs the base alone
    graph.done(1)
    assert graph.next() == 2
    graph.done(2)
    assert graph.next() is None  # top still waits for right
    graph.done(4)
    assert graph.next() == 3


def test_maps_with_a_common_source_are_computed_together():
    key = grouping({"SG": "samples", "VarGrad": "samples", "IG": "IG"})

    def maps(method, block=BLOCK, **label):
        return key(Item("maps", {}, {"method": method, **label}, (), block))

    assert maps("SG") == maps("VarGrad") != maps("IG")
    assert maps("SG") != maps("SG", Block("test", 1, (2,), "g"))
    assert maps("SG") != maps("SG", Block("train", 0, (0, 1), "h"))
    assert maps("SG blurred", copy_of="SG") not in (maps("SG"), maps("VarGrad blurred", copy_of="VarGrad"))


def predictions(method="IG", imputer="linear", evaluator="no-retrain", needs=(), block=BLOCK, **label):
    label = {"method": method, "imputer": imputer, "evaluator": evaluator, "order": "morf", **label}
    return Item("predictions", label, label, needs, block)


def test_all_curves_of_a_method_on_a_block_are_computed_together():
    key = grouping({})
    assert key(predictions()) == key(predictions(imputer="fixed", order="lerf", fraction=0.3, seed=1))
    assert key(predictions()) != key(predictions("GB"))
    assert key(predictions()) != key(predictions(block=Block("test", 1, (2,), "g")))
    assert key(predictions()) != key(predictions(evaluator="fine-tuned"))


def test_trainings_and_baselines_are_computed_alone():
    key = grouping({})
    retrained = [predictions(evaluator="retrain", block=None, fraction=fraction) for fraction in (0.1, 0.2)]
    assert key(retrained[0]) != key(retrained[1])
    baselines = [Item("baseline", {"b": index}, {}, (), Block("test", index, (0,), "f")) for index in range(2)]
    assert key(baselines[0]) != key(baselines[1])


def test_a_training_that_fails_does_not_stop_curves_without_it(store):
    # All imputers of a method were one group: if the GAIN could not be trained, the linear curves were missing too.
    gain = Item("imputer", {}, {"method": "GAIN"})
    linear, with_gain = predictions(), predictions(imputer="gain", needs=(gain,))
    assert run(store, [gain, linear, with_gain], Fake(failing={"GAIN"}), grouping({})) == 1
    assert store.ids() == {linear.id}
