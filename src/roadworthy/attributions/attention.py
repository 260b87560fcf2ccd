"""Methods for vision transformers: a value per patch, from what its tokens attend to (docs/units.md).

All read the tokens that the head reads: the class token (with a distillation token, the mean of both), or, where the
head averages, the mean over the tokens of patches.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from roadworthy.core.errors import ModelError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Maps, Model, VisionTransformer


@final
@dataclass(frozen=True)
class RawAttention:
    """What the head's token attends to in the last layer of a vision transformer, the mean over attention heads."""

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        transformer = _transformer(self, model)
        with torch.no_grad():
            _, attentions = transformer.attentions(batch.images)
        return _patch_maps(transformer, attentions[-1].mean(dim=1), batch)


@final
@dataclass(frozen=True)
class AttentionRollout:
    """Attention rollout (Abnar & Zuidema 2020): attention through all layers of a vision transformer."""

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        transformer = _transformer(self, model)
        with torch.no_grad():
            _, attentions = transformer.attentions(batch.images)
        rollout = _identity(attentions[0])
        for attention in attentions:
            # Half of what a token becomes is itself: the residual connection.
            rollout = (attention.mean(dim=1) + _identity(attention)) / 2 @ rollout
        return _patch_maps(transformer, rollout, batch)


@final
@dataclass(frozen=True)
class GradientAttention:
    """Gradient × attention (Chefer et al. 2021): attention of all layers, as far as it raises the class logit."""

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        transformer = _transformer(self, model)
        with torch.enable_grad():
            logits, attentions = transformer.attentions(batch.images.detach().requires_grad_())
            gradients = torch.autograd.grad(_target(logits, batch), attentions)
        relevance = _identity(attentions[0])
        for attention, gradient in zip(attentions, gradients, strict=True):
            raising = (attention.detach() * gradient).clamp(min=0).mean(dim=1)  # arXiv:2103.15679, equation 5
            relevance = relevance + raising @ relevance  # equation 6
        return _patch_maps(transformer, relevance, batch)


@final
@dataclass(frozen=True)
class TokenGradCam:
    """Grad-CAM (Selvaraju et al. 2017) on the tokens that the last layer of a vision transformer reads.

    Its features are weighted by their mean gradient over the patches. Maps are signed; with `relu` negative values
    become 0, as in the paper, and ties are then broken at random.
    """

    relu: bool = False

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        transformer = _transformer(self, model)
        with torch.enable_grad():
            logits, tokens = transformer.last_tokens(batch.images.detach().requires_grad_())
            (gradient,) = torch.autograd.grad(_target(logits, batch), tokens)
        patches, slopes = (tensor.detach()[:, transformer.prefix_tokens :] for tensor in (tokens, gradient))
        cam = (patches * slopes.mean(dim=1, keepdim=True)).sum(dim=2)
        return _on_grid(transformer, cam.clamp(min=0) if self.relu else cam, batch)


def _transformer(method: object, model: Model) -> VisionTransformer:
    transformer = model.transformer
    if transformer is None:
        network = getattr(model.network, "network", model.network)
        raise ModelError(
            f"{type(method).__name__} reads the tokens of a vision transformer, and {type(network).__name__} is not "
            "one that is known here (ViT and DeiT of transformers, VisionTransformer of timm): use another method, "
            "such as 'ig'"
        )
    return transformer


def _target(logits: Tensor, batch: Batch) -> Tensor:
    return logits.gather(1, batch.labels[:, None]).sum()


def _identity(attention: Tensor) -> Tensor:
    return torch.eye(attention.shape[-1], dtype=attention.dtype, device=attention.device)


def _patch_maps(transformer: VisionTransformer, between: Tensor, batch: Batch) -> Maps:
    """From `(n, tokens, tokens)`: the mean row of the tokens that the head reads, at the patches."""
    rows = between[:, transformer.read_by_head(between.shape[1])].mean(dim=1)
    return _on_grid(transformer, rows[:, transformer.prefix_tokens :], batch)


def _on_grid(transformer: VisionTransformer, values: Tensor, batch: Batch) -> Maps:
    height, width = batch.images.shape[-2:]
    return values.float().reshape(len(batch), *transformer.grid(height, width))
