"""Units on a device: ranks and masks of the CPU to the byte; labels are moved once, and nobody waits."""

import numpy as np
import pytest
import torch

import worlds
from pretend_device import DEVICE
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first, rank
from roadworthy.evaluation.sweep import Curve, sweep
from roadworthy.evaluation.units import FeatureMask, Patches, UnitSetting
from roadworthy.imputers import Constant, NoisyLinear
from roadworthy.models.normalized import as_model

N, SIDE = 7, 12
WORLD = worlds.quadrants(n=N)
BATCH = Batch(torch.arange(50, 50 + N), WORLD.images, WORLD.labels)
FIELD = Key(2).normal(BATCH.ids, (SIDE, SIDE))
ORDERS = {"morf": most_relevant_first, "lerf": least_relevant_first}
FRACTIONS = (0.1, 0.5, 0.8)
MODEL = as_model(WORLD.model)
LABELS = torch.stack([torch.arange(SIDE * SIDE).reshape(SIDE, SIDE) * (9 + row % 3) // SIDE**2 for row in range(N)])
UNITS = {
    "patches": Patches(5),
    "a mask for all": FeatureMask(LABELS[0]),
    "a mask for each": FeatureMask(LABELS, ids=BATCH.ids),
}


@pytest.mark.parametrize("maps", [FIELD, FIELD.clamp(min=0), torch.zeros_like(FIELD)], ids=["distinct", "relu", "zero"])
@pytest.mark.parametrize("reduction", ["mean", "max_abs"])
@pytest.mark.parametrize("name", UNITS)
def test_ranks_and_masks_are_those_of_the_cpu_to_the_byte(device, name, reduction, maps):
    units = UnitSetting(UNITS[name], reduction)(BATCH).units
    there = units.to(DEVICE)
    expected = rank(ORDERS, maps, BATCH.ids, Key(0), units)
    ranks = rank(ORDERS, device.place(maps), BATCH.ids, Key(0), there)
    for order in ORDERS:
        assert torch.equal(ranks[order].inner, expected[order])
        for fraction in FRACTIONS:
            assert torch.equal(
                removed_at(ranks[order], fraction, there).inner, removed_at(expected[order], fraction, units)
            )


@pytest.mark.parametrize("name", UNITS)
def test_predictions_are_those_of_the_cpu_and_nothing_more_comes_back_than_for_pixels(device, name):
    batch = UnitSetting(UNITS[name])(BATCH)
    curves = {Curve(order, imputer, "no-retrain", 0): FRACTIONS for order in ORDERS for imputer in ("linear", "black")}
    imputers = {"linear": NoisyLinear(), "black": Constant(0.0)}

    def swept(model, device, batch=batch):
        return list(
            sweep(curves, ORDERS, imputers, dict.fromkeys(curves, model), FIELD, batch, WORLD.labels, 4, device)
        )

    here = swept(NoRetrain(MODEL), torch.device("cpu"))
    there = swept(NoRetrain(device.place_module(MODEL), DEVICE), DEVICE)
    for (_, _, one), (_, _, other) in zip(here, there, strict=True):
        assert one.predicted.tolist() == other.predicted.tolist()
        assert np.abs(one.probability - other.probability).max() <= 1e-3
    host, waits = list(device.to_host), dict(device.waits)
    device.to_host.clear()
    device.waits.clear()
    swept(NoRetrain(device.place_module(MODEL), DEVICE), DEVICE, BATCH)
    assert ([len(shape) for shape in host], waits) == ([len(shape) for shape in device.to_host], device.waits)


def test_labels_that_are_there_already_are_not_moved_again(device):
    batch = UnitSetting(UNITS["a mask for each"])(BATCH)
    placed = Batch(batch.ids, device.place(batch.images), batch.labels, batch.units.to(DEVICE))
    device.to_device.clear()
    curve = Curve("morf", "black", "no-retrain", 0)
    evaluators = {curve: NoRetrain(device.place_module(MODEL), DEVICE)}
    list(
        sweep({curve: FRACTIONS}, ORDERS, {"black": Constant(0.0)}, evaluators, FIELD, placed, WORLD.labels, N, DEVICE)
    )
    assert (N, SIDE, SIDE) in device.to_device  # the maps
    assert device.to_device.count((N, SIDE, SIDE)) == 1  # not the labels
    assert (N, SIDE * SIDE) not in device.to_device  # nor the pixels by unit
