"""shap: an Explanation and explainers, with the output of the label picked."""

import numpy as np
import pytest
import torch
from torch import nn

import roadworthy as rw
from libraries import library
from roadworthy.core.random import Key
from roadworthy.evaluation.sweep import explain
from roadworthy.experiments.adapt import as_method

shap = library("shap")
KEY = Key(0).fold("maps")


def method(value, batch):
    return as_method("mine", value, rw.datasets.Arrays(batch.images, batch.labels))


def picked(values, labels):
    """The definition, image by image: the label's output, summed over the channels."""
    return torch.stack([torch.as_tensor(v[..., label]).sum(dim=0) for v, label in zip(values, labels, strict=True)])


def test_an_explanation_picks_the_labels_output(network, model, batch, inputs):
    values = shap.DeepExplainer(network, inputs).shap_values(inputs, check_additivity=False)
    assert values.shape == (5, 3, 16, 16, 4)
    explanation = shap.Explanation(values=values, data=inputs.numpy())
    expected = picked(values, batch.labels).float()
    for given in (explanation, values):
        assert torch.allclose(explain({"shap": method(given, batch)}, model, batch, KEY)["shap"], expected, atol=1e-6)


def test_channels_may_come_last(network, model, batch, inputs):
    values = shap.DeepExplainer(network, inputs).shap_values(inputs, check_additivity=False)
    last = shap.Explanation(values=np.moveaxis(values, 1, 3), data=batch.images.permute(0, 2, 3, 1).numpy())
    expected = picked(values, batch.labels).float()
    assert torch.allclose(explain({"shap": method(last, batch)}, model, batch, KEY)["shap"], expected, atol=1e-6)


def test_an_explanation_of_some_outputs_only_is_refused(model, batch):
    top = shap.Explanation(values=np.zeros((5, 16, 16, 3, 2)), data=np.zeros((5, 16, 16, 3)))
    with pytest.raises(rw.errors.ShapeError, match="2 outputs, the model has 4 classes"):
        method(top, batch)(model, batch, KEY)


@pytest.mark.parametrize("kind", ["DeepExplainer", "GradientExplainer"])
def test_an_explainer_gives_its_own_values(kind, network, model, batch, inputs):
    options = {"check_additivity": False} if kind == "DeepExplainer" else {"nsamples": 8, "rseed": 3}
    explainer = getattr(shap, kind)(network, inputs)
    values = explainer.shap_values(inputs.clone(), **options)
    expected = torch.stack([torch.as_tensor(v[..., label]) for v, label in zip(values, batch.labels, strict=True)])
    ours = rw.attributions.ShapExplainer(explainer, **options)(model, batch, KEY)
    assert torch.allclose(ours.double(), expected.double(), atol=1e-6)
    assert all(parameter.grad is None for parameter in network.parameters())
    if kind == "GradientExplainer":  # without rseed, it draws one from NumPy's generator
        seeded = rw.attributions.ShapExplainer(explainer, nsamples=8)
        assert torch.equal(seeded(model, batch, KEY), seeded(model, batch, KEY))


def test_an_explainer_of_another_network_is_refused(model, batch, inputs):
    other = nn.Sequential(nn.Flatten(), nn.Linear(768, 4))
    with pytest.raises(rw.errors.InputError, match="another network"):
        method(shap.GradientExplainer(other, inputs), batch)(model, batch, KEY)


def test_a_class_is_refused_with_the_line_to_write(batch):
    with pytest.raises(rw.errors.InputError, match=r"give an object, GradientExplainer\(network, background\)"):
        method(shap.GradientExplainer, batch)


def test_an_explainer_of_any_function_is_refused_with_the_cure(batch):
    explainer = shap.PartitionExplainer(
        lambda images: images.mean((1, 2)), shap.maskers.Image("blur(3,3)", (16, 16, 3))
    )
    with pytest.raises(rw.errors.InputError, match=r"give its result, explainer\(images\)"):
        method(explainer, batch)
