"""Tiny GAINs for tests: randomly initialized, for images of any shape."""

import tempfile
from functools import lru_cache
from pathlib import Path

import torch

from roadworthy.core.random import Key
from roadworthy.imputers import Gain
from roadworthy.imputers.gain_networks import Generator
from roadworthy.training.gain import GainRecipe, GainRecord, TrainedGain, save_gain

TINY = GainRecipe(epochs=3, batch_size=16, lr=3e-3, width=4, blocks=1, validation=0.25)
_FOLDER = tempfile.TemporaryDirectory(prefix="gains-")


def untrained(shape, width=4, blocks=1) -> Gain:
    with Key(9).fold("gain").torch_rng():
        return Gain(Generator(torch.full(shape, 0.4), width, blocks, 0.5).eval())


@lru_cache
def file(shape) -> Path:
    """A weights file for images of `(channels, height, width)`."""
    path = Path(_FOLDER.name) / ("x".join(map(str, shape)) + ".safetensors")
    save_gain(TrainedGain(untrained(shape), (GainRecord(0, 0.7, 0.7, 0.1, 0.1),), 0), TINY, path)
    return path
