"""Vision transformers of the real libraries: attentions, and predictions without tokens, against literal ones."""

import pytest
import torch

import vits
from libraries import library
from pretend_device import DEVICE, PretendDevice
from roadworthy.core.errors import InputError, ModelError, RangeError, ShapeError
from roadworthy.core.random import Key
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.token_removal import WithoutTokens, evaluator_of, transformer_of
from roadworthy.imputers import NoisyLinear, TokenRemoval
from roadworthy.models.normalized import Normalized

IMAGES = Key(1).uniform(range(5), (3, vits.SIZE, vits.SIZE))
PREFIX = {"timm-average": 0, "hf-vit": 1, "timm": 1, "timm-registers": 3}  # others: class and distillation


@pytest.fixture(params=vits.KINDS)
def kind(request):
    return request.param


@pytest.fixture
def network(kind):
    return vits.vit(kind)


@pytest.fixture
def model(network):
    return Normalized(network, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.3)).eval()


def some_patches(removed_per_image):
    """bool (5, 16), another choice in each image, and the same on pixels (5, 16, 16)."""
    order = Key(2).uniform(range(5), (16,)).argsort(dim=1)
    patches = torch.zeros(5, 16, dtype=torch.bool)
    for row, count in enumerate(removed_per_image):
        patches[row, order[row, :count]] = True
    return patches, patches.reshape(5, 4, 4).repeat_interleave(4, 1).repeat_interleave(4, 2)


def deleted(network, inputs, patches, prefix):
    """Literally: embed, delete the removed tokens of this one image, and go through the layers of the library."""
    left = torch.cat([torch.ones(prefix, dtype=torch.bool), ~patches])
    if hasattr(network, "patch_embed"):
        tokens = network._pos_embed(network.patch_embed(inputs))[:, left]
        return network.forward_head(network.norm(network.blocks(network.norm_pre(tokens))))
    base = network.base_model
    tokens = base.embeddings(inputs)[:, left]
    for layer in base.layers:
        tokens = layer(tokens)
    tokens = base.layernorm(tokens)
    if hasattr(network, "distillation_classifier"):
        return (network.cls_classifier(tokens[:, 0]) + network.distillation_classifier(tokens[:, 1])) / 2
    return network.classifier(tokens[:, 0])


@pytest.mark.parametrize("counts", [[5] * 5, [15] * 5, [0, 3, 7, 7, 15]], ids=str)
def test_removed_tokens_are_gone_as_if_deleted_one_image_at_a_time(kind, network, model, counts):
    patches, removed = some_patches(counts)
    found = evaluator_of(model, TokenRemoval())(IMAGES, removed)
    with torch.no_grad():
        expected = torch.cat([
            deleted(network, model.normalize(IMAGES[row : row + 1]), patches[row], PREFIX.get(kind, 2))
            for row in range(5)
        ]).softmax(dim=1)  # fmt: skip
    assert torch.allclose(found, expected, atol=1e-6)
    assert (found - NoRetrain(model)(IMAGES, removed)).abs().max() > (0.01 if max(counts) else 0)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("kind", ["hf-vit", "hf-deit"])
def test_removal_equals_the_attention_mask_of_transformers(kind, network, model):
    patches, removed = some_patches([6] * 5)
    kept = torch.cat([torch.ones(5, PREFIX.get(kind, 2), dtype=torch.bool), ~patches], dim=1)
    with torch.no_grad():
        masked = network(model.normalize(IMAGES), attention_mask=kept).logits.softmax(dim=1)
    assert torch.allclose(evaluator_of(model, TokenRemoval())(IMAGES, removed), masked, atol=1e-6)


def test_what_is_in_a_removed_patch_does_not_matter(model):
    _, removed = some_patches([6] * 5)
    evaluator = evaluator_of(model, TokenRemoval())
    changed = torch.where(removed[:, None], torch.tensor(123.0), IMAGES)
    assert torch.equal(evaluator(IMAGES, removed), evaluator(changed, removed))


def test_without_removal_the_model_predicts_as_ever(model):
    nothing = torch.zeros(5, 16, 16, dtype=torch.bool)
    assert torch.allclose(
        evaluator_of(model, TokenRemoval())(IMAGES, nothing), NoRetrain(model)(IMAGES, nothing), atol=1e-6
    )


def test_without_any_patch_a_class_token_answers_alike_for_all_images_and_a_pooled_head_cannot(kind, model):
    everything = torch.ones(5, 16, 16, dtype=torch.bool)
    evaluator = evaluator_of(model, TokenRemoval())
    if kind in vits.POOLED:
        with pytest.raises(RangeError, match=r"nothing is left to pool.*smaller fractions"):
            evaluator(IMAGES, everything)
    else:
        answers = evaluator(IMAGES, everything)
        assert torch.allclose(answers, answers[:1].expand(5, -1), atol=1e-6)


def test_half_a_patch_cannot_be_removed():
    model = Normalized(vits.vit())
    removed = torch.zeros(5, 16, 16, dtype=torch.bool)
    removed[3, :2, :4] = True
    with pytest.raises(InputError, match=r'whole tokens, 4×4 pixels each.*units="tokens", or rw.Patches\(4\)'):
        evaluator_of(model, TokenRemoval())(IMAGES, removed)


def test_other_imputers_have_the_usual_evaluator():
    assert isinstance(evaluator_of(Normalized(vits.vit()), NoisyLinear()), NoRetrain)
    assert isinstance(evaluator_of(Normalized(vits.vit()), TokenRemoval()), WithoutTokens)


# ── attentions ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["hf-vit", "hf-deit", "hf-deit-teacher"])
def test_attentions_are_those_that_transformers_returns(kind, attention):
    model = Normalized(vits.vit(kind, attn_implementation=attention), 0.5, 0.25)
    with torch.no_grad():
        logits, found = model.transformer.attentions(IMAGES)
        expected = vits.vit(kind, attn_implementation="eager")(model.normalize(IMAGES), output_attentions=True)
    assert torch.allclose(logits, model(IMAGES), atol=1e-6)
    assert len(found) == len(expected.attentions) == 3
    for own, theirs in zip(found, expected.attentions, strict=True):
        assert torch.allclose(own, theirs, atol=1e-6)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in vits.KINDS if kind.startswith("timm")])
def test_attentions_of_timm_are_softmaxed_products_of_queries_and_keys(kind, network, model, fused):
    for block in network.blocks:
        block.attn.fused_attn = fused
    with torch.no_grad():
        logits, found = model.transformer.attentions(IMAGES)
        tokens = network._pos_embed(network.patch_embed(model.normalize(IMAGES)))
        for block, own in zip(network.blocks, found, strict=True):
            count = tokens.shape[1]
            query, key, _ = block.attn.qkv(block.norm1(tokens)).reshape(5, count, 3, 2, 8).permute(2, 0, 3, 1, 4)
            assert torch.allclose(own, (query @ key.mT / 8**0.5).softmax(dim=-1), atol=1e-6)
            tokens = block(tokens)
    assert torch.allclose(logits, model(IMAGES), atol=1e-6)


# ── recognition ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_known_of_a_transformer(kind, model):
    transformer = model.transformer
    assert transformer.patch_size == (4, 4)
    assert transformer.grid(16, 16) == (4, 4)
    assert transformer.prefix_tokens == PREFIX.get(kind, 2)
    assert transformer.needs_patches == (kind in vits.POOLED)
    both = kind in ("hf-deit-teacher", "timm-distilled")
    read = list(range(PREFIX[kind], 6)) if kind in vits.POOLED else [0, 1] if both else [0]
    assert transformer.read_by_head(6) == read
    with pytest.raises(ShapeError, match="16×16 pixels, these have 32×32"):
        transformer.grid(32, 32)


class Wrapped(torch.nn.Module):
    def __init__(self, inner, scale=1):
        super().__init__()
        self.inner, self.scale = inner, scale

    def forward(self, images):
        larger = torch.nn.functional.interpolate(images, scale_factor=self.scale)
        return self.inner(larger).logits


def test_a_transformer_inside_another_module_or_behind_a_function_is_found():
    network = vits.vit()
    _, removed = some_patches([6] * 5)
    expected = evaluator_of(Normalized(network), TokenRemoval())(IMAGES, removed)
    for outer in (Wrapped(network), lambda images: network(images).logits):
        assert torch.equal(evaluator_of(Normalized(outer), TokenRemoval())(IMAGES, removed), expected)


def test_a_wrapper_that_resizes_is_noticed():
    resizing = Normalized(Wrapped(vits.vit(), scale=2))
    with pytest.raises(Exception, match=r"16×16|doesn't match"):
        evaluator_of(resizing, TokenRemoval())(IMAGES, torch.zeros(5, 16, 16, dtype=torch.bool))
    dynamic = Normalized(Wrapped(_logits(vits.vit("timm", dynamic_img_size=True)), scale=2))
    with pytest.raises(ShapeError, match="makes 64 patches of each image, where 16 are expected"):
        evaluator_of(dynamic, TokenRemoval())(IMAGES, torch.zeros(5, 16, 16, dtype=torch.bool))


def _logits(network):
    class Output(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, images):
            return type("Output", (), {"logits": self.network(images)})

    return Output()


REFUSED = {
    "swin_tiny_patch4_window7_224": "SwinTransformer reads tokens in windows or by their distance",
    "beit_base_patch16_224": "Beit reads tokens in windows or by their distance",
    "vit_relpos_small_patch16_224": "VisionTransformerRelPos reads tokens in windows or by their distance",
    "resnet10t": "ResNet reads pixels, not tokens",
    "vit_tiny_r_s16_p8_224": "VisionTransformer has tokens that overlap",
    "cait_xxs24_224": r"Cait is not one of those whose tokens can be removed \(ViT and DeiT of transformers",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_networks_are_refused_by_name_with_the_alternative(name):
    with torch.device("meta"):
        network = library("timm").create_model(name, pretrained=False)
    with pytest.raises(ModelError, match=REFUSED[name] + r'.*units=rw.Patches\(16\) and imputers="linear"'):
        transformer_of(Normalized(network))


@pytest.mark.parametrize("name", ["Swin", "Beit"])
def test_relative_positions_of_transformers_are_refused_too(name):
    transformers = library("transformers")
    with torch.device("meta"):
        network = getattr(transformers, f"{name}ForImageClassification")(getattr(transformers, f"{name}Config")())
    with pytest.raises(ModelError, match=f"{name}ForImageClassification reads tokens in windows or by their distance"):
        transformer_of(Normalized(network))


def test_a_head_that_pools_by_attention_predicts_without_tokens_but_has_no_row_of_attention():
    model = Normalized(vits.vit("timm", class_token=False, global_pool="map"))
    _, removed = some_patches([6] * 5)
    assert evaluator_of(model, TokenRemoval())(IMAGES, removed).shape == (5, 4)
    with pytest.raises(ModelError, match="pools by map"):
        model.transformer.read_by_head(17)


def test_on_a_device_the_host_waits_once_for_what_is_left_and_the_answers_are_those_of_the_cpu():
    _, removed = some_patches([6] * 5)
    model = Normalized(vits.vit("timm"), 0.5, 0.25).eval()
    expected = evaluator_of(model, TokenRemoval())(IMAGES, removed)
    with PretendDevice() as device:
        placed = device.place_module(model)
        evaluator = evaluator_of(placed, TokenRemoval(), DEVICE)
        found = evaluator(device.place(IMAGES), device.place(removed))
        assert torch.allclose(found.inner, expected, atol=1e-6)
        assert device.to_host == [(2, 5)]  # how many tokens each image keeps, and how many are removed in part
        assert not device.waits
