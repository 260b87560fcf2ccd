"""pytorch-grad-cam: its objects give the maps that they give themselves, and keep nothing."""

import pytest
import torch
from torch import nn

import roadworthy as rw
from libraries import library
from roadworthy.core.random import Key
from roadworthy.experiments.adapt import as_method

cams, targets = library("pytorch_grad_cam"), library("pytorch_grad_cam.utils.model_targets")
KEY = Key(0).fold("maps")


def method(value, batch):
    return as_method("mine", value, rw.datasets.Arrays(batch.images, batch.labels))


def own_maps(cam, inputs, labels, **options):
    return torch.as_tensor(cam(inputs, [targets.ClassifierOutputTarget(label) for label in labels.tolist()], **options))


@pytest.mark.parametrize("name", ["GradCAM", "GradCAMPlusPlus", "LayerCAM", "EigenCAM", "ScoreCAM", "AblationCAM"])
def test_every_cam_gives_its_own_maps(name, network, model, batch, inputs):
    cam = getattr(cams, name)(network, [network.layer2])
    expected = own_maps(cam, inputs, batch.labels)
    ours = method(cam, batch)(model, batch, KEY)
    assert ours.shape == (5, 16, 16)
    assert torch.allclose(ours, expected, atol=1e-5)
    # The object is still usable, and gives the same.
    assert torch.allclose(own_maps(cam, inputs, batch.labels), expected, atol=1e-5)


def test_options_of_the_call_are_passed_on(network, model, batch, inputs):
    cam = cams.GradCAM(network, [network.layer2])
    expected = own_maps(cam, inputs, batch.labels, eigen_smooth=True)
    assert torch.allclose(rw.attributions.GradCam(cam, eigen_smooth=True)(model, batch, KEY), expected, atol=1e-5)


def test_a_class_needs_a_layer(model, batch, network, inputs):
    by_name = rw.attributions.GradCam(cams.GradCAM, layer="layer2")(model, batch, KEY)
    assert torch.allclose(by_name, own_maps(cams.GradCAM(network, [network.layer2]), inputs, batch.labels), atol=1e-5)
    with pytest.raises(rw.errors.InputError, match='layer="layer4"'):
        rw.attributions.GradCam(cams.GradCAM)
    with pytest.raises(rw.errors.InputError, match="did you mean 'layer2'"):
        rw.attributions.GradCam(cams.GradCAM, layer="layer4")(model, batch, KEY)


def test_no_hook_no_gradient_and_no_activation_is_left(network, model, batch, inputs):
    cam = cams.GradCAM(network, [network.layer2])
    hooks = dict(network.layer2._forward_hooks)
    ours = method(cam, batch)
    ours(model, batch, KEY)
    assert dict(network.layer2._forward_hooks) == hooks  # the object's own
    assert all(parameter.grad is None for parameter in network.parameters())
    # Every later pass of the evaluation would otherwise add its activations to the object's lists.
    model(batch.images)
    rw.attributions.Gradient()(model, batch, KEY)
    assert len(cam.activations_and_grads.activations) == len(cam.activations_and_grads.gradients) == 0


def test_another_network_is_refused(model, batch):
    other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
    other(batch.images)
    with pytest.raises(rw.errors.InputError, match="another network"):
        method(cams.GradCAM(other, [other[0]]), batch)(model, batch, KEY)
