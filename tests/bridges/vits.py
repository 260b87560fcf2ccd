"""Small vision transformers of transformers and timm, with random weights that make attention uneven."""

import torch

from libraries import library
from roadworthy.core.random import Key

KINDS = ("hf-vit", "hf-deit", "hf-deit-teacher", "timm", "timm-average", "timm-registers", "timm-distilled")
POOLED = ("timm-average", "timm-registers")
SIZE = 16


def vit(kind="hf-vit", patch=4, depth=3, classes=4, size=SIZE, **options):
    """Images of 16 × 16 pixels, so 16 patches; 3 layers of 2 heads; another position embedding for each patch."""
    with Key(7).fold(kind).torch_rng():
        network = _transformers(kind, patch, depth, classes, size, options) if kind.startswith("hf") else _timm(
            kind, patch, depth, classes, size, options
        )  # fmt: skip
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if parameter.ndim > 1:
                    spread = 1.0 if "pos" in name or "token" in name else parameter[0].numel() ** -0.5
                    parameter.copy_(1.5 * spread * torch.randn_like(parameter))
    return network.eval()


def _transformers(kind, patch, depth, classes, size, options):
    transformers = library("transformers")
    name = {"hf-vit": "ViT", "hf-deit": "DeiT", "hf-deit-teacher": "DeiT"}[kind]
    config = getattr(transformers, f"{name}Config")(
        image_size=size, patch_size=patch, hidden_size=16, num_hidden_layers=depth, num_attention_heads=2,
        intermediate_size=24, num_labels=classes, **options,
    )  # fmt: skip
    teacher = "WithTeacher" if kind.endswith("teacher") else ""
    return getattr(transformers, f"{name}ForImageClassification{teacher}")(config)


def _timm(kind, patch, depth, classes, size, options):
    library("timm")
    from timm.models.deit import VisionTransformerDistilled
    from timm.models.vision_transformer import VisionTransformer

    make = VisionTransformerDistilled if kind.endswith("distilled") else VisionTransformer
    kinds = {
        "timm-average": {"class_token": False, "global_pool": "avg"},
        "timm-registers": {"reg_tokens": 2, "global_pool": "avg"},
    }
    return make(
        img_size=size, patch_size=patch, embed_dim=16, depth=depth, num_heads=2, num_classes=classes,
        **kinds.get(kind, {}), **options,
    )  # fmt: skip
