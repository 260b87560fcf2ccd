"""Randomness as a value: the same key and sample ids give the same bytes for any batch size, worker or device.

>>> key = Key(0).fold("noise")
>>> alone, together = key.normal([7], (2, 2)), key.normal([3, 7], (2, 2))
>>> bool((alone[0] == together[1]).all())
True
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.streams import stream, stream_key


@dataclass(frozen=True)
class Key:
    """A seed and the words folded into it, with one counter-based stream (Philox) per sample id."""

    seed: int
    path: tuple[str | int, ...] = ()

    def fold(self, *words: str | int) -> "Key":
        """A new key for each use, so that ties, noise and maps never share random numbers."""
        return Key(self.seed, self.path + words)

    def normal(self, ids: Sequence[int] | Tensor, shape: tuple[int, ...]) -> Tensor:
        """Standard normal float32 `(n, *shape)`, one stream per id."""
        return self._per_sample(ids, shape, lambda stream, row: stream.standard_normal(dtype=np.float32, out=row))

    def uniform(self, ids: Sequence[int] | Tensor, shape: tuple[int, ...]) -> Tensor:
        """Uniform float32 `(n, *shape)` in [0, 1), one stream per id."""
        return self._per_sample(ids, shape, lambda stream, row: stream.random(dtype=np.float32, out=row))

    def permutation(self, sample: int, size: int) -> NDArray[np.int64]:
        """A random permutation of `range(size)`, from the stream of `sample`."""
        return self._stream(sample).permutation(size)

    def permutations(self, ids: Sequence[int], size: int) -> Tensor:
        """int64 `(n, size)`: the `permutation` of each id."""
        return torch.from_numpy(np.stack([self.permutation(sample, size) for sample in ids]))

    @contextmanager
    def torch_rng(self) -> Iterator[None]:
        """Seed the global generators of torch and numpy inside the block and restore them afterwards.

        For code that accepts no generator: initialization, dropout, third-party methods.
        """
        seed = int(self._words[0]) >> 1
        legacy = np.random.get_state()  # noqa: NPY002
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002
            try:
                yield
            finally:
                np.random.set_state(legacy)  # noqa: NPY002

    def _per_sample(
        self,
        ids: Sequence[int] | Tensor,
        shape: tuple[int, ...],
        draw: Callable[[np.random.Generator, NDArray[np.float32]], object],
    ) -> Tensor:
        samples = [int(sample) for sample in ids]
        out = np.empty((len(samples), *shape), dtype=np.float32)
        for row, sample in zip(out, samples, strict=True):
            draw(self._stream(sample), row)
        return torch.from_numpy(out)

    def _stream(self, sample: int) -> np.random.Generator:
        return stream(self._words, sample)

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        return stream_key(self.seed, self.path)
