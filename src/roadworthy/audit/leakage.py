"""Does the class leak from the mask through the imputed image? A lower bound that needs no control.

Image k is imputed with the mask of another image i, and a reader predicts the class of i. What is left of image k does
not depend on the class of i: whatever the reader finds came from the mask, through the imputation. Fano's inequality
turns the accuracy on held-out masks into bits, at least so many. Finding none does not prove that there are none.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d

from roadworthy.audit.reader import Reading, others, partition, read
from roadworthy.core.random import Key
from roadworthy.core.types import Dataset, Images, Imputer, Labels, Removed

ROUNDS = 3
"""images that each mask is imputed into: readers are fitted to all of them and tested on the first"""
_PIXELS = 2**14
"""that the network sees at once: the hidden layers of more do not fit into the cache, which takes twice as long"""

MasksOf = Callable[[Tensor], Sequence[Removed]]
"""from rows of the data to their masks, one tensor `(rows, h, w)` per setting"""


def leak_through(
    network: nn.Sequential, imputer: Imputer, data: Dataset, masks_of: MasksOf, labels: Labels, key: Key
) -> list[Reading]:
    """What readers find about the class of each mask's own image, from another image that was imputed with it.

    One reading per setting of `masks_of`. `network` is the imputer's mask detector. The images and masks that a reader
    is tested on belong to a fold that it was not fitted to; each mask is tested once.
    """
    classes = labels.numpy()
    parts = partition(classes, key)
    rounds = []
    for number in range(ROUNDS):
        round_key = key.fold("round", number)
        partner = others(classes, parts, round_key)
        rounds.append(_all_features(network, imputer, data, masks_of, torch.from_numpy(partner), round_key))
    return [read(features, classes, parts, key) for features in zip(*rounds, strict=True)]


def _all_features(
    network: nn.Sequential, imputer: Imputer, data: Dataset, masks_of: MasksOf, partner: Tensor, key: Key
) -> list[Tensor]:
    """Per setting, the features of image `partner[i]` imputed with mask i, for all i; images are read once in order."""
    pieces: list[list[Tensor]] = []
    rows = torch.argsort(partner, stable=True)
    start = 0
    for batch in data.batches(64):
        masks = rows[(partner[rows] >= start) & (partner[rows] < start + len(batch))]
        if len(masks):
            images = batch[partner[masks] - start]
            pieces.append([mask_features(network, imputer(images, removed, key)) for removed in masks_of(masks)])
        start += len(batch)
    return [torch.cat(setting)[torch.argsort(rows)] for setting in zip(*pieces, strict=True)]


def mask_features(network: nn.Sequential, imputed: Images) -> Tensor:
    """Where an image looks imputed, `(n, 624)`, fewer for images below 16×16.

    Means over the cells of grids: of the detector's logit and probability and of the local roughness (4×4 and 8×8
    cells), of its probability (16×16) and of its last hidden layer (2×2). Weak evidence in pixels adds up over cells.
    """
    size = max(1, _PIXELS // imputed[0, 0].numel())
    return torch.cat([_features(network, piece) for piece in torch.split(imputed, size)])


def _features(network: nn.Sequential, imputed: Images) -> Tensor:
    with torch.no_grad():
        hidden = network[:-1](imputed)
        logits = network[-1](hidden)
        probability = logits.sigmoid()
        local = avg_pool2d(imputed, 3, stride=1, padding=1, count_include_pad=False)
        rough = ((imputed - local).abs().mean(dim=1, keepdim=True) + 0.01).log()
        maps = torch.cat([logits, probability, rough], dim=1)
    return torch.cat([_cells(maps, 4), _cells(maps, 8), _cells(probability, 16), _cells(hidden, 2)], dim=1)


def _cells(maps: Tensor, side: int) -> Tensor:
    height, width = (min(side, length) for length in maps.shape[-2:])
    return adaptive_avg_pool2d(maps, (height, width)).flatten(1)
