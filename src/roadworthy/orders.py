"""In which order pixels leave: most relevant first (MoRF) or least relevant first (LeRF).

Ties are broken at random per image, by key: never by position, never by a threshold. So a map that is zero on 80 %
of its pixels still loses exactly the asked share of them.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.keys import Key
from roadworthy.types import Ids, Ranks, Scores


def most_relevant_first(scores: Scores, ids: Ids, key: Key) -> Ranks:
    """MoRF: rank 0 is the pixel with the highest score."""
    flat = scores.detach().reshape(len(scores), -1).cpu().numpy()
    ties = key.fold("ties")
    # One image at a time: a sort of whole batches would gain nothing, and only tied images need random numbers.
    ranks = [_descending_ranks(row, int(sample), ties) for row, sample in zip(flat, ids, strict=True)]
    return torch.from_numpy(np.stack(ranks)).reshape(scores.shape)


def least_relevant_first(scores: Scores, ids: Ids, key: Key) -> Ranks:
    """LeRF: MoRF reversed, ties included, so that removing a share in one order keeps it in the other."""
    pixels = scores.shape[-2] * scores.shape[-1]
    return pixels - 1 - most_relevant_first(scores, ids, key)


def _descending_ranks(scores: NDArray[np.float32], sample: int, ties: Key) -> NDArray[np.int64]:
    leaving = np.argsort(scores)
    ordered = scores[leaving]
    if (ordered[1:] == ordered[:-1]).any():
        shuffled = ties.permutation(sample, len(scores))
        leaving = shuffled[np.argsort(scores[shuffled], kind="stable")]
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[leaving] = np.arange(len(scores) - 1, -1, -1)
    return ranks
