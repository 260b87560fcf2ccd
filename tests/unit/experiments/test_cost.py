"""What a plan would cost, on a clock that only the model moves: a millisecond per image and forward pass."""

import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from roadworthy.experiments import timing
from roadworthy.experiments.cost import estimate, outlook, passes, thinned
from roadworthy.experiments.items import trial_items
from roadworthy.experiments.plans.reading import plan_from, read_plan
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.experiments.timing import Line

PLANS = Path(__file__).parents[2] / "plans"

TICKING = """
from torch import nn

now = [0.0]

class Ticking(nn.Module):
    def __init__(self):
        super().__init__()
        now[0] += 1000  # building takes long, and is paid once
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(784, 4), nn.ReLU(), nn.Linear(4, 10))

    def forward(self, images):
        now[0] += len(images) / 1000
        return self.layers(images)
"""

PLAN = """
[data]
name = "digits"
images = 500
[train]
sample = 300
[model]
factory = "ticking:Ticking"
weights = "none.safetensors"
[training]
epochs = 7
data = { images = 200 }
[recipe]
epochs = 5
[gain]
width = 2
blocks = 1
[methods]
IG = { name = "ig", steps = 20 }
IG-fine = "ig"
IG-SG = "ig-sg"
IG-SQ = "ig-sq"
GB = "gb"
GB-SG = { name = "gb-sg", gb_samples = 30 }
[evaluation]
fractions = [0.5, 0.9]
imputers = ["linear", "gain"]
evaluators = ["no-retrain", "retrain", "fine-tuned"]
controls = ["random"]
blurred = ["IG"]
seeds = [0, 1]
"""


@pytest.fixture
def ticking(tmp_path, monkeypatch):
    (tmp_path / "ticking.py").write_text(TICKING)
    monkeypatch.setattr(timing, "clock", lambda: sys.modules["ticking"].now[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ticking", raising=False)
    import ticking

    assert ticking.now == [0.0]
    return plan_from(tomllib.loads(PLAN), tmp_path)


def test_every_kind_of_work_costs_what_its_passes_cost(ticking):
    cost = estimate(ticking)
    assert (cost.images, cost.train_images) == (500, 300)
    # Per image, each group of maps sees the plain image once, and then: IG and its blurred copy 20; IG-fine 50, apart
    # from IG though both are thinned to the same; IG-SG and IG-SQ together 15 · 50; GB 1; GB-SG 30; random 0.
    per_image = 6 + 20 + 50 + 750 + 1 + 30
    assert cost.maps == pytest.approx(per_image * (500 + 300) / 1000)
    # 8 maps × 2 orders × 2 imputers × 3 evaluators × 2 seeds × 3 fractions, one look at each image
    assert cost.trials == pytest.approx(8 * 2 * 2 * 3 * 2 * 3 * 500 / 1000)
    # retrained: 8 maps × 2 orders × 2 imputers × 2 seeds × 2 fractions above 0, and one per seed without removal;
    # tuned: 2 imputers × 2 seeds; each sees 300 images in 5 epochs. The GAIN does not move this clock.
    assert cost.trainings == pytest.approx((8 * 2 * 2 * 2 * 2 + 2 + 2 * 2) * 300 * 5 / 1000)
    assert cost.model == pytest.approx(200 * 7 / 1000)


def test_a_model_without_training_costs_none_and_the_global_generator_is_left_alone(ticking):
    light = replace(
        ticking, training=None, model={"name": "load", "factory": "ticking:Ticking"}, methods={"GB": {"name": "gb"}},
        blurred=(), controls=(), imputers={"linear": {"name": "linear"}}, evaluators=("no-retrain",), recipe=None,
        train=None,
    )  # fmt: skip
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    cost = estimate(light)
    assert torch.rand(2).tolist() == expected
    assert (cost.trainings, cost.model) == (0, 0)
    assert cost.maps == pytest.approx(2 * 500 / 1000)  # the plain image, and one pass


def test_a_line_through_two_timings_does_not_multiply_what_is_paid_once():
    line = Line.through((1, 5.0), (3, 9.0))  # 3 once and 2 for each
    assert line == Line(3.0, 2.0)
    assert line.at(750) == 1503
    assert Line.through((1, 2.0), (4, 1.0)) == Line(0.0, 0.25)  # noise: faster with more
    assert Line.through((1, 2.0), (1, 2.0)) == Line(0.0, 2.0)  # a set of one image


@pytest.mark.parametrize("name", ["cifar10.toml", "food101.toml"])
def test_the_full_plans_are_the_papers_experiments(name):
    plan = read_plan(PLANS / name)
    # One stream of samples serves SG, SQ and Var: 50 + 15 · 50 + 1 + 100 passes per image.
    assert sum(passes(plan.methods[method]) for method in ("IG", "IG-SG", "GB", "GB-SG")) == 901
    # 8 maps on two splits; 8 × 2 orders × 3 fills × 2 evaluators × 8 fractions × 5 seeds; half of the points above 0 are
    # trainings, and so are 5 without removal and the GAIN
    assert plan.counts() == {"maps": 16, "points": 3840, "trainings": 8 * 2 * 3 * 7 * 5 + 5 + 1}


def test_a_thinned_method_has_the_passes_that_were_asked_for_and_keeps_its_other_options():
    spec = {"name": "ig-var", "steps": 50, "ig_samples": 15, "reduce": "sum"}
    assert thinned(spec, 3) == {"name": "ig-var", "steps": 3, "ig_samples": 1, "reduce": "sum"}
    assert passes(thinned({"name": "gb-sq"}, 4)) == 4
    assert thinned({"name": "gb"}, 3) == {"name": "gb"}
    assert passes({"name": "blurred", "of": spec}) == 750


def test_before_there_are_weights_all_is_missing_and_no_image_is_read(ticking, tmp_path):
    nowhere = replace(ticking, data={"name": "cifar10", "root": str(tmp_path / "nowhere")})
    work = outlook(nowhere, Store(tmp_path / "store"))
    assert work.missing == work.total
    points = len(list(trial_items(nowhere, work.prints)))
    assert len(work.missing_trials) == points
