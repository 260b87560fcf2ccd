"""Attributions against Captum and against models with known gradients."""

import captum.attr
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

import roadworthy as rw
import worlds
from roadworthy.attributions.controls import blurred
from roadworthy.attributions.maps import as_maps
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.orders import most_relevant_first
from roadworthy.evaluation.sweep import explain
from roadworthy.models import small_cnn
from roadworthy.models.normalized import Normalized, as_model

KEY = Key(0).fold("maps")


@pytest.fixture(scope="module")
def model():
    with Key(3).torch_rng():
        network = small_cnn(classes=4, channels=3, width=4)
    return Normalized(network, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.3)).eval()


@pytest.fixture(scope="module")
def batch():
    world = worlds.quadrants(n=5, size=16)
    return Batch(torch.arange(5), world.images, world.labels)


def close(ours, theirs):
    """Equal up to float32 rounding: 1e-4 of the map's scale."""
    return (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


def test_gradient_methods_equal_captums(model, batch):
    network, inputs = model.network, model.normalize(batch.images).requires_grad_()
    theirs = {
        "ig": captum.attr.IntegratedGradients(network).attribute(inputs, target=batch.labels, n_steps=7),
        "gradient": captum.attr.Saliency(network).attribute(inputs, target=batch.labels, abs=False),
        "ixg": captum.attr.InputXGradient(network).attribute(inputs, target=batch.labels),
    }
    with pytest.warns(UserWarning, match="hooks on ReLU"):
        theirs["gb"] = captum.attr.GuidedBackprop(network).attribute(inputs, target=batch.labels)
    ours = {
        "ig": rw.attributions.IntegratedGradients(steps=7),
        "gradient": rw.attributions.Gradient(),
        "ixg": rw.attributions.InputXGradient(),
        "gb": rw.attributions.GuidedBackprop(),
    }
    for name, maps in explain(ours, model, batch, KEY).items():
        assert close(maps, theirs[name].detach().sum(dim=1)), name


def test_channels_are_reduced_as_named(model, batch):
    inputs = model.normalize(batch.images).requires_grad_()
    raw = captum.attr.Saliency(model.network).attribute(inputs, target=batch.labels, abs=False)
    reductions = {"sum": raw.sum(dim=1), "abs_sum": raw.abs().sum(dim=1), "max_abs": raw.abs().amax(dim=1)}
    for reduction, expected in reductions.items():
        assert close(rw.attributions.Gradient(channel_reduction=reduction)(model, batch, KEY), expected)


def test_ig_starts_from_zero_in_normalized_space_and_is_complete(model, batch):
    maps = rw.attributions.IntegratedGradients(steps=200)(model, batch, KEY)
    inputs = model.normalize(batch.images)
    targets = batch.labels[:, None]
    change = (model.network(inputs) - model.network(torch.zeros_like(inputs))).gather(1, targets)[:, 0]
    # Completeness: a map sums to the change of the logit, up to the integration error of 200 steps.
    assert torch.allclose(maps.sum(dim=(1, 2)), change, atol=2e-2)


def test_the_three_ensembles_equal_the_formulas_of_noise_tunnel_on_the_same_samples(model, batch):
    base, samples, sigma = rw.attributions.Gradient(), 6, 0.3
    inputs = model.normalize(batch.images)
    noisy = [inputs + sigma * KEY.fold("sample", s).normal(batch.ids, tuple(inputs.shape[1:])) for s in range(samples)]
    maps = torch.stack([base.maps(model.network, sample, batch.labels) for sample in noisy]).double()
    expected = {
        "SG": maps.mean(dim=0), "SQ": (maps**2).mean(dim=0), "Var": (maps**2).mean(dim=0) - maps.mean(dim=0) ** 2,
    }  # fmt: skip
    ours = {
        "SG": rw.attributions.smoothgrad(base, samples, sigma),
        "SQ": rw.attributions.smoothgrad_squared(base, samples, sigma),
        "Var": rw.attributions.vargrad(base, samples, sigma),
    }
    for name, maps in explain(ours, model, batch, KEY).items():
        assert close(maps, expected[name].sum(dim=1).float()), name


class Counting(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network, self.images, self.calls = network, 0, 0

    def forward(self, inputs):
        self.images += len(inputs)
        self.calls += 1
        return self.network(inputs)


def test_the_papers_eight_methods_share_their_samples(batch):
    counting = Counting(small_cnn(classes=4, channels=3, width=4))
    explain(rw.attributions.paper_methods(steps=5, ig_samples=3, gb_samples=4), as_model(counting).eval(), batch, KEY)
    # IG 5, its three ensembles together 3·5, GB 1, its three 4: 25 passes, where three NoiseTunnels each need 63.
    # Before them, the network is tried once on two images at two positions, in both ways: 8 images.
    assert counting.images == 25 * len(batch) + 8


def test_the_settings_of_the_paper_cost_901_passes_and_a_trial(batch):
    counting = Counting(small_cnn(classes=4, channels=3, width=1))
    explain(rw.attributions.paper_methods(), as_model(counting).eval(), batch[:1], KEY)
    # Before them, the network is tried once on two images of noise at two positions, in both ways: 8 images.
    assert counting.images == 901 + 8


def test_steps_and_samples_of_few_images_fill_their_passes(model, batch):
    # 5 images of 16²: 51 copies in a pass of 64 · 32² pixels. IG: 7 steps in one pass; its ensemble: one per sample;
    # GB: one; its ensemble: 100 samples in two passes. Before them, the network is tried in two passes each way.
    counting = Counting(model.network)
    methods = rw.attributions.paper_methods(steps=7, ig_samples=3, gb_samples=100)
    together = explain(methods, Normalized(counting, (0.5, 0.4, 0.3), (0.2, 0.2, 0.3)).eval(), batch, KEY)
    assert counting.calls == 1 + 3 + 1 + 2 + 4
    for name, maps in together.items():
        alone = torch.cat([explain({name: methods[name]}, model, batch[row : row + 1], KEY)[name] for row in range(5)])
        assert close(maps, alone), name


class SharedActivation(nn.Module):
    """Two layers that share one activation."""

    def __init__(self, activation):
        super().__init__()
        with Key(8).torch_rng():
            self.first, self.second = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
            self.last = nn.Linear(6, 4)
        self.activation = activation

    def forward(self, inputs):
        hidden = self.activation(self.second(self.activation(self.first(inputs))))
        return self.last(hidden.mean(dim=(2, 3)))


def guided_by_hand(network, inputs, labels):
    """Springenberg 2014, layer by layer: at a ReLU keep a gradient where both it and the activation are positive."""
    first = network.first(inputs)
    second = network.second(first.relu())
    gradient = network.last.weight[labels] / (inputs.shape[2] * inputs.shape[3])
    gradient = gradient[:, :, None, None].expand_as(second)
    for layer, before in ((network.second, second), (network.first, first)):
        gradient = gradient.clamp(min=0) * (before > 0)
        gradient = F.conv_transpose2d(gradient, layer.weight, padding=1)
    return gradient


@pytest.mark.parametrize(
    "activation",
    [nn.ReLU(), nn.ReLU(inplace=True), F.relu, torch.relu_],
    ids=["module", "in-place", "functional", "relu_"],
)  # fmt: skip
def test_guided_backprop_guides_in_place_shared_and_functional_relus(activation, batch):
    network = SharedActivation(activation).eval()
    ours = rw.attributions.GuidedBackprop().maps(network, batch.images, batch.labels)
    assert close(ours, guided_by_hand(network, batch.images, batch.labels).detach())


def test_guided_backprop_of_a_model_without_relus_is_an_error(batch):
    with pytest.raises(rw.errors.ModelError, match="only Gelu"):
        rw.attributions.GuidedBackprop()(as_model(SharedActivation(F.gelu)), batch, KEY)


def test_guided_backprop_warns_about_other_activations(batch):
    mixed = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.SiLU(), nn.Flatten(), nn.LazyLinear(4))
    mixed(batch.images)
    with pytest.warns(rw.errors.NotGuidedWarning, match="Silu"):
        rw.attributions.GuidedBackprop()(as_model(mixed), batch, KEY)


def test_a_model_that_detaches_its_input_is_an_error(batch):
    with pytest.raises(rw.errors.ModelError, match="detaches"):
        rw.attributions.Gradient()(as_model(lambda images: worlds.Quadrants()(images).detach()), batch, KEY)


def test_captum_methods_can_be_used(model, batch):
    saliency = rw.attributions.Captum(captum.attr.Saliency, abs=False)
    assert close(saliency(model, batch, KEY).sum(dim=1), rw.attributions.Gradient()(model, batch, KEY))
    absolute = rw.attributions.Captum(captum.attr.Saliency, channel_reduction="abs_sum", abs=False)
    assert torch.equal(absolute(model, batch, KEY), saliency(model, batch, KEY).abs().sum(dim=1))
    shap = rw.attributions.Captum(captum.attr.GradientShap, baselines=torch.zeros(1, 3, 16, 16), n_samples=3)
    assert torch.equal(shap(model, batch, KEY), shap(model, batch, KEY))


def test_a_cam_is_upsampled_with_a_warning(model, batch):
    layer = [module for module in model.network.modules() if isinstance(module, nn.Conv2d)][-1]
    cam = rw.attributions.Captum(captum.attr.LayerGradCam, init={"layer": layer})
    with pytest.warns(rw.errors.UpsampledMapsWarning, match="cam: maps of .* were upsampled to 16×16"):
        maps = explain({"cam": cam}, model, batch, KEY)["cam"]
    assert maps.shape == (5, 16, 16)


def test_edges_are_sobel_magnitudes_within_each_image():
    step = torch.zeros(2, 1, 5, 6)
    step[1, :, :, 3:] = 1  # image 0 is flat: image 1 must not leak into it
    maps = rw.attributions.Edges()(None, Batch(torch.arange(2), step, torch.zeros(2)), KEY)
    assert (maps[0] == 0).all()
    # Sobel on a vertical step of height 1: (1 + 2 + 1)·1 on both sides of the edge.
    assert maps[1, 2].tolist() == [0, 0, 4, 4, 0, 0]


def test_center_peaks_in_the_middle(batch):
    maps = rw.attributions.Center()(None, batch, KEY)[0]
    assert maps.argmax().item() in (7 * 16 + 7, 7 * 16 + 8, 8 * 16 + 7, 8 * 16 + 8)
    assert torch.allclose(maps, maps.flip(0))
    assert torch.allclose(maps, maps.T)


def test_derived_methods_share_one_computation(batch):
    counting = Counting(worlds.Quadrants())
    ig = rw.attributions.InputXGradient(baseline="black")
    methods = {"ig": ig, "soft": rw.attributions.Blurred(ig, 1.5), "turned": rw.attributions.Inverted(ig)}
    maps = explain(methods, as_model(counting), batch, KEY)
    assert counting.calls == 1
    assert torch.equal(maps["turned"], -maps["ig"])
    assert maps["soft"].std() < maps["ig"].std()
    # A blur conserves the sum, except at the border.
    assert torch.allclose(maps["soft"].mean(), maps["ig"].mean(), rtol=0.1)


def test_blurring_stays_within_each_channel_of_each_image():
    maps = torch.zeros(2, 3, 9, 9)
    maps[1, 1, 4, 4] = 1
    soft = blurred(maps, sigma=1.0)
    assert torch.allclose(soft.sum(dim=(2, 3)), torch.tensor([[0.0, 0, 0], [0, 1, 0]]), atol=1e-3)
    assert torch.equal(soft[1, 1], blurred(maps[:, 1], sigma=1.0)[1])
    assert soft.max() < 0.2  # 1/(2π) at the peak of a Gaussian with σ = 1


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_precomputed_maps_are_read_from_files(tmp_path, suffix):
    maps = Key(0).uniform(range(6), (4, 4))
    path = tmp_path / f"maps{suffix}"
    if suffix == ".npy":
        np.save(path, maps.numpy())
    elif suffix == ".npz":
        np.savez(path, maps.numpy())
    else:
        save_file({"maps": maps}, path)
    loaded = rw.attributions.PrecomputedMaps.load(path, ids=torch.arange(6) * 10)
    batch = Batch(torch.tensor([50, 0]), torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64))
    assert torch.equal(loaded(None, batch, KEY), maps[[5, 0]])


def test_pickles_and_damaged_files_are_errors(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{"evil": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "damaged.safetensors").write_bytes(b"\xff" * 40)
    (tmp_path / "maps.pt").write_bytes(b"")
    for name in ("objects.npy", "damaged.safetensors", "maps.pt", "missing.npy"):
        with pytest.raises(rw.errors.DataError, match=name):
            rw.attributions.PrecomputedMaps.load(tmp_path / name)


def test_infinite_values_in_maps_to_upsample_are_an_error():
    # Between inf and −inf bilinear interpolation gives NaN.
    maps, images = torch.zeros(3, 4, 4), torch.zeros(3, 1, 16, 16)
    maps[1, 2, 2], maps[1, 2, 3] = float("inf"), -float("inf")
    with pytest.raises(rw.errors.InputError, match=r"cam: .*images 71"):
        as_maps("cam", maps, torch.tensor([70, 71, 72]), images)


def test_infinite_values_of_full_size_are_ranked():
    maps = torch.zeros(1, 2, 2)
    maps[0, 0, 1], maps[0, 1, 0] = float("inf"), -float("inf")
    checked = as_maps("mine", maps, torch.tensor([0]), torch.zeros(1, 1, 2, 2))
    assert most_relevant_first(checked, torch.tensor([0]), KEY).flatten()[[1, 2]].tolist() == [0, 3]


def test_complex_and_masked_maps_are_errors():
    ids, images = torch.arange(2), torch.zeros(2, 1, 4, 4)
    with pytest.raises(rw.errors.InputError, match="mine: complex"):
        as_maps("mine", torch.zeros(2, 4, 4, dtype=torch.complex64), ids, images)
    with pytest.raises(rw.errors.InputError, match=r"mine: .*masked"):
        as_maps("mine", np.ma.masked_less(np.zeros((2, 4, 4)), 1), ids, images)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.0], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_maps_keep_an_order_that_float32_would_lose(scale, dtype):
    # 2²⁴ + {0, 1, 2, 3}: float32 has no odd numbers above 2²⁴.
    values = (np.arange(4) + 2**24).reshape(1, 2, 2).astype(dtype)
    maps = values * scale if dtype is np.float64 else values
    checked = as_maps("mine", maps, torch.tensor([0]), torch.zeros(1, 1, 2, 2))
    assert most_relevant_first(checked, torch.tensor([0]), KEY).flatten().tolist() == [3, 2, 1, 0]


def test_integers_that_no_float_can_order_are_an_error():
    maps = (torch.arange(4) + 2**53).reshape(1, 2, 2)  # 2⁵³ + 1 is no float64
    with pytest.raises(rw.errors.InputError, match=r"mine: .*int64"):
        as_maps("mine", maps, torch.tensor([0]), torch.zeros(1, 1, 2, 2))
