"""The demo in Python and plans/demo.toml are the same experiment; weights of the package in plans."""

from pathlib import Path

import pytest
import torch

from projects import write
from roadworthy.core.errors import PlanError
from roadworthy.experiments.build import build
from roadworthy.experiments.demo import sample_demo
from roadworthy.experiments.plans import read_plan

PLAN = Path(__file__).parents[3] / "plans" / "demo.toml"


def test_the_plan_of_the_demo_is_the_demo():
    plan, demo = read_plan(PLAN), sample_demo()
    experiment = build(plan)
    assert {name: experiment.methods[name] for name in plan.methods} == demo.methods
    assert plan.fractions == (0, *demo.fractions)
    assert list(plan.imputers) == ["linear", "fixed"]
    assert experiment.data.ids.tolist() == demo.data.ids.tolist()
    (whole,) = demo.data.batches(200)
    with torch.no_grad():
        assert torch.allclose(experiment.model(whole.images), demo.model(whole.images), atol=1e-4)


def test_every_fraction_of_the_demo_has_its_complement():
    fractions = sample_demo().fractions
    assert {round(1 - fraction, 9) for fraction in fractions} == set(fractions)


MODEL = """
[data]
name = "cifar10-sample"
images = 2
[model]
name = "cifar-resnet"
depth = {depth}
weights = "{weights}"
[methods]
GB = "gb"
"""


def test_a_plan_finds_the_weights_of_the_package_wherever_it_lies(tmp_path):
    plan = read_plan(write(tmp_path / "plan.toml", MODEL.format(depth=20, weights="resnet20-cifar10")))
    (batch,) = build(plan).data.batches(2)
    assert len(batch) == 2


def test_missing_weights_name_those_of_the_package(tmp_path):
    plan = read_plan(write(tmp_path / "plan.toml", MODEL.format(depth=20, weights="resnet20.safetensors")))
    with pytest.raises(PlanError, match=r'model: no weights at .*weights = "resnet20-cifar10"'):
        build(plan)


def test_weights_of_the_package_are_not_trained(tmp_path):
    text = MODEL.format(depth=20, weights="resnet20-cifar10") + "[training]\nepochs = 1\n"
    with pytest.raises(PlanError, match="come with roadworthy"):
        read_plan(write(tmp_path / "plan.toml", text))
