"""Counter-based random streams (Philox), one per seed, path of words and sample. Needs NumPy only."""

import hashlib
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_UINT64 = (1 << 64) - 1


def stream_key(seed: int, path: Sequence[str | int]) -> NDArray[np.uint64]:
    """128 bits that depend on the seed and all words."""
    text = json.dumps([seed, *path])
    return np.frombuffer(hashlib.blake2b(text.encode(), digest_size=16).digest(), dtype="<u8").astype(np.uint64)


def stream(key: NDArray[np.uint64], sample: int) -> np.random.Generator:
    counter = np.array([0, 0, 0, sample & _UINT64], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
