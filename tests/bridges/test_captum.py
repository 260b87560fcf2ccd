"""Captum: classes and objects give the maps that Captum itself gives."""

import captum.attr
import pytest
import torch
from torch import nn

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.evaluation.units import UnitSetting
from roadworthy.experiments.adapt import as_method

KEY = Key(0).fold("maps")
pytestmark = pytest.mark.filterwarnings("ignore:Setting (forward|backward):UserWarning")


def method(value, batch):
    return as_method("mine", value, rw.datasets.Arrays(batch.images, batch.labels))


@pytest.mark.parametrize("name", ["Saliency", "InputXGradient", "IntegratedGradients", "DeepLift", "GuidedBackprop"])
def test_an_object_gives_its_own_maps(name, network, model, batch, inputs):
    theirs = getattr(captum.attr, name)(network)
    expected = theirs.attribute(inputs.clone().requires_grad_(), target=batch.labels)
    assert torch.allclose(method(theirs, batch)(model, batch, KEY), expected, rtol=1e-5, atol=1e-7)


def test_an_object_around_the_normalized_model_gets_images(model, batch):
    theirs = captum.attr.IntegratedGradients(model)
    expected = theirs.attribute(batch.images.clone(), target=batch.labels, n_steps=7)
    ours = rw.attributions.Captum(theirs, n_steps=7)(model, batch, KEY)
    assert torch.allclose(ours, expected, rtol=1e-5, atol=1e-7)


def test_an_object_is_never_changed(network, model, batch):
    theirs = captum.attr.GuidedBackprop(network)
    before = dict(vars(theirs))
    method(theirs, batch)(model, batch, KEY)
    assert vars(theirs) == before
    assert theirs.forward_func is network
    assert theirs.backward_hooks == []
    assert not any(module._forward_hooks or module._backward_hooks for module in network.modules())
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("wrap", [lambda saliency: saliency, captum.attr.NoiseTunnel], ids=["alone", "wrapped"])
def test_an_object_around_another_network_is_refused(wrap, model, batch):
    other = nn.Sequential(nn.Flatten(), nn.Linear(768, 4))
    with pytest.raises(rw.errors.InputError, match=r"another network \(Sequential\).*build it around the same object"):
        method(wrap(captum.attr.Saliency(other)), batch)(model, batch, KEY)


def test_a_noise_tunnel_is_seeded_and_equals_captums(network, model, batch, inputs):
    theirs = captum.attr.NoiseTunnel(captum.attr.Saliency(network))
    ours = rw.attributions.Captum(theirs, nt_samples=4, nt_samples_batch_size=2, stdevs=0.3)
    with KEY.fold("captum", *batch.ids.tolist()).torch_rng():
        expected = theirs.attribute(
            inputs.clone().requires_grad_(), target=batch.labels, nt_samples=4, nt_samples_batch_size=2, stdevs=0.3
        )
    assert torch.allclose(ours(model, batch, KEY), expected, rtol=1e-5, atol=1e-7)
    by_class = rw.attributions.Captum(
        captum.attr.NoiseTunnel, init={"attribution_method": captum.attr.Saliency},
        nt_samples=4, nt_samples_batch_size=2, stdevs=0.3,
    )  # fmt: skip
    assert torch.equal(by_class(model, batch, KEY), ours(model, batch, KEY))


def test_the_class_of_a_noise_tunnel_alone_is_refused_with_the_line_to_write():
    with pytest.raises(rw.errors.InputError, match=r"NoiseTunnel\(Saliency\(net\)\)"):
        rw.attributions.Captum(captum.attr.NoiseTunnel)


@pytest.mark.parametrize(
    "name", ["LayerGradCam", "LayerGradientXActivation", "LayerIntegratedGradients", "GuidedGradCam"]
)
def test_layer_methods_are_objects_too(name, network, model, batch, inputs):
    theirs = getattr(captum.attr, name)(network, network.layer2)
    raw = theirs.attribute(inputs.clone().requires_grad_(), target=batch.labels).detach()
    maps = method(theirs, batch)(model, batch, KEY)
    # A layer of 8 channels is summed; what has 1 or 3 channels is left to the reduction of the experiment.
    expected = raw.sum(dim=1) if raw.shape[1] == 8 else raw
    assert torch.allclose(maps, expected, rtol=1e-4, atol=1e-6)
    by_name = rw.attributions.Captum(getattr(captum.attr, name), init={"layer": "layer2"})
    assert torch.allclose(by_name(model, batch, KEY), expected, rtol=1e-4, atol=1e-6)


def test_tokens_of_a_transformer_are_no_picture(model, batch):
    theirs = captum.attr.LayerGradientXActivation(model.network.network, model.network.network.flatten)
    with pytest.raises(rw.errors.ShapeError, match="height and width"):
        method(theirs, batch)(model, batch, KEY)


def test_the_internal_batch_size_is_respected(network, model, batch):
    sizes = []
    network.register_forward_pre_hook(lambda module, arguments: sizes.append(len(arguments[0])))
    rw.attributions.Captum(captum.attr.IntegratedGradients(network), n_steps=6, internal_batch_size=5)(
        model, batch, KEY
    )
    assert max(sizes) <= 5
    assert sum(sizes) >= 30  # 6 steps of 5 images


def test_a_convergence_delta_is_dropped(network, model, batch):
    ours = rw.attributions.Captum(captum.attr.IntegratedGradients(network), return_convergence_delta=True)
    assert ours(model, batch, KEY).shape == batch.images.shape


@pytest.mark.parametrize("name", ["LayerActivation", "NeuronGradient"])
def test_a_method_that_explains_no_class_is_refused(name, network):
    theirs = getattr(captum.attr, name)(network, network.layer2)
    with pytest.raises(rw.errors.InputError, match="takes no target"):
        rw.attributions.Captum(theirs)


def test_options_that_are_missing_or_unknown_are_refused_before_the_first_call(network):
    with pytest.raises(rw.errors.InputError, match="Occlusion of Captum needs sliding_window_shapes"):
        rw.attributions.Captum(captum.attr.Occlusion(network))
    with pytest.raises(rw.errors.InputError, match=r"no option 'abss': choose from .*abs"):
        rw.attributions.Captum(captum.attr.Saliency, abss=False)


def test_an_error_inside_captum_names_the_method(network, model, batch):
    ours = rw.attributions.Captum(captum.attr.Occlusion(network), sliding_window_shapes=(3, 99, 99))
    with pytest.raises(
        rw.errors.MethodError, match=r"Occlusion of captum failed on images \(5, 3, 16, 16\): Assertion"
    ):
        ours(model, batch, KEY)


def test_a_class_needs_no_wrapper_in_compare(model, batch):
    comparison = rw.compare(
        model, (batch.images, batch.labels),
        {"class": captum.attr.Saliency, "object": captum.attr.Saliency(model.network.network)},
        fractions=(0.5,), controls=(), progress=False,
    )  # fmt: skip
    by_class, by_object = comparison.ranking().set_index("method")["srg"][["class", "object"]]
    assert by_class == by_object


# ── regions ──────────────────────────────────────────────────────────────────────────────────────────────────────────

REGIONS = {
    "FeatureAblation": {},
    "ShapleyValueSampling": {"n_samples": 3},
    "Lime": {"n_samples": 20},
    "KernelShap": {"n_samples": 20},
}


@pytest.mark.filterwarnings("ignore:You are providing multiple inputs for Lime")
@pytest.mark.parametrize("name", REGIONS)
def test_methods_of_regions_explain_the_patches_of_the_experiment(name, network, model, batch, inputs):
    options, divided = REGIONS[name], UnitSetting(rw.Patches(5))(batch)
    theirs = getattr(captum.attr, name)(network)
    with KEY.fold("captum", *batch.ids.tolist()).torch_rng():
        expected = theirs.attribute(
            inputs.clone(), target=batch.labels, feature_mask=divided.units.labels[:, None], **options
        )
    maps = method(rw.attributions.Captum(theirs, **options), batch)(model, divided, KEY)
    assert torch.allclose(maps, expected.float(), rtol=1e-5, atol=1e-6)
    pooled = divided.units.pool(maps.sum(dim=1))
    assert torch.allclose(divided.units.on_pixels(pooled), maps.sum(dim=1).double(), atol=1e-5)  # one value per patch


def test_regions_of_each_image_are_explained_with_their_own_number_of_units(network, model, batch, inputs):
    """Captum takes the largest label of a batch as the number of regions of all its images."""
    size = batch.images.shape[-1]
    labels = torch.stack(
        [torch.arange(size**2).reshape(size, size) * (3 + row % 2) // size**2 for row in range(len(batch))]
    )
    divided = UnitSetting(rw.FeatureMask(labels, ids=batch.ids))(batch)
    maps = rw.attributions.Captum(captum.attr.FeatureAblation)(model, divided, KEY)
    theirs = captum.attr.FeatureAblation(network)
    for row in range(len(batch)):
        alone = theirs.attribute(
            inputs[row : row + 1], target=batch.labels[row : row + 1], feature_mask=labels[row][None, None]
        )
        assert torch.allclose(maps[row : row + 1], alone, rtol=1e-4, atol=1e-5)


def test_an_own_feature_mask_is_kept(model, batch):
    size = batch.images.shape[-1]
    halves = (torch.arange(size * size).reshape(1, 1, size, size) * 2 // size**2).long()
    ours = rw.attributions.Captum(captum.attr.FeatureAblation, feature_mask=halves)
    assert torch.equal(ours(model, UnitSetting(rw.Patches(4))(batch), KEY), ours(model, batch, KEY))
