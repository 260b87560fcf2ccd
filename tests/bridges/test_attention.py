"""Methods for vision transformers against slow, literal references, on the attentions that the libraries compute."""

import pytest
import torch

import vits
import worlds
from roadworthy.attributions import AttentionRollout, GradientAttention, IntegratedGradients, RawAttention, TokenGradCam
from roadworthy.core.errors import ModelError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.evaluation.units import Patches, UnitSetting
from roadworthy.models.normalized import Normalized

KEY = Key(0)
BATCH = Batch(torch.arange(4), Key(1).uniform(range(4), (3, 16, 16)), torch.tensor([0, 3, 1, 3]))


@pytest.fixture(params=vits.KINDS)
def kind(request):
    return request.param


@pytest.fixture
def model(kind):
    return Normalized(vits.vit(kind), 0.5, 0.25).eval()


def prefix_and_rows(kind, tokens):
    """How many tokens precede the patches, and which the head reads: as the libraries document their heads."""
    prefix = {"timm-average": 0, "hf-vit": 1, "timm": 1, "timm-registers": 3}.get(kind, 2)
    if kind in vits.POOLED:
        return prefix, range(prefix, tokens)
    return prefix, range(2) if kind in ("hf-deit-teacher", "timm-distilled") else range(1)


def image_attentions(model, row, gradients=False):
    """Layer by layer (heads, tokens, tokens) of one image, and the gradients of its class logit."""
    logits, attentions = model.transformer.attentions(BATCH.images[row : row + 1].requires_grad_(gradients))
    slopes = torch.autograd.grad(logits[0, BATCH.labels[row]], attentions) if gradients else attentions
    BATCH.images.requires_grad_(False)
    return [one[0].detach().double() for one in attentions], [one[0].double() for one in slopes]


def head_row(kind, matrix):
    prefix, rows = prefix_and_rows(kind, len(matrix))
    return (sum(matrix[row] for row in rows) / len(rows))[prefix:].reshape(4, 4)


def rollout(kind, model, row):
    attentions, _ = image_attentions(model, row)
    tokens = attentions[0].shape[-1]
    result = torch.eye(tokens, dtype=torch.float64)
    for heads in attentions:  # Abnar & Zuidema (2020), section 3: A = 0.5 W + 0.5 I, multiplied from the left
        mixed = torch.zeros(tokens, tokens, dtype=torch.float64)
        for i in range(tokens):
            for j in range(tokens):
                mixed[i, j] = 0.5 * sum(head[i, j] for head in heads) / len(heads) + 0.5 * (i == j)
        assert torch.allclose(mixed.sum(dim=1), torch.ones(tokens, dtype=torch.float64))  # normalized already
        result = mixed @ result
    return head_row(kind, result)


def gradient_attention(kind, model, row):
    attentions, gradients = image_attentions(model, row, gradients=True)
    result = torch.eye(attentions[0].shape[-1], dtype=torch.float64)
    for heads, slopes in zip(attentions, gradients, strict=True):
        mean = sum(torch.maximum(a * g, torch.zeros(())) for a, g in zip(heads, slopes, strict=True)) / len(heads)
        result = result + mean @ result
    return head_row(kind, result)


def raw(kind, model, row):
    attentions, _ = image_attentions(model, row)
    return head_row(kind, sum(attentions[-1]) / len(attentions[-1]))


def grad_cam(kind, model, row):
    """With a hook on the norm before the last attention, as its users do."""
    network = model.network.network
    norm = network.blocks[-1].norm1 if kind.startswith("timm") else network.base_model.layers[-1].layernorm_before
    kept = []
    hook = norm.register_forward_hook(lambda module, inputs, output: kept.append(output))
    logits = model(BATCH.images[row : row + 1])
    hook.remove()
    (gradient,) = torch.autograd.grad(logits[0, BATCH.labels[row]], kept[0])
    prefix, _ = prefix_and_rows(kind, kept[0].shape[1])
    tokens, slopes = kept[0][0, prefix:].detach(), gradient[0, prefix:]
    weights = [slopes[:, feature].mean() for feature in range(tokens.shape[1])]
    return sum(weight * tokens[:, feature] for feature, weight in enumerate(weights)).reshape(4, 4)


METHODS = {
    "rollout": (AttentionRollout(), rollout),
    "gradient": (GradientAttention(), gradient_attention),
    "raw": (RawAttention(), raw),
    "grad-cam": (TokenGradCam(), grad_cam),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_equal_their_literal_references(name, kind, model):
    method, reference = METHODS[name]
    maps = method(model, BATCH, KEY)
    assert maps.shape == (4, 4, 4)
    for row in range(4):
        expected = reference(kind, model, row).float()
        assert torch.allclose(maps[row], expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_grad_cam_with_relu_has_no_negative_values():
    model = Normalized(vits.vit()).eval()
    signed, positive = TokenGradCam()(model, BATCH, KEY), TokenGradCam(relu=True)(model, BATCH, KEY)
    assert (signed < 0).any()
    assert torch.equal(positive, signed.clamp(min=0))


def test_frozen_parameters_have_gradients_of_attention_too():
    model = Normalized(vits.vit()).eval()
    free = [method(model, BATCH, KEY) for method in (GradientAttention(), TokenGradCam())]
    model.requires_grad_(False)
    frozen = [method(model, BATCH, KEY) for method in (GradientAttention(), TokenGradCam())]
    assert all(torch.equal(a, b) for a, b in zip(free, frozen, strict=True))


def test_under_patches_of_its_size_a_map_is_not_upsampled():
    model = Normalized(vits.vit()).eval()
    batch = UnitSetting(Patches(4))(BATCH)
    methods = {"rollout": AttentionRollout(), "IG": IntegratedGradients(2)}
    maps = explain(methods, model, batch, KEY)  # no warning, which would be an error
    assert torch.equal(maps["rollout"][:, ::4, ::4], AttentionRollout()(model, BATCH, KEY))
    assert torch.equal(maps["rollout"], maps["rollout"][:, ::4, ::4].repeat_interleave(4, 1).repeat_interleave(4, 2))


@pytest.mark.parametrize("method", [method for method, _ in METHODS.values()], ids=METHODS)
def test_other_networks_are_refused_by_name(method):
    world = worlds.quadrants(n=4, size=16)
    with pytest.raises(ModelError, match=rf"{type(method).__name__} reads the tokens of a vision transformer.*'ig'"):
        method(Normalized(world.model), BATCH, KEY)


def test_a_head_without_rows_of_attention_is_refused_and_grad_cam_needs_none():
    model = Normalized(vits.vit("timm", class_token=False, global_pool="map")).eval()
    with pytest.raises(ModelError, match="pools by map, not by a mean"):
        AttentionRollout()(model, BATCH, KEY)
    assert TokenGradCam()(model, BATCH, KEY).shape == (4, 4, 4)
