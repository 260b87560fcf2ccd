"""Data must be the same on every pass, and be what they claim to be."""

import numpy as np
import pytest
import torch

import roadworthy as rw
import worlds
from roadworthy.core.types import Batch

WORLD = worlds.quadrants(n=24)


class Mine:
    """A data set that a user implements; `change(batch, reading)` is what goes wrong at each reading."""

    classes = ()

    def __init__(self, change=lambda batch, reading: batch, ids=None, length=24):
        self.change, self.length, self.readings = change, length, 0
        self.ids = torch.arange(24) if ids is None else ids

    def __len__(self):
        return self.length

    def batches(self, size):
        self.readings += 1
        for start in range(0, 24, size):
            rows = slice(start, start + size)
            yield self.change(Batch(torch.arange(24)[rows], WORLD.images[rows], WORLD.labels[rows]), self.readings)


def compare(data):
    return rw.compare(
        WORLD.model,
        data,
        {"own": lambda model, batch, key: batch.images, "G": "gradient"},
        fractions=(0.5,),
        controls=(),
        batch_size=8,
        map_batch_size=8,
        progress=False,
    )


def brighter(batch, reading):
    return Batch(batch.ids, (batch.images * (1 - 0.01 * reading)), batch.labels)


def flipped(batch, reading):
    return Batch(batch.ids, batch.images.flip(3) if reading > 1 else batch.images, batch.labels)


def later(batch, reading):
    """Only from the hundredth reading on: the comparison itself does not see it."""
    return brighter(batch, 1) if reading > 100 else batch


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Mine(brighter), "not what it was when it was first read"),
        (Mine(flipped), "first read"),
        (Mine(lambda batch, reading: batch[torch.randperm(len(batch))]), "order of ids|first read"),
        (Mine(lambda batch, reading: Batch(batch.ids, batch.images * 255, batch.labels)), "outside .0, 1.*255"),
        (Mine(lambda batch, reading: Batch(batch.ids, batch.images.double(), batch.labels)), "float64 images"),
        (Mine(lambda batch, reading: Batch(batch.ids, batch.images, batch.labels[:1])), "1 labels"),
        (Mine(ids=torch.arange(24).flip(0)), "where its ids say 23"),
        (Mine(ids=torch.zeros(24, dtype=torch.int64)), "unique"),
        (Mine(length=20), "20 images, but its ids"),
        (Mine(ids=torch.arange(30), length=30), "ended before image 24|expected"),
    ],
)  # fmt: skip
def test_data_that_change_or_lie_are_refused(data, message):
    with pytest.raises(rw.errors.RoadworthyError, match=message):
        compare(data)


def test_data_that_change_later_are_refused_at_the_next_reading():
    data = Mine(later)
    comparison = compare(data)
    assert data.readings < 100
    data.readings = 100
    with pytest.raises(rw.errors.DataError, match="not what it was when it was first read"):
        comparison.audit(fractions=(0.5,), progress=False)


def test_ids_beyond_64_bits_are_refused():
    with pytest.raises(rw.errors.RangeError, match="int64"):
        rw.datasets.Arrays(WORLD.images, WORLD.labels, ids=np.array([*range(23), 2**63], dtype=np.uint64))
