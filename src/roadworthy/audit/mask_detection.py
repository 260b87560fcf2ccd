"""Mask recoverability (paper, 5.1): can one tell from a filled image which of its pixels were filled?

A mask that tells the class leaks only as far as the filled image shows the mask. The imputation predictor, three
convolutional layers, says for each pixel whether it was filled. It learns from random masks, scattered and in blobs, of
all shares, and is tested on images that it never saw, with such masks and with those of the methods.
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
from roadworthy.core.results import Recovered
from roadworthy.core.types import Batch, Images, Imputer, Removed
from roadworthy.training.loop import EpochRecord, fit
from roadworthy.training.recipe import Recipe

RECIPE = Recipe(epochs=8, batch_size=16, lr=1e-2, schedule="cosine", select="last")
WIDTH = 32
LEARNED, TESTED = 2**20, 2**18
"""pixels that are learned from in an epoch, and tested on: 1,024 and 256 images of 32×32"""
LARGEST = 0.95
"""share that is removed of an image that is learned from, at most"""
_LEAST = 32
"""images, however large they are"""
_ROUNDS = 8
"""how often few or small images come in one epoch"""

Size = tuple[int, int]


def predictor(channels: int) -> nn.Sequential:
    """Images `(n, c, h, w)` in [0, 1] ► a logit per pixel `(n, 1, h, w)`, above 0 for filled."""
    spread = nn.BatchNorm2d(channels)
    nn.init.constant_(spread.weight, 4.0)  # to tell one color from its neighbors takes steep slopes
    return nn.Sequential(
        spread,
        nn.Conv2d(channels, WIDTH, 3, padding=1),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.Conv2d(WIDTH, WIDTH, 3, padding=1),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.Conv2d(WIDTH, 1, 3, padding=1),
    )


def rows_apart(images: int, size: Size, key: Key) -> tuple[list[int], list[int]]:
    """Rows to learn from and other rows to test on, by key; fewer of large images, whose pixels are many."""
    if images < 2:
        raise InputError(
            f"{images} image(s): to tell whether filled pixels show, learn from one image and test another"
        )
    pixels = size[0] * size[1]
    mixed = key.fold("apart").permutation(0, images).tolist()
    tested = min(images // 2, max(_LEAST, TESTED // pixels))
    learned = min(images - tested, max(_LEAST, LEARNED // pixels))
    return sorted(mixed[tested : tested + learned]), sorted(mixed[:tested])


def train_predictor(
    imputer: Imputer, batch: Batch, key: Key, on_epoch: Callable[[EpochRecord], object] | None = None
) -> nn.Sequential:
    """One predictor for all shares; each image gets a new mask whenever it comes."""
    with key.fold("init").torch_rng():
        network = predictor(batch.images.shape[1])
    size = (batch.images.shape[-2], batch.images.shape[-1])
    rounds = min(_ROUNDS, max(1, LEARNED // (len(batch) * batch.images[0, 0].numel())))

    def batches(epoch: int) -> Iterator[tuple[Images, Tensor]]:
        for now in (key.fold("epoch", epoch, "round", number) for number in range(rounds)):
            order = torch.from_numpy(now.fold("shuffle").permutation(0, len(batch)))
            for rows in torch.split(order, RECIPE.batch_size):
                removed = of_either_kind(batch.ids[rows], size, LARGEST, now)
                yield imputer(batch[rows], removed, now), removed[:, None].float()

    fit(network, batches, RECIPE, key=key, loss=binary_cross_entropy_with_logits, on_epoch=on_epoch)
    return network.eval()


def recover(network: nn.Module, imputer: Imputer, batch: Batch, removed: Removed, key: Key) -> Recovered:
    """How well the predictor, and the trivial inverse of a constant fill, tell which pixels were filled."""
    constant = fills_constantly(imputer, batch, key)
    pieces = []
    for rows, piece in batch.split(64):
        filled, gone = imputer(piece, removed[rows], key), removed[rows]
        with torch.no_grad():
            logits = network(filled)[:, 0]
        inverse = _wrong(_trivial(filled, gone), gone) if constant else np.full(len(piece), np.nan)
        pieces.append((_wrong(logits > 0, gone), _auc(logits.flatten(1).numpy(), gone.flatten(1).numpy()), inverse))
    return Recovered(*(np.concatenate(part) for part in zip(*pieces, strict=True)))


def fills_constantly(imputer: Imputer, batch: Batch, key: Key, images: int = 8) -> bool:
    """Whether each image gets one color in all its holes: seen on a few images, half removed."""
    few = batch[:images]
    removed = random_removal(few, "scatter", 0.5, key)
    filled = imputer(few, removed, key)
    return bool((_trivial(filled, removed) | ~removed).all())


def _trivial(filled: Images, removed: Removed) -> Removed:
    """A pixel that has the color of the fill is told filled; the color is known to whoever knows the imputer."""
    flat, gone = filled.flatten(2), removed.flatten(1)
    place = gone.long().argmax(dim=1)  # any filled pixel shows the color
    color = flat.gather(2, place[:, None, None].expand(-1, flat.shape[1], 1))
    return (flat == color).all(dim=1).reshape(removed.shape)


def _wrong(told: Removed, removed: Removed) -> NDArray[np.float64]:
    """Per image, the share of pixels that are told wrongly."""
    return (told != removed).flatten(1).double().mean(dim=1).numpy()


def _auc(logits: NDArray[Any], removed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Per image, how often a filled pixel looks more filled than a kept one; ties count half (Mann-Whitney)."""
    gone = removed.sum(axis=1).astype(np.float64)
    kept = removed.shape[1] - gone
    ranks = (rankdata(logits, axis=1) * removed).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((ranks - gone * (gone + 1) / 2) / (gone * kept))
