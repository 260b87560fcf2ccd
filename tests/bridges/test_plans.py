"""Methods and models of other libraries in plans."""

import numpy as np
import pytest
import torch
from PIL import Image

import roadworthy as rw
import worlds
from libraries import library
from roadworthy.experiments.plans import plan_from

DATA = {"name": "folder", "root": "images"}
PLAN = """
[data]
name = "folder"
root = "images"

[model]
factory = "my_model:build"

[methods]
"cam" = { grad-cam = "GradCAM", layer = "layer1" }
"captum" = { captum = "LayerGradCam", layer = "layer1" }
"tunnel" = { captum = "NoiseTunnel", of = "Saliency", nt_samples = 2 }
"lrp" = { zennit = "EpsilonPlusFlat" }
"mine" = { maps = "maps.zarr" }
"two" = "my_model:two"

[evaluation]
self_test = false
fractions = [0.5]
controls = []
"""
MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(4 * 8 * 8, 4))

    def forward(self, images):
        return self.head(self.layer1(images))

def build():
    torch.manual_seed(0)
    return Net()

def two(model, batch):
    return batch.images.mean(dim=1)
"""


@pytest.fixture
def folder(tmp_path):
    world = worlds.quadrants(n=8, size=8)
    for number, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        path = tmp_path / "images" / f"class{label}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0).numpy() * 255).round().astype("uint8")).save(path)
    library("zarr").save_array(str(tmp_path / "maps.zarr"), np.random.default_rng(0).random((8, 8, 8)))
    (tmp_path / "my_model.py").write_text(MODEL)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")
def test_a_plan_runs_methods_of_every_library(folder):
    for name in ("pytorch_grad_cam", "zennit"):
        library(name)
    comparison = rw.run(folder / "plan.toml", store=folder / "run")
    assert set(comparison.ranking()["method"]) == {"cam", "captum", "tunnel", "lrp", "mine", "two"}
    again = rw.run(folder / "plan.toml", store=folder / "run")
    assert again.ranking().equals(comparison.ranking())


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"captum": "LayerGradCam", "zennit": "EpsilonPlus"}, "methods.m.captum: zennit is given too"),
        ({"captum": "Saliency", "name": "ig"}, "methods.m.captum: name is given too"),
        ({"grad-cam": "GradCAM"}, "methods.m.layer: missing"),
    ],
)
def test_an_ambiguous_or_incomplete_method_is_refused(method, message):
    with pytest.raises(rw.errors.PlanError, match=message):
        plan_from({"data": DATA, "model": {"name": "resnet18"}, "methods": {"m": method}})


def test_a_model_of_timm_can_be_named(folder):
    from roadworthy.experiments.build import build_model

    library("timm")
    plan = plan_from(
        {
            "data": DATA,
            "model": {"name": "timm", "model": "resnet10t", "pretrained": False},
            "methods": {"g": "gradient"},
        },
        folder,
    )
    model = build_model(plan)
    assert model.classes[1].startswith("goldfish")
    assert torch.allclose(model.mean.flatten(), torch.tensor([0.485, 0.456, 0.406]))
