"""On a device: what is computed there, what is moved, what the host waits for; and the same numbers as on the CPU."""

import math
import threading
from itertools import product

import numpy as np
import pytest
import torch

import gains
import worlds
from pretend_device import DEVICE
from roadworthy.core import device as module
from roadworthy.core.errors import EverythingRemovedError, ModelError
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first, rank
from roadworthy.evaluation.sweep import Curve, imputed, sweep
from roadworthy.imputers import Blur, Constant, DatasetMean, Gain, ImageMean, NoisyLinear
from roadworthy.models.normalized import as_model

N, SIDE = 7, 12
WORLD = worlds.quadrants(n=N)
BATCH = Batch(torch.arange(50, 50 + N), WORLD.images, WORLD.labels)
FIELD = Key(2).normal(BATCH.ids, (SIDE, SIDE))
MAPS = {"distinct": FIELD, "relu": FIELD.clamp(min=0), "constant": torch.zeros_like(FIELD), "double": FIELD.double(),
        "signed zeros": torch.where(FIELD > 0, 0.0, -0.0)}  # fmt: skip
ORDERS = {"morf": most_relevant_first, "lerf": least_relevant_first}
IMPUTERS = {
    "linear": NoisyLinear(),
    "smooth": NoisyLinear(noise=0),
    "black": Constant(0.0),
    "colored": Constant((0.1, 0.2, 0.3)),
    "fixed": DatasetMean((0.4, 0.5, 0.6)),
    "mean": ImageMean(),
    "blur": Blur(2.0),
    "gain": Gain.load(gains.file((3, SIDE, SIDE))),
}
FRACTIONS = (0.1, 0.5, 0.9)


MODEL = as_model(WORLD.model)


def on_cpu(maps, curves, imputers=IMPUTERS, batch_size=4):
    evaluators = dict.fromkeys(curves, NoRetrain(MODEL))
    return list(sweep(curves, ORDERS, imputers, evaluators, maps, BATCH, WORLD.labels, batch_size))


def on_device(device, maps, curves, imputers=IMPUTERS, batch_size=4, batch=BATCH):
    evaluators = dict.fromkeys(curves, NoRetrain(device.place_module(MODEL), DEVICE))
    return list(sweep(curves, ORDERS, imputers, evaluators, maps, batch, WORLD.labels, batch_size, DEVICE))


# ── the same numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("maps", MAPS.values(), ids=list(MAPS))
@pytest.mark.parametrize("seed", [0, 3])
def test_given_the_same_maps_ranks_and_masks_are_those_of_the_cpu_to_the_byte(device, maps, seed):
    expected = rank(ORDERS, maps, BATCH.ids, Key(seed))
    ranks = rank(ORDERS, device.place(maps), BATCH.ids, Key(seed))
    for order in ORDERS:
        assert torch.equal(ranks[order].inner, expected[order])
        for fraction in FRACTIONS:
            assert torch.equal(removed_at(ranks[order], fraction).inner, removed_at(expected[order], fraction))


def placed(device, imputer):
    return Gain(device.place_module(imputer.generator)) if isinstance(imputer, Gain) else imputer


@pytest.mark.parametrize("name", IMPUTERS)
def test_imputed_pixels_are_within_1e_4_of_the_cpu_and_kept_ones_are_bit_equal(device, name):
    ranks, key = most_relevant_first(FIELD, BATCH.ids, Key(0)), Key(0)
    expected = list(imputed(IMPUTERS[name], BATCH, ranks, FRACTIONS, key))
    images = Batch(BATCH.ids, device.place(BATCH.images), BATCH.labels)
    filled = list(imputed(placed(device, IMPUTERS[name]), images, device.place(ranks), FRACTIONS, key))
    for (removed, pixels), (mask, on_device) in zip(expected, filled, strict=True):
        assert torch.equal(mask.inner, removed)
        assert (on_device.inner - pixels).abs().max() <= 1e-4
        kept = ~removed[:, None].expand_as(pixels)
        assert torch.equal(on_device.inner[kept], BATCH.images[kept])


@pytest.mark.parametrize(("name", "order"), list(product(IMPUTERS, ORDERS)))
def test_predictions_are_those_of_the_cpu(device, name, order):
    curves = {Curve(order, name, "no-retrain", 1): FRACTIONS}
    imputers = {name: placed(device, IMPUTERS[name])}
    for (_, _, here), (_, _, there) in zip(
        on_cpu(FIELD, curves), on_device(device, FIELD, curves, imputers), strict=True
    ):
        assert there.predicted.tolist() == here.predicted.tolist()
        assert there.ids.tolist() == here.ids.tolist()
        # Logits are 40 · a mean of pixels: 1e-4 in a pixel is at most 4e-3 in a logit, and 1e-3 in a probability.
        assert np.abs(there.probability - here.probability).max() <= 1e-3


# ── what is moved and waited for ─────────────────────────────────────────────────────────────────────────────────────

PIECE = {"images": (N, 3, SIDE, SIDE), "maps": (N, SIDE, SIDE), "targets": (N,), "ties": (N, SIDE * SIDE)}
LAUNCHES_PER_POINT = 40
"""of mask, prediction (this model: 20) and summary"""
LAUNCHES = {"linear": 580, "smooth": 580, "black": 10, "colored": 10, "fixed": 10, "mean": 10, "blur": 10, "gain": 40}
"""of imputing all fractions of a curve; linear: see the solver's own test"""


@pytest.mark.parametrize("name", IMPUTERS)
@pytest.mark.parametrize("orders", [("morf",), ("morf", "lerf")], ids=["morf", "both"])
@pytest.mark.parametrize("fractions", [(0.5,), FRACTIONS, tuple(np.linspace(0.05, 0.95, 19))], ids=["1", "3", "19"])
def test_a_piece_is_moved_once_and_only_predictions_come_back(device, name, orders, fractions):
    curves = {Curve(order, name, "no-retrain", 0): fractions for order in orders}
    imputers = {name: placed(device, IMPUTERS[name])}
    Blur(2.0)(Batch(BATCH.ids, device.place(BATCH.images), BATCH.labels), device.place(FIELD > 0), Key(0))  # its matrix
    device.to_device.clear()
    device.launches.clear()
    on_device(device, FIELD, curves, imputers, batch_size=N)
    noise = [PIECE["images"]] if name in ("linear", "gain") else []
    assert device.to_device == [*PIECE.values(), *noise]
    points = len(orders) * len(fractions)
    check = [(3 + 3 * 6, N * len(fractions), 3)] if name in ("linear", "smooth") else []  # one per call of the solver
    assert device.to_host == [*check * len(orders), (points, 3, N)]
    assert not device.waits
    assert sum(device.launches.values()) <= 20 + points * LAUNCHES_PER_POINT + len(orders) * LAUNCHES[name]


def test_random_numbers_are_drawn_and_moved_once_for_all_methods_imputers_and_orders(device, monkeypatch):
    drawn = []
    draw = Key._stream
    monkeypatch.setattr(Key, "_stream", lambda key, sample: drawn.append((key, sample)) or draw(key, sample))
    imputers = {name: placed(device, IMPUTERS[name]) for name in ("linear", "gain")}
    curves = {Curve(order, name, "no-retrain", 0): FRACTIONS for order in ORDERS for name in imputers}
    for maps in (MAPS["distinct"], MAPS["relu"], MAPS["constant"]):
        on_device(device, maps, curves, imputers, batch_size=4)
    assert len(drawn) == len(set(drawn)) == 2 * N  # ties and noise of each image
    moved = [shape for shape in device.to_device if shape in ((4, 144), (3, 144))]
    assert len(moved) == 2


def test_images_that_are_there_already_are_not_moved_again(device):
    there = Batch(BATCH.ids, device.place(BATCH.images), BATCH.labels)
    on_device(device, FIELD, {Curve("morf", "black", "no-retrain", 0): FRACTIONS}, batch_size=N, batch=there)
    assert PIECE["images"] not in device.to_device


def test_parts_that_know_only_the_cpu_get_and_return_tensors_there(device):
    def gray(batch, removed, key):
        assert isinstance(batch.images.numpy(), np.ndarray)
        return torch.where(removed[:, None], 0.5, batch.images)

    def raster(maps, ids, key):
        return torch.from_numpy(np.broadcast_to(np.arange(SIDE**2).reshape(SIDE, SIDE), maps.numpy().shape).copy())

    curve = Curve("raster", "gray", "no-retrain", 0)
    model = NoRetrain(device.place_module(MODEL), DEVICE)
    ((_, _, there),) = sweep({curve: [0.5]}, {"raster": raster}, {"gray": gray}, {curve: model}, FIELD, BATCH,
                             WORLD.labels, N, DEVICE)  # fmt: skip
    ((_, _, here),) = sweep({curve: [0.5]}, {"raster": raster}, {"gray": gray}, {curve: NoRetrain(MODEL)}, FIELD, BATCH,
                            WORLD.labels, N)  # fmt: skip
    assert np.array_equal(there.predicted, here.predicted)
    assert there.probability == pytest.approx(here.probability, abs=1e-6)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_removed_is_an_error_that_names_the_id(device):
    with pytest.raises(EverythingRemovedError, match="image 50"):
        on_device(device, FIELD, {Curve("morf", "linear", "no-retrain", 0): [1.0]})


@pytest.mark.parametrize("where", ["cpu", "device"])
def test_nan_from_the_model_is_an_error(device, where):
    curve = Curve("morf", "black", "no-retrain", 0)

    def broken(images, removed):
        return torch.full((len(images), 4), math.nan, device=images.device)

    target = DEVICE if where == "device" else torch.device("cpu")
    with pytest.raises(ModelError, match="NaN"):
        list(sweep({curve: [0.5]}, ORDERS, IMPUTERS, {curve: broken}, FIELD, BATCH, WORLD.labels, 4, target))


# ── the next piece ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_next_item_is_prepared_while_this_one_is_in_use():
    started = {name: threading.Event() for name in range(3)}

    def prepare(name):
        started[name].set()
        return name

    items = module.ahead(prepare, range(3), DEVICE)
    assert next(items) == 0
    assert started[1].wait(10)  # while we hold item 0
    assert list(items) == [1, 2]


def test_on_the_cpu_nothing_is_prepared_early():
    prepared = []
    items = module.ahead(lambda name: prepared.append(name) or name, range(3), torch.device("cpu"))
    assert next(items) == 0
    assert prepared == [0]


def test_random_numbers_are_forgotten_when_they_are_too_many(monkeypatch):
    monkeypatch.setattr(module, "_RECENT", {})
    monkeypatch.setattr(module, "_KEPT_BYTES_ON_CPU", 100)
    fields = [module.normal(Key(0), (name,), (10,)) for name in range(3)]  # 40 bytes each: two fit
    assert module.normal(Key(0), (2,), (10,)) is fields[2]
    assert module.normal(Key(0), (0,), (10,)) is not fields[0]
    assert torch.equal(module.normal(Key(0), (0,), (10,)), fields[0])
