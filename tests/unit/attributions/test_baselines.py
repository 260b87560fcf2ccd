"""Baselines are given in pixel space: where a model normalizes does not change what a color means."""

import captum.attr
import numpy as np
import pytest
import torch
from torch import nn

import roadworthy as rw
import worlds
from roadworthy.attributions.baselines import baseline_inputs, baseline_of, described_baseline
from roadworthy.attributions.gradients import class_gradient
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.models import small_cnn
from roadworthy.models.normalized import Normalized, as_model

KEY = Key(0).fold("maps")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's


class Inside(nn.Module):
    """The same classifier with its normalization inside, where nobody sees it."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.shift, self.scale = (torch.tensor(values).reshape(3, 1, 1) for values in (MEAN, STD))

    def forward(self, images):
        return self.network((images - self.shift) / self.scale)


with Key(3).torch_rng():
    NETWORK = small_cnn(classes=4, channels=3, width=4).eval()
OUTSIDE, INSIDE = Normalized(NETWORK, MEAN, STD).eval(), as_model(Inside(NETWORK)).eval()


@pytest.fixture(scope="module")
def batch():
    world = worlds.quadrants(n=5, size=16)
    return Batch(torch.arange(5), world.images, world.labels)


def correlation(a, b):
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


METHODS = {
    "IG": lambda baseline: rw.attributions.IntegratedGradients(steps=8, baseline=baseline),
    "input × gradient": lambda baseline: rw.attributions.InputXGradient(baseline=baseline),
    "IG-SG": lambda baseline: rw.attributions.smoothgrad(
        rw.attributions.IntegratedGradients(4, baseline=baseline), samples=2, sigma=0.1, units="pixels"
    ),
    "Captum's IG": lambda baseline: rw.attributions.Captum(
        captum.attr.IntegratedGradients, baseline=baseline, n_steps=8, channel_reduction="sum"
    ),
}
IMAGE = Key(5).uniform([0], (3, 16, 16))[0]


@pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize(
    "baseline", ["black", "blur", MEAN, 0.5, IMAGE, IMAGE.numpy()], ids=lambda value: str(value)[:9]
)
def test_a_baseline_means_the_same_wherever_the_model_normalizes(make, baseline, batch):
    # Per channel x·∂/∂x is the same in both spaces, so only float32 rounding is left: 1e-3 of the map's scale.
    outside, inside = (make(baseline)(model, batch, KEY) for model in (OUTSIDE, INSIDE))
    assert (outside - inside).abs().max() <= 1e-3 * outside.abs().max()


@pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)
def test_by_default_the_two_forms_of_a_network_are_nearly_equal(make, batch):
    outside, inside = (make("mean")(model, batch, KEY) for model in (OUTSIDE, INSIDE))
    black = make("black")(INSIDE, batch, KEY)
    # ImageNet's mean is .485, .456, .406: near gray .5, far from black.
    assert correlation(outside, inside) > max(0.8, correlation(outside, black))


def test_the_default_is_the_normalization_mean(batch):
    ig, inputs = rw.attributions.IntegratedGradients(steps=3), OUTSIDE.normalize(batch.images)
    positions, weights = np.polynomial.legendre.leggauss(3)
    total = torch.zeros_like(inputs)
    for position, weight in zip(((positions + 1) / 2).tolist(), (weights / 2).tolist(), strict=True):
        total += weight * class_gradient(NETWORK, position * inputs, batch.labels)  # from zero in normalized space
    expected = (inputs * total).sum(dim=1)
    # Gradients of the steps are summed before the first convolution: float32 rounding, 1e-5 of the map's scale.
    assert (ig(OUTSIDE, batch, KEY) - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_without_a_normalization_mean_the_default_is_gray(batch):
    for model in (INSIDE, Normalized(Inside(NETWORK), std=0.5)):
        default, gray = (rw.attributions.IntegratedGradients(3, baseline=b)(model, batch, KEY) for b in ("mean", 0.5))
        assert torch.equal(default, gray)
        black = rw.attributions.IntegratedGradients(3, baseline="black")(model, batch, KEY)
        assert not torch.allclose(default, black, rtol=0.1)


def test_a_blurred_baseline_belongs_to_its_own_image(batch):
    whole = baseline_inputs("blur", OUTSIDE, batch.images)
    assert whole.shape == batch.images.shape
    assert torch.equal(baseline_inputs("blur", OUTSIDE, batch.images[3:4])[0], whole[3])
    inputs = OUTSIDE.normalize(batch.images)
    assert whole.std(dim=(2, 3)).mean() < inputs.std(dim=(2, 3)).mean()


@pytest.mark.parametrize("baseline", ["mean", "black"])
@pytest.mark.parametrize(
    ("method", "options"),
    [
        (captum.attr.DeepLift, {}),
        (captum.attr.GradientShap, {"n_samples": 3}),
        (captum.attr.FeatureAblation, {}),
        (captum.attr.Occlusion, {"sliding_window_shapes": (3, 8, 8)}),
        (captum.attr.LayerIntegratedGradients, {"init": {"layer": "features.0"}, "n_steps": 3}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.filterwarnings("ignore:Setting forward", "ignore:Input Tensor", "ignore::DeprecationWarning")
def test_captum_methods_get_the_baseline_in_the_shape_they_accept(method, options, baseline, batch):
    if method is captum.attr.DeepLift:
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 14 * 14, 4))
        model = Normalized(network, MEAN, STD)
    else:
        model = OUTSIDE
    bridge = rw.attributions.Captum(method, baseline=baseline, **options)
    zero = model.normalize(torch.zeros(1, 3, 16, 16)) if baseline == "black" else torch.zeros(1, 3, 16, 16)
    given = rw.attributions.Captum(method, baselines=zero, **options)
    assert torch.allclose(bridge(model, batch, KEY), given(model, batch, KEY), atol=1e-5)


class Own:
    """A base of a user, with the three arguments that bases have if they use no baseline."""

    def maps(self, network, inputs, targets):
        return class_gradient(network, inputs, targets)


class OwnFromBaseline:
    baseline = "black"

    def maps(self, network, inputs, targets, baseline):
        assert torch.equal(baseline, OUTSIDE.normalize(torch.zeros(1, 3, 16, 16)))
        return (inputs - baseline) * class_gradient(network, inputs, targets)


def test_bases_of_users_get_a_baseline_if_they_take_one(batch):
    ours = {
        "plain": rw.attributions.smoothgrad(rw.attributions.Gradient(), 2, 0.1),
        "black": rw.attributions.smoothgrad(rw.attributions.InputXGradient(baseline="black"), 2, 0.1),
    }
    own = {
        "plain": rw.attributions.smoothgrad(Own(), 2, 0.1),
        "black": rw.attributions.smoothgrad(OwnFromBaseline(), 2, 0.1),
    }
    expected = explain(ours, OUTSIDE, batch, KEY)
    assert all(torch.equal(maps, expected[name]) for name, maps in explain(own, OUTSIDE, batch, KEY).items())


@pytest.mark.parametrize(
    ("baseline", "error", "message"),
    [
        ("gray", rw.errors.InputError, "'gray'.*'mean', 'black' or 'blur'"),
        ((0.5, 128.0, 0.5), rw.errors.RangeError, "128.*in \\[0, 1\\]"),
        (float("nan"), rw.errors.RangeError, "nan"),
        (torch.zeros(2, 2), rw.errors.ShapeError, "\\(2, 2\\)"),
        ({"a": 1}, rw.errors.InputError, "give 'mean'"),
    ],
    ids=str,
)
def test_an_unusable_baseline_is_an_error_at_once(baseline, error, message):
    for make in METHODS.values():
        with pytest.raises(error, match=message):
            make(baseline)


@pytest.mark.parametrize(
    ("baseline", "message"), [((0.1, 0.2), "2 channels, .* 3"), (torch.zeros(3, 8, 8), "\\(3, 8, 8\\).*16")], ids=str
)
def test_a_baseline_that_does_not_fit_the_images_is_an_error(baseline, message, batch):
    with pytest.raises(rw.errors.ShapeError, match=message):
        rw.attributions.IntegratedGradients(baseline=baseline)(OUTSIDE, batch, KEY)


def test_a_captum_method_without_baselines_refuses_one():
    with pytest.raises(rw.errors.InputError, match="no baselines"):
        rw.attributions.Captum(captum.attr.Saliency, baseline="black")
    with pytest.raises(rw.errors.InputError, match="baselines= is given"):
        rw.attributions.Captum(captum.attr.IntegratedGradients, baseline="black", baselines=0)


def test_the_baseline_of_an_ensemble_is_that_of_its_base():
    ig = rw.attributions.IntegratedGradients(baseline=IMAGE)
    same = rw.attributions.IntegratedGradients(baseline=IMAGE.clone())
    assert ig == same
    assert hash(ig) == hash(same)
    blurred = rw.attributions.Blurred(rw.attributions.vargrad(ig, 2, 0.1))
    assert baseline_of(blurred) == ig.baseline
    assert baseline_of(rw.attributions.smoothgrad(rw.attributions.GuidedBackprop(), 2, 0.1)) is None
    assert baseline_of(rw.attributions.Captum(captum.attr.Saliency)) is None
    assert described_baseline(ig.baseline, True) == "an image"


def test_what_a_users_method_calls_its_baseline_is_its_own_affair():
    class Mine:
        baseline, source = "zeros", IMAGE

    assert baseline_of(Mine()) is None


def test_sigma_in_pixels_is_divided_by_the_standard_deviation_of_the_model(batch):
    model = Normalized(NETWORK, MEAN, 0.25)
    pixels, units = (
        rw.attributions.smoothgrad(rw.attributions.Gradient(), 2, sigma, units=units)(model, batch, KEY)
        for sigma, units in ((0.1, "pixels"), (0.4, "model"))  # .1 / .25 = .4
    )
    assert torch.allclose(pixels, units, atol=1e-4 * float(units.abs().max()))
    with pytest.raises(rw.errors.InputError, match="'percent'"):
        rw.attributions.smoothgrad(rw.attributions.Gradient(), 2, 0.1, units="percent")
