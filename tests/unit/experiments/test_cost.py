"""What a plan would cost, on a clock that only the model moves: a millisecond per image and forward pass."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from roadworthy.experiments import cost
from roadworthy.experiments.cost import Work, estimate, missing_counts
from roadworthy.experiments.pending import survey
from roadworthy.experiments.plans import read_plan
from roadworthy.experiments.run import prepare, run
from roadworthy.experiments.self_test.cost import self_test_points
from roadworthy.experiments.stores.run_directory import RunDirectory

PLANS = Path(__file__).parents[3] / "plans"

TICKING = """
import clock
from torch import nn

class Ticking(nn.Module):
    def __init__(self):
        super().__init__()
        clock.now += 1000  # building takes long, and is done once
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(432, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, images):
        clock.now += len(images) / 1000
        return self.layers(images)
"""

SECTIONS = {
    "train": {"root": "train"},
    "model": {"factory": "ticking:Ticking", "weights": "none.safetensors"},
    "training": {"epochs": 7, "data": {"root": "train", "images": 8}},
    "recipe": {"epochs": 5},
    "gain": {"width": 2, "blocks": 1},
    "methods": {
        "own": None,
        "G": None,
        "IG": {"name": "ig", "steps": 20},
        "IG-fine": "ig",
        "IG-SG": {"name": "ig-sg", "ig_samples": 3},
        "IG-SQ": {"name": "ig-sq", "ig_samples": 3},
        "GB": "gb",
        "GB-SG": {"name": "gb-sg", "gb_samples": 30},
    },
    "evaluation": {
        "fractions": [0.5, 0.9],
        "imputers": ["linear", "gain"],
        "evaluators": ["no-retrain", "retrain", "fine-tuned"],
        "controls": ["random", "blurred"],
        "copied": ["IG"],
        "seeds": [0, 1],
    },
}


@pytest.fixture
def ticking(project, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setitem(sys.modules, "clock", clock)
    monkeypatch.setattr(cost, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    (project.root / "ticking.py").write_text(TICKING)
    project.write_images("train", 12)
    return project


def test_every_kind_of_work_costs_what_its_passes_cost(ticking):
    plan = ticking.plan(**SECTIONS)
    estimated = estimate(plan, plan.counts())
    seconds = {work.kind: work.seconds for work in estimated.work}
    assert (estimated.images, estimated.train_images) == (20, 12)
    # Per image: IG 20; IG-fine 50; IG-SG and IG-SQ together 3 · 50; GB 1; GB-SG 30; random 0. Both splits.
    assert seconds["maps"] == pytest.approx((20 + 50 + 150 + 1 + 30) * (20 + 12) / 1000)
    # 6 methods, random and a copy × 2 orders × 2 imputers × 3 evaluators × 2 seeds × 3 fractions
    assert seconds["points"] == pytest.approx(8 * 2 * 2 * 3 * 2 * 3 * 20 / 1000)
    # retrained: 8 methods × 2 orders × 2 imputers × 2 seeds × 2 fractions above 0, and one per seed without removal;
    # fine-tuned: 2 imputers × 2 seeds; each sees 12 images in 5 epochs. The GAIN does not move this clock.
    assert seconds["trainings"] == pytest.approx((8 * 2 * 2 * 2 * 2 + 2 + 2 * 2) * 12 * 5 / 1000)
    assert seconds["the model itself"] == pytest.approx(8 * 7 / 1000)
    assert estimated.seconds == pytest.approx(sum(seconds.values()))  # all of it is missing


def test_a_warm_start_costs_as_much_as_retraining(ticking):
    evaluation = {**SECTIONS["evaluation"], "evaluators": ["retrain", "warm-start"]}
    plan = ticking.plan(**{**SECTIONS, "evaluation": evaluation})
    seconds = {work.kind: work.seconds for work in estimate(plan, plan.counts()).work}
    # 8 methods × 2 orders × 2 imputers × 2 evaluators × 2 seeds × 2 fractions above 0, and one per evaluator and seed
    assert seconds["trainings"] == pytest.approx((8 * 2 * 2 * 2 * 2 * 2 + 4) * 12 * 5 / 1000)


def test_a_model_that_exists_costs_no_training_and_the_global_generator_is_left_alone(ticking):
    plan = ticking.plan(
        model={"factory": "ticking:Ticking"}, methods={"own": None, "G": None, "GB": "gb"}, evaluation={"controls": []}
    )
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    estimated = estimate(plan, plan.counts())
    assert torch.rand(2).tolist() == expected
    assert {work.kind: work.seconds for work in estimated.work} == {
        "maps": pytest.approx(20 / 1000),
        "points": pytest.approx(2 * 3 * 20 / 1000),  # 2 orders, 3 fractions
    }


def test_what_is_done_costs_nothing():
    assert Work("maps", 8, 2, 4.0).missing_seconds == 1
    assert Work("maps", 0, 0, 0.0).missing_seconds == 0


def test_what_is_missing_is_counted_per_map_and_point(project):
    plan, store = project.write_plan(), RunDirectory(project.store)
    # own, G and random; 2 orders and 3 fractions
    assert missing_counts(plan, store) == plan.counts() == {"maps": 3, "points": 18, "trainings": 0}
    run(project.path, project.store, progress=False)
    assert missing_counts(plan, store) == {"maps": 0, "points": 0, "trainings": 0}
    more = project.write_plan(methods={"IG": {"name": "ig", "steps": 2}})
    assert missing_counts(more, store) == {"maps": 1, "points": 4, "trainings": 0}  # its point 0 is known


def test_copies_of_leading_methods_are_missing_before_it_is_known_which_they_are(project):
    plan, store = project.write_plan(), RunDirectory(project.store)
    run(project.path, project.store, progress=False)
    copied = replace(plan, controls=("random", "blurred"), methods={**plan.methods, "IG": {"name": "ig", "steps": 2}})
    # IG itself, and the copies of two methods: 2 · 2 orders · 3 fractions
    assert missing_counts(copied, store) == {"maps": 1, "points": 4 + 12, "trainings": 0}


def test_the_self_test_is_counted_as_it_is_run(project):
    plan = project.write_plan(evaluation={"self_test": None, "controls": ["center"]})
    store = RunDirectory(project.store)
    # own, G and center swapped; own and G at 4 widths; own and G with half and all layers shuffled; 2 orders, 2
    # fractions
    assert self_test_points(plan) == {"swapped": 3 * 4, "smoothed": 2 * 4 * 4, "randomized": 2 * 2 * 4}
    assert missing_counts(plan, store)["self-test"] == 12 + 32 + 16
    (tested,) = [work for work in estimate(plan, missing_counts(plan, store)).work if work.kind == "self-test"]
    assert (tested.number, tested.missing) == (60, 60)
    assert tested.seconds > 0
    run(project.path, project.store, progress=False)
    state = survey(prepare(plan).design, store)
    assert sum(point.fraction > 0 for point in state.self_test_points) == 60
    assert missing_counts(plan, store)["self-test"] == 0
    # of five fractions, smoothed and randomized copies have three; center is swapped for one imputer
    more = replace(plan, fractions=(0.0, 0.1, 0.3, 0.5, 0.7, 0.9), imputers={"linear": {}, "fixed": {}})
    assert self_test_points(more) == {"swapped": (2 * 2 + 1) * 10, "smoothed": 2 * 4 * 2 * 6, "randomized": 2 * 2 * 6}


def test_before_there_are_weights_all_is_missing_and_no_image_is_read(project):
    plan = project.plan(model={"weights": "none.safetensors"}, training={"epochs": 1}, data={"root": "nowhere"})
    assert missing_counts(plan, RunDirectory(project.store)) == plan.counts()


@pytest.mark.parametrize("name", ["cifar10.toml", "food101.toml"])
def test_the_full_plans_are_the_papers_experiments(name):
    # 8 maps on two splits; 8 × 2 orders × 3 imputers × 2 evaluators × 8 fractions × 5 seeds; half of the points above 0
    # are trainings, and so are 5 without removal and the GAIN
    counts = read_plan(PLANS / name).counts()
    assert counts == {"maps": 16, "points": 3840, "trainings": 8 * 2 * 3 * 7 * 5 + 5 + 1}
