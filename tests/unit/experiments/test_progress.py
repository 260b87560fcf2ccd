"""The progress of a run: the stage in words, the share by what items cost, and what is left."""

import io

import pytest

from roadworthy.core import progress as core_progress
from roadworthy.experiments import progress
from roadworthy.experiments.items import Block, Item
from roadworthy.experiments.runner import Event

BLOCKS = tuple(Block("test", index, (index,), "f") for index in range(2))


def maps(method, block):
    return Item("maps", {"of": method}, {"method": method, "block": block.index}, (), block)


def points(method, block, evaluator="no-retrain"):
    label = {"method": method, "evaluator": evaluator, "imputer": "linear", "block": block.index}
    return [Item("predictions", {"at": at}, {**label, "fraction": at}, (), block) for at in (0.1, 0.9)]


def training(method):
    label = {"method": method, "evaluator": "retrain", "imputer": "fixed", "fraction": 0.3}
    return Item("predictions", {"of": method}, label)


ITEMS = [item for block in BLOCKS for name in ("IG", "GB") for item in (maps(name, block), *points(name, block))]


def test_a_stage_names_the_method_and_counts_methods_sweeps_and_trainings():
    stages = progress.Stages()
    stages.expect([*ITEMS, training("IG"), training("GB")])
    second = BLOCKS[1]
    assert stages.text([maps("GB", second)]) == "maps: GB, method 2 of 2"  # in whatever block
    assert stages.text(points("IG", second)) == "sweep 3 of 4: IG"  # 2 methods × 2 blocks; block by block
    assert stages.text([training("GB")]) == "training 2 of 2: GB, fixed, 30 % removed"


def test_a_stage_without_a_method_is_named_alone():
    stages = progress.Stages()
    baseline = Item("baseline", {}, {"block": 0}, (), BLOCKS[0])
    stages.expect([baseline])
    assert stages.text([baseline]) == "predicting"


def test_what_is_left_is_unknown_until_every_kind_of_work_was_measured():
    pace = progress.Pace()
    pace.expect(ITEMS)
    pace.done(maps("IG", BLOCKS[0]), 8.0)
    assert pace.seconds_left is None  # nothing was predicted yet
    assert pace.share is None
    pace.done(points("IG", BLOCKS[0])[0], 1.0)
    # Left: 3 maps, those of GB counted like IG's, 8 s; 7 points of 1 s.
    assert pace.seconds_left == 3 * 8 + 7 * 1
    assert pace.share == 9 / (9 + 31)
    assert not pace.measured
    pace.done(maps("GB", BLOCKS[0]), 2.0)
    assert pace.measured
    assert pace.seconds_left == 8 + 2 + 7 * 1


def test_trainings_are_not_counted_like_sweeps():
    pace = progress.Pace()
    pace.expect([*points("IG", BLOCKS[0]), training("IG")])
    pace.done(points("IG", BLOCKS[0])[0], 1.0)
    assert pace.seconds_left is None


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(core_progress, "time", clock)
    return clock


def listened(monkeypatch, clock, seconds, workers=1):
    """What a log file holds after a run whose items take that long."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.Bar("comparing") as bar:
        bar.on_stage("trying everything on two images")
        bar.expect(ITEMS)
        clock.now = 1.0
        for item in ITEMS:
            bar.on_begin([item])
            clock.now += seconds / workers
            bar.on_event(Event(item, seconds))
    return stream.getvalue().splitlines()


def test_a_long_run_is_estimated_once_and_then_reported_now_and_then(monkeypatch, clock):
    # 12 items of 20 s: after maps and a point of IG, a sixth of the work, 10 × 20 s are left, about 3 minutes. Lines
    # follow after 30 s, 60 s later and 120 s later, each when an item begins or ends.
    lines = listened(monkeypatch, clock, 20.0)
    assert lines == [
        "comparing: about 3 min left",
        "comparing: sweep 1 of 4: IG (17 %, about 3 min left, 45 s so far)",
        "comparing: sweep 2 of 4: GB (42 %, about 2 min left, 2 min so far)",
        "comparing: sweep 4 of 4: GB (92 %, about 20 s left, 4 min so far)",
    ]


def test_several_workers_are_that_much_faster(monkeypatch, clock):
    # 200 s of work are left, as above, for two workers: 100 s.
    assert "comparing: about 2 min left" in listened(monkeypatch, clock, 20.0, workers=2)


def test_a_short_run_writes_nothing_to_a_log(monkeypatch, clock):
    assert listened(monkeypatch, clock, 2.0) == []
