"""A library that is not installed is an error that names the extra."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from torch import nn

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.experiments.registry import lookup
from roadworthy.models.normalized import as_model

EXTRAS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["optional-dependencies"]


class Composite:
    def register(self, module):
        pass


def explain(method):
    model = as_model(nn.Sequential(nn.Flatten(), nn.Linear(12, 2)))
    method(model, Batch(torch.arange(1), torch.zeros(1, 3, 2, 2), torch.tensor([0])), Key(0))


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("timm", lambda: rw.models.from_timm("resnet18")),
        ("torchvision.models", lambda: rw.models.from_torchvision("ResNet50_Weights.DEFAULT")),
        ("transformers", lambda: rw.models.from_transformers("google/vit")),
        ("zarr", lambda: rw.attributions.PrecomputedMaps.load("maps.zarr")),
        ("h5py", lambda: rw.attributions.PrecomputedMaps.load("maps.h5")),
        ("zennit.composites", lambda: lookup("attributions", "zennit").make(composite="EpsilonPlus")),
        ("zennit.attribution", lambda: explain(rw.attributions.Zennit(Composite()))),
        ("skimage.segmentation", lambda: rw.Superpixels(4).check(8, 8)),
        ("pytorch_grad_cam", lambda: lookup("attributions", "grad-cam").make(method="GradCAM", layer="0")),
    ],
)
def test_a_missing_library_names_an_extra_that_exists(module, use, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(rw.errors.MissingExtraError, match=r"pip install 'roadworthy\[[\w-]+\]'") as caught:
        use()
    (extra,) = re.findall(r"roadworthy\[([\w-]+)\]", str(caught.value))
    assert extra in EXTRAS


def test_importing_roadworthy_imports_no_other_library():
    import subprocess

    code = "import roadworthy as rw, sys; rw.compare, rw.attributions, rw.models, rw.datasets; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    others = {"shap", "zennit", "pytorch_grad_cam", "quantus", "timm", "torchvision", "transformers", "datasets",
              "lightning", "zarr", "h5py", "wandb", "mlflow", "tensorboard"}  # fmt: skip
    assert others & {name.partition(".")[0] for name in loaded} == set()
