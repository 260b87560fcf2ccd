"""Mask detection (paper, section 5.1): which pixels of an imputed image were imputed?

Class information in a mask leaks only as far as the imputed image reveals the mask; how much does, `leakage` measures.
The mask detector (the paper's
imputation predictor), three convolutional layers, classifies each pixel as imputed or kept. It
is trained on random masks, scattered and in blobs, of all fractions, and tested on held-out images, with such masks and
with those of methods.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from roadworthy.core.errors import InputError
from roadworthy.core.masks import of_either_kind, random_removal
from roadworthy.core.random import Key
from roadworthy.core.results import MaskDetection
from roadworthy.core.types import Batch, Dataset, Images, Imputer, Removed
from roadworthy.datasets.subsets import picked
from roadworthy.training.loop import EpochRecord, fit
from roadworthy.training.recipe import Recipe

RECIPE = Recipe(epochs=8, batch_size=16, lr=1e-2, schedule="cosine", select="last")
WIDTH = 32
TRAIN_PIXELS, TEST_PIXELS = 2**20, 2**18
"""pixels to train on per epoch, and to test on: 1,024 and 256 images of 32×32"""
MAX_REMOVED = 0.95
"""largest fraction that is removed from a training image"""
_MIN_IMAGES = 32
"""however large they are"""
_MAX_PASSES = 8
"""over few or small images in one epoch"""

Size = tuple[int, int]


def mask_detector(channels: int) -> nn.Sequential:
    """Images `(n, c, h, w)` in [0, 1] ► a logit per pixel `(n, 1, h, w)`, above 0 for imputed."""
    scale = nn.BatchNorm2d(channels)
    nn.init.constant_(scale.weight, 4.0)  # separating one color from similar ones takes steep slopes
    return nn.Sequential(
        scale,
        nn.Conv2d(channels, WIDTH, 3, padding=1),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.Conv2d(WIDTH, WIDTH, 3, padding=1),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.Conv2d(WIDTH, 1, 3, padding=1),
    )


def train_test_rows(images: int, size: Size, key: Key) -> tuple[list[int], list[int]]:
    """Disjoint rows to train and to test on, drawn by key; fewer of large images, which have more pixels."""
    if images < 2:
        raise InputError(f"{images} image(s): mask detection needs at least one image to train on and one to test on")
    pixels = size[0] * size[1]
    shuffled = key.fold("apart").permutation(0, images).tolist()
    test = min(images // 2, max(_MIN_IMAGES, TEST_PIXELS // pixels))
    train = min(images - test, max(_MIN_IMAGES, TRAIN_PIXELS // pixels))
    return sorted(shuffled[test : test + train]), sorted(shuffled[:test])


def train_test_images(data: Dataset, key: Key) -> tuple[Batch, Batch, list[int]]:
    """Images to train on, other images to test on, and the rows of these; the same for all imputers and methods."""
    height, width = next(data.batches(1)).images.shape[-2:]
    train, test = train_test_rows(len(data), (height, width), key.fold("predictor"))
    first, second = (next(picked(data, rows).batches(len(rows))) for rows in (train, test))
    return first, second, test


def train_mask_detector(
    imputer: Imputer, batch: Batch, key: Key, on_epoch: Callable[[EpochRecord], object] | None = None
) -> nn.Sequential:
    """Train one detector for all fractions; an image gets a new mask each time it is seen."""
    with key.fold("init").torch_rng():
        network = mask_detector(batch.images.shape[1])
    size = (batch.images.shape[-2], batch.images.shape[-1])
    passes = min(_MAX_PASSES, max(1, TRAIN_PIXELS // (len(batch) * batch.images[0, 0].numel())))

    def batches(epoch: int) -> Iterator[tuple[Images, Tensor]]:
        for pass_key in (key.fold("epoch", epoch, "round", number) for number in range(passes)):
            order = torch.from_numpy(pass_key.fold("shuffle").permutation(0, len(batch)))
            for rows in torch.split(order, RECIPE.batch_size):
                piece = batch[rows]
                removed = of_either_kind(piece.ids, size, MAX_REMOVED, pass_key, piece.units)
                yield imputer(piece, removed, pass_key), removed[:, None].float()

    fit(network, batches, RECIPE, key=key, loss=binary_cross_entropy_with_logits, on_epoch=on_epoch)
    return network.eval()


def detect(network: nn.Module, imputer: Imputer, batch: Batch, removed: Removed, key: Key) -> MaskDetection:
    """How well the detector, and the trivial inverse of a constant imputer, find the imputed pixels."""
    constant = imputes_constant(imputer, batch, key)
    pieces = []
    for rows, piece in batch.split(64):
        imputed, mask = imputer(piece, removed[rows], key), removed[rows]
        with torch.no_grad():
            logits = network(imputed)[:, 0]
        trivial = _error(_same_color(imputed, mask), mask) if constant else np.full(len(piece), np.nan)
        pieces.append((_error(logits > 0, mask), _auc(logits.flatten(1).numpy(), mask.flatten(1).numpy()), trivial))
    return MaskDetection(*(np.concatenate(part) for part in zip(*pieces, strict=True)))


def imputes_constant(imputer: Imputer, batch: Batch, key: Key, images: int = 8) -> bool:
    """Whether the imputer uses one color per image; tried on a few images, half of their pixels removed."""
    few = batch[:images]
    removed = random_removal(few, "scatter", 0.5, key)
    imputed = imputer(few, removed, key)
    return bool((_same_color(imputed, removed) | ~removed).all())


def _same_color(imputed: Images, removed: Removed) -> Removed:
    """Pixels that have the color of the image's first imputed pixel: the trivial inverse of a constant imputer."""
    flat = imputed.flatten(2)
    first = removed.flatten(1).long().argmax(dim=1)
    color = flat.gather(2, first[:, None, None].expand(-1, flat.shape[1], 1))
    return (flat == color).all(dim=1).reshape(removed.shape)


def _error(detected: Removed, removed: Removed) -> NDArray[np.float64]:
    """Per image, the share of pixels that are misclassified."""
    return (detected != removed).flatten(1).double().mean(dim=1).numpy()


def _auc(logits: NDArray[Any], removed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Per image, how often an imputed pixel has a larger logit than a kept one; ties count half (Mann-Whitney)."""
    count = removed.sum(axis=1).astype(np.float64)
    kept = removed.shape[1] - count
    ranks = (rankdata(logits, axis=1) * removed).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((ranks - count * (count + 1) / 2) / (count * kept))
