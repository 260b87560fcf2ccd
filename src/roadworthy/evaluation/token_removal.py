"""True removal: a vision transformer predicts from the tokens that are left, without imputation."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from roadworthy.core.errors import InputError, ModelError, RangeError
from roadworthy.core.masks import count
from roadworthy.core.types import Batch, Evaluator, Images, Imputer, Removed, VisionTransformer
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.imputers import TokenRemoval
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import probabilities
from roadworthy.models.vision_transformers import why_no_tokens

NAME = "token-removal"


@final
@dataclass(frozen=True, eq=False)
class WithoutTokens:
    """The given transformer evaluates every point, without the removed tokens."""

    model: Normalized
    transformer: VisionTransformer
    device: torch.device | None = None

    def __call__(self, images: Images, removed: Removed) -> Tensor:
        """On the device of the model. Images that keep equally many tokens, usually all, are predicted together."""
        device = self.device or self.model.device
        lost, cut = _removed_patches(self.transformer, removed)
        left, parts = torch.stack([(~lost).sum(dim=1), cut.sum(dim=1)]).cpu().tolist()  # all that the host waits for
        if any(parts):
            raise InputError(_cut(self.transformer))
        # The kept ones first, each in its place: a stable sort of 0 and 1.
        order, patches = lost.to(torch.uint8).argsort(dim=1, stable=True), lost.shape[1]
        if len(set(left)) == 1:
            return self._predicted(images, order[:, : left[0]], patches, device)
        groups = {number: [row for row, own in enumerate(left) if own == number] for number in set(left)}
        answers = [
            self._predicted(images[rows], order[rows, :number], patches, device) for number, rows in groups.items()
        ]
        return torch.cat(answers)[torch.tensor([row for rows in groups.values() for row in rows]).argsort()]

    def _predicted(self, images: Images, kept: Tensor, patches: int, device: torch.device) -> Tensor:
        if not kept.shape[1] and self.transformer.needs_patches:
            raise RangeError(f"{NAME}: {_nothing_left(self.transformer)}: give smaller fractions")
        with self.transformer.keeping(kept, patches):
            return probabilities(self.model, images, device)


def evaluator_of(model: Normalized, imputer: Imputer | object, device: torch.device | None = None) -> Evaluator:
    """Who predicts without retraining: the model, on imputed images or without the removed tokens."""
    if isinstance(imputer, TokenRemoval):
        return WithoutTokens(model, transformer_of(model), device)
    return NoRetrain(model, device)


def transformer_of(model: Normalized) -> VisionTransformer:
    transformer = model.transformer
    if transformer is None:
        raise ModelError(
            f'imputer "{NAME}": {why_no_tokens(model.networks)}: impute patches instead, units=rw.Patches(16) and '
            'imputers="linear"'
        )
    return transformer


def _removed_patches(transformer: VisionTransformer, removed: Removed) -> tuple[Tensor, Tensor]:
    """bool `(n, patches)` twice: removed as a whole, and removed in part."""
    pixels = _by_patch(transformer, removed)
    lost = pixels.all(dim=2)
    return lost, pixels.any(dim=2) & ~lost


def _by_patch(transformer: VisionTransformer, values: Tensor) -> Tensor:
    """`(n, h, w)` to `(n, patches, pixels of a patch)`."""
    (rows, columns), (down, across) = transformer.grid(*values.shape[-2:]), transformer.patch_size
    return values.reshape(-1, rows, down, columns, across).transpose(2, 3).reshape(-1, rows * columns, down * across)


def _cut(transformer: VisionTransformer) -> str:
    height, width = transformer.patch_size
    size = height if height == width else (height, width)
    return (
        f'imputer "{NAME}" removes whole tokens, {height}×{width} pixels each, and these units cut through them: give '
        f'units="tokens", or rw.Patches({size})'
    )


def _nothing_left(transformer: VisionTransformer) -> str:
    return f"nothing is left to pool for {transformer.name}, which has no class token, if all tokens are removed"


def check_token_removal(
    model: Normalized, imputers: Iterable[Imputer | object], batch: Batch, fractions: Iterable[float]
) -> None:
    """Report what cannot work, on the first images with their units."""
    if not any(isinstance(imputer, TokenRemoval) for imputer in imputers):
        return
    transformer, (height, width) = transformer_of(model), batch.images.shape[-2:]
    pixels = torch.arange(height * width).reshape(1, height, width)
    units = _by_patch(transformer, pixels if batch.units is None else batch.units.labels.cpu())
    if (units != units[:, :, :1]).any():
        raise InputError(_cut(transformer))
    number = height * width if batch.units is None else max(batch.units.counts)
    for fraction in fractions:
        if transformer.needs_patches and count(fraction, number) == number:
            raise RangeError(
                f'fraction {fraction:g} with "{NAME}": {_nothing_left(transformer)}: give smaller fractions'
            )


def check_evaluators(imputer: str, evaluators: Iterable[str]) -> None:
    """Training on what is left of tokens is not implemented: a trained model would see white patches."""
    for evaluator in evaluators:
        if evaluator != "no-retrain":
            raise InputError(
                f'imputer "{imputer}" with evaluator {evaluator!r}: removed tokens are left out by the given model '
                'only: use evaluators="no-retrain", or another imputer, such as "linear"'
            )
