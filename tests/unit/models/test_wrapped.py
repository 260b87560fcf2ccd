"""Models as people have them: any precision, and outputs that are more than a tensor."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.experiments.registry import lookup
from roadworthy.models.normalized import Normalized, as_model


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ["gradient", "ig", "input-x-gradient", "captum"])
def test_methods_explain_models_of_every_precision(dtype: torch.dtype, name: str) -> None:
    with Key(0).torch_rng():
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 3))
    images = Key(1).uniform(range(2), (3, 8, 8))
    batch = Batch(torch.arange(2), images, torch.tensor([0, 2]))
    exact, rounded = (Normalized(deepcopy(network).to(kind), 0.5, 0.2).eval() for kind in (torch.float32, dtype))
    options = {"method": "InputXGradient"} if name == "captum" else {}
    method = {"m": lookup("attributions", name).make(**options)}
    expected, maps = (explain(method, model, batch, Key(0))["m"] for model in (exact, rounded))
    # bfloat16 has 8 bits, and a pixel whose ReLU flips differs more: the mean error, relative to the mean size.
    tolerance = {torch.bfloat16: 5e-2, torch.float16: 5e-3}.get(dtype, 1e-5)
    assert (maps - expected).abs().mean() <= tolerance * expected.abs().mean()
    logits = rounded(images)
    assert logits.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ({"a": torch.zeros(2, 3), "b": torch.zeros(2, 3)}, "dict with a, b"),
        ((torch.zeros(2, 3), 1), "tuple"),
        (None, "NoneType"),
    ],
)
def test_an_output_with_two_readings_or_none_is_an_error(output: Any, message: str) -> None:
    with pytest.raises(rw.errors.ModelError, match=f"{message}: return logits"):
        as_model(lambda images: output)(torch.zeros(2, 3, 4, 4))


def test_a_dict_with_one_table_holds_the_logits() -> None:
    logits = torch.rand(2, 3)
    model = as_model(lambda images: {"scores": logits, "features": torch.zeros(2, 5, 4)})
    assert torch.equal(model(torch.zeros(2, 3, 4, 4)), logits)
