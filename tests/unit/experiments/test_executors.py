"""Executors: no task gets lost, whenever a worker dies."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from roadworthy.experiments.executors import local
from roadworthy.experiments.executors.in_process import InProcess
from roadworthy.experiments.executors.local import TRIES, Local
from roadworthy.experiments.items import Item
from roadworthy.experiments.runner import Outcome, Task


def task(name):
    return Task((Item("maps", {"name": name}, {}),), {}, None)


def name(task):
    return task.items[0].spec["name"]


class Pools:
    """Stands for ProcessPoolExecutor: a worker dies at every task whose name is in `deadly`.

    `late`: it dies as the next task is submitted, so that submitting raises.
    """

    def __init__(self, deadly=(), late=False):
        self.deadly, self.late, self.opened, self.given = deadly, late, 0, []

    def __call__(self, *arguments, **options):
        self.opened += 1
        self.broken = False
        return self

    def submit(self, function, task):
        if self.broken:
            raise BrokenProcessPool
        self.given.append(name(task))
        future = Future()
        if name(task) in self.deadly:
            self.broken = self.late
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(Outcome([], 1.0))
        return future

    def shutdown(self, **options):
        pass


def run(monkeypatch, pools, tasks, jobs=2):
    """What became of each task, by name."""
    monkeypatch.setattr(local, "ProcessPoolExecutor", pools)
    waiting, running, outcomes = list(tasks), 0, {}
    with Local(None, jobs).started() as session:
        while waiting or running:
            while waiting and session.room > 0:
                session.submit(waiting.pop(0))
                running += 1
            done, outcome = session.completed()
            running -= 1
            assert name(done) not in outcomes, "a task came back twice"
            outcomes[name(done)] = outcome
    return outcomes


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("deadly", ["a", "b", "c", "f"])
def test_every_task_comes_back_once_whichever_kills_its_worker(monkeypatch, deadly, late):
    pools = Pools(deadly, late)
    outcomes = run(monkeypatch, pools, map(task, "abcdef"))
    assert sorted(outcomes) == list("abcdef")
    assert f"died {TRIES} times" in outcomes[deadly].failure
    assert [name for name, outcome in outcomes.items() if outcome.failure] == [deadly]
    assert pools.given.count(deadly) == TRIES


def test_what_was_completed_when_a_worker_died_is_not_computed_again(monkeypatch):
    pools = Pools("a")
    run(monkeypatch, pools, map(task, "abcdef"))
    assert all(pools.given.count(name) == 1 for name in "bcdef")


def test_without_deaths_one_pool_serves_all(monkeypatch):
    pools = Pools()
    outcomes = run(monkeypatch, pools, map(task, "abcdef"))
    assert not any(outcome.failure for outcome in outcomes.values())
    assert (pools.opened, pools.given) == (1, list("abcdef"))


def test_tries_are_counted_by_item_not_by_object(monkeypatch):
    # They were counted by id(task): a new task at the address of an old one inherited its tries, and gave up too early.
    pools = Pools()
    monkeypatch.setattr(local, "ProcessPoolExecutor", pools)
    with Local(None, 1).started() as session:
        for number in range(5):
            pools.deadly = {f"{number}"}
            session.submit(task(f"{number}"))
            done, outcome = session.completed()
            assert (name(done), pools.given.count(f"{number}")) == (f"{number}", TRIES)
            assert outcome.failure
            del done, outcome


class Broken:
    """A worker without an experiment: every task fails."""


def test_in_this_process_an_error_is_recorded_or_raised():
    with InProcess(Broken()).started() as session:
        session.submit(task("a"))
        assert session.room == 0
        done, outcome = session.completed()
        assert (name(done), session.room) == ("a", 1)
        assert "Traceback" in outcome.failure
    with InProcess(Broken(), raises=True).started() as session:
        session.submit(task("a"))
        with pytest.raises(AttributeError):
            session.completed()
