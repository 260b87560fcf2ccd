"""Methods, models, maps and data that misbehave while a comparison runs."""

import numpy as np
import torch
from torch import nn

import roadworthy as rw
from faults.rows_compare import GOOD, IMAGES, LABELS, WORLD, compare
from faults.table import Row
from roadworthy.core.errors import DataError, InputError, ModelError, RangeError, ShapeError
from roadworthy.core.types import Batch

MAPS = WORLD.truth


def method(function):
    return compare(methods={"mine": function})


def maps(values, **options):
    return compare(methods={"mine": rw.attributions.PrecomputedMaps(values, **options)})


def saved(what, name, write, cure="save them again"):
    """A file of maps as `write(path)` leaves it."""
    do = lambda folder: rw.compare(**{**GOOD, "methods": {"mine": str(folder / name)}})  # noqa: E731
    return Row(f"maps: {what}", do, DataError, cure, lambda folder: write(folder / name))


class Data:
    """A user's data set; `change(batch, reading)` is what goes wrong."""

    classes = ()

    def __init__(self, change, ids=None, length=8):
        self.change, self.length, self.readings = change, length, 0
        self.ids = torch.arange(8) if ids is None else ids

    def __len__(self):
        return self.length

    def batches(self, size):
        self.readings += 1
        for start in range(0, 8, size):
            rows = slice(start, start + size)
            yield self.change(Batch(torch.arange(8)[rows], IMAGES[rows], LABELS[rows]), self.readings)


def data(change=lambda batch, reading: batch, **options):
    return lambda folder: rw.compare(**{**GOOD, "methods": {"G": "gradient"}, "data": Data(change, **options)})


def changed(**fields):
    """Every batch with some of its fields replaced, by functions of the batch."""
    return lambda batch, reading: Batch(
        *(fields.get(name, lambda b, n=name: getattr(b, n))(batch) for name in ("ids", "images", "labels"))
    )


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images):
        return self.scale * WORLD.model(images)


def meddling(change):
    """A method that changes the model it is given."""

    def explain(model, batch, key):
        change(model)
        return batch.images

    return compare(model=Weighted(), methods={"mine": explain})


def scaled(model):
    with torch.no_grad():
        next(model.parameters()).mul_(2)


def hooked(model):
    model.network.register_forward_pre_hook(lambda module, inputs: None)


def alternating():
    """A model whose number of classes changes after some calls."""
    calls = []

    def predict(images):
        calls.append(1)
        logits = WORLD.model(images)
        return logits if len(calls) < 12 else logits[:, :3]

    return predict


METHODS = [
    *(
        Row(f"method: returns {what}", method(lambda model, batch, key, value=value: value), error, cure)
        for what, value, error, cure in (
            ("None", None, ShapeError, "return a tensor"),
            ("text", "maps", ShapeError, "return a tensor"),
            ("a list", [1.0], ShapeError, "return a tensor"),
            ("a dict", {}, ShapeError, "return a tensor"),
            ("a number", 3.0, ShapeError, "return a tensor"),
            ("one map", torch.zeros(12, 12), ShapeError, "one map per image"),
            ("no maps", torch.zeros(0, 12, 12), ShapeError, "one map per image"),
            ("five axes", torch.zeros(2, 1, 1, 12, 12), ShapeError, "one map per image"),
            ("larger maps", torch.zeros(2, 24, 24), ShapeError, "resize"),
            ("complex maps", torch.zeros(2, 12, 12, dtype=torch.complex64), InputError, "complex"),
            ("NaN", torch.full((2, 12, 12), float("nan")), InputError, "fix or leave out"),
            ("masked values", np.ma.masked_all((2, 12, 12)), InputError, "filled"),
            ("infinity in small maps", torch.full((2, 4, 4), float("inf")), InputError, "infin"),
        )
    ),
    Row("method: changes weights", meddling(scaled), ModelError, "deepcopy"),
    Row("method: leaves hooks", meddling(hooked), ModelError, "remove hooks"),
    Row("model: another number of classes", compare(model=alternating()), ModelError, "one logit per class"),
    Row("model: NaN", compare(model=lambda images: WORLD.model(images) * float("nan")), ModelError, "weights"),
    Row("model: one logit", compare(model=lambda images: WORLD.model(images)[:, :1]), ModelError, "two classes"),
    Row("model: text", compare(model=lambda images: "logits"), ModelError, "return logits"),
    Row("model: fewer rows", compare(model=lambda images: WORLD.model(images)[:1]), ModelError, "per image"),
    Row("model: no gradient", compare(model=lambda images: WORLD.model(images).detach()), ModelError, "detach"),
    Row("model: not callable", compare(model=3), ModelError, "callable"),
]

MAP_FILES = [
    Row("maps: an id twice", maps(MAPS, ids=torch.zeros(8, dtype=torch.int64)), InputError, "one map per image"),
    Row("maps: more maps than ids", maps(MAPS, ids=torch.arange(5)), ShapeError, "one map per image"),
    Row("maps: ids of others", maps(MAPS, ids=torch.arange(8) + 100), ShapeError, "no map for images"),
    Row("maps: masked", maps(np.ma.masked_array(MAPS.numpy(), MAPS.numpy() > 0)), InputError, "filled"),
    saved("a zip that is none", "m.npz", lambda path: path.write_bytes(b"PK\3\4")),
    saved("objects in a file", "m.npy", lambda path: np.save(path, np.full(8, None))),
    saved("nothing in a file", "m.npy", lambda path: path.write_bytes(b"")),
    saved("a file that is not there", "m.npy", lambda path: None),
    saved("a file of another kind", "m.tiff", lambda path: path.write_bytes(b""), ".safetensors"),
]

DATA = [
    Row("data: other pixels on the next pass", data(lambda b, n: Batch(b.ids, b.images / n, b.labels)), DataError, "random"),
    Row("data: flipped on the next pass", data(lambda b, n: b if n < 2 else Batch(b.ids, b.images.flip(3), b.labels)), DataError, "random"),
    Row("data: other labels on the next pass", data(lambda b, n: Batch(b.ids, b.images, (b.labels + n) % 4)), DataError, "every pass"),
    Row("data: 0 to 255", data(changed(images=lambda b: b.images * 255)), RangeError, "divide by 255"),
    Row("data: NaN", data(changed(images=lambda b: b.images * float("nan"))), RangeError, "finite"),
    Row("data: doubles", data(changed(images=lambda b: b.images.double())), ShapeError, "float32"),
    Row("data: arrays", data(changed(images=lambda b: b.images.numpy())), InputError, "tensors"),
    Row("data: fewer labels", data(changed(labels=lambda b: b.labels[:1])), ShapeError, "do not match"),
    Row("data: ids in another order", data(ids=torch.arange(8).flip(0)), InputError, "order of ids"),
    Row("data: an id twice", data(ids=torch.zeros(8, dtype=torch.int64)), InputError, "unique"),
    Row("data: ids that are floats", data(ids=torch.arange(8.0)), ShapeError, "int64"),
    Row("data: longer than its ids", data(length=9), ShapeError, "ids"),
    Row("data: longer than its images", data(ids=torch.arange(12), length=12), ShapeError, "length|expected"),
    Row("data: no images", data(ids=torch.arange(0), length=0), ShapeError, "at least one"),
    Row("data: ids beyond 64 bits", lambda folder: rw.datasets.Arrays(IMAGES, ids=np.arange(8, dtype=np.uint64) + 2**63), RangeError, "int64"),
]  # fmt: skip

ROWS = [*METHODS, *MAP_FILES, *DATA]
