"""The measures of a leakage audit: each computes the arrays of one kind of item."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from roadworthy.audit.geometry import geometry_of
from roadworthy.audit.leakage import leak_through
from roadworthy.audit.mask_detection import detect, mask_detector, train_mask_detector, train_test_images
from roadworthy.audit.mask_information import MASK_CLASSIFIERS, MaskClassifier, classify_masks, learning_curve
from roadworthy.audit.tables import DetectionSetting
from roadworthy.core.masks import MASKS, random_removal, removed_at
from roadworthy.core.partitions import Partition
from roadworthy.core.random import Key
from roadworthy.core.results import MaskDetection, Predictions
from roadworthy.core.types import Dataset, Ids, Labels, Maps, Order, Ranks, Removed
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.orders import most_relevant_first, rank
from roadworthy.experiments.items import Arrays, Item
from roadworthy.experiments.recorded import as_predictions, prediction_arrays
from roadworthy.experiments.self_test.measures import scope
from roadworthy.experiments.worker import Computed, Inputs, Worker, block_of, of_kind


class Subject(NamedTuple):
    """The images that were evaluated, in the order of their rows, with known labels."""

    data: Dataset
    ids: Ids
    labels: Labels
    key: Key


def measure(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None) -> Computed:
    for item in items:
        yield item, MEASURES[item.spec["measure"]](worker, item, inputs)


def _subject(worker: Worker, item: Item, inputs: Inputs) -> Subject:
    baselines = of_kind(item, "baseline")
    rows = [row for need in baselines for row in block_of(need).rows]
    order = np.argsort(rows)
    known = Predictions.join([as_predictions(inputs[need.id]) for need in baselines]).take(order.tolist())
    data = picked(worker.experiment.data, sorted(rows))
    return Subject(data, torch.from_numpy(known.ids), torch.from_numpy(known.labels), Key(item.spec["seed"]))


def _maps(item: Item, inputs: Inputs) -> Maps:
    needs = of_kind(item, "maps")
    rows = [row for need in needs for row in block_of(need).rows]
    return torch.from_numpy(np.concatenate([inputs[need.id]["maps"] for need in needs])[np.argsort(rows)])


def _masks(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, removed, classifier = _masks_to_classify(worker, item, inputs)
    key = subject.key.fold("masks")
    return prediction_arrays(classify_masks(removed, subject.labels, subject.ids, key, classifier))


def _curve(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, removed, classifier = _masks_to_classify(worker, item, inputs)
    curve = learning_curve(removed, subject.labels, subject.ids, subject.key.fold("masks"), classifier)
    return {
        f"{name} {number}": array
        for number, predictions in enumerate(curve)
        for name, array in prediction_arrays(predictions).items()
    }


def _masks_to_classify(worker: Worker, item: Item, inputs: Inputs) -> tuple[Subject, Removed, MaskClassifier]:
    subject = _subject(worker, item, inputs)
    maps, fraction, parts = _maps(item, inputs), item.label["fraction"], []
    for rows in torch.split(torch.arange(len(maps)), 256):
        ranks, units = _ranked(worker, subject, maps, {"morf": most_relevant_first}, rows)
        parts.append(removed_at(ranks["morf"], fraction, units))
    return subject, torch.cat(parts), MASK_CLASSIFIERS[item.label["classifier"]]


def _ranked(
    worker: Worker, subject: Subject, maps: Maps, orders: Mapping[str, Order], rows: Tensor
) -> tuple[dict[str, Ranks], Partition | None]:
    """The ranks of some images by order, and their units; images are read only if there are units."""
    units, setting = None, worker.experiment.units
    if not setting.pixels:
        different, places = torch.unique(rows, return_inverse=True)
        units = setting(next(picked(subject.data, different.tolist()).batches(len(different)))).units
        units = units and units[places]
    return rank(orders, maps[rows], subject.ids[rows], subject.key, units), units


def _detector(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, imputer = _subject(worker, item, inputs), worker.imputer(item.label["imputer"], item, inputs)
    train, tested = (worker.experiment.units(part) for part in train_test_images(subject.data, subject.key)[:2])
    network = train_mask_detector(imputer, train, subject.key.fold("predictor"))
    found = {}
    for setting in random_settings(item.label["imputer"], item.label["fractions"]):
        removed = random_removal(tested, setting.masks, setting.fraction, subject.key.fold("predictor", "test"))
        found[setting] = detect(network, imputer, tested, removed, subject.key)
    weights = {f"weights.{name}": tensor.numpy() for name, tensor in network.state_dict().items()}
    return {**weights, **_detection_arrays(found)}


def _detection(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, imputer = _subject(worker, item, inputs), worker.imputer(item.label["imputer"], item, inputs)
    _, tested, rows = train_test_images(subject.data, subject.key)
    network = _trained_detector(item, inputs, tested.images.shape[1])
    ranks, units = _ranked(worker, subject, _maps(item, inputs), _orders(worker, item), torch.tensor(rows))
    found = {}
    for setting in method_settings(item.label):
        removed = removed_at(ranks[setting.order], setting.fraction, units)
        found[setting] = detect(network, imputer, tested, removed, subject.key)
    return _detection_arrays(found)


def _leak(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    subject, imputer = _subject(worker, item, inputs), worker.imputer(item.label["imputer"], item, inputs)
    network = _trained_detector(item, inputs, next(subject.data.batches(1)).images.shape[1])
    maps, orders, settings = _maps(item, inputs), _orders(worker, item), method_settings(item.label)

    def masks_of(rows: Tensor) -> list[Removed]:
        ranks, units = _ranked(worker, subject, maps, orders, rows)
        return [removed_at(ranks[setting.order], setting.fraction, units) for setting in settings]

    readings = leak_through(network, imputer, subject.data, masks_of, subject.labels, subject.key.fold("leak"))
    found = zip(settings, readings, strict=True)
    return {array_name(setting, name): array for setting, row in found for name, array in row._asdict().items()}


def _trained_detector(item: Item, inputs: Inputs, channels: int) -> nn.Sequential:
    network, arrays = mask_detector(channels), inputs[of_kind(item, "audit")[0].id]
    weights = {name.removeprefix("weights."): array for name, array in arrays.items() if name.startswith("weights.")}
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
    return network.eval()


def _geometry(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    return _geometry_of(_subject(worker, item, inputs), worker, item, inputs)


def _gamma(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    """The same for few images, which are centered by their common mean if all are of different classes."""
    subject = _subject(worker, item, inputs)
    if len(set(subject.labels.tolist())) == len(subject.labels):
        subject = subject._replace(labels=torch.zeros_like(subject.labels))
    return _geometry_of(subject, worker, item, inputs)


def _geometry_of(subject: Subject, worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    method = item.label["method"]
    maps = {method: lambda: _maps(item, inputs)}
    orders, fractions, units = _orders(worker, item), item.label["fractions"], worker.experiment.units
    found = geometry_of(subject.data, subject.labels, maps, orders, fractions, subject.key, units=units)
    sums = {
        f"{name} {row.order} {row.fraction}": getattr(row, name)
        for row in found.reconstructions
        for name in ("residual", "total")
    }
    return {"blur": found.blur[method], **sums}


MEASURES: Mapping[str, Callable[[Worker, Item, Inputs], Arrays]] = {
    "masks": _masks,
    "curve": _curve,
    "detector": _detector,
    "detection": _detection,
    "leak": _leak,
    "scope": scope,
    "geometry": _geometry,
    "gamma": _gamma,
}


def _orders(worker: Worker, item: Item) -> dict[str, Any]:
    return {name: worker.experiment.orders[name] for name in item.label["orders"]}


def random_settings(imputer: str, fractions: Sequence[float]) -> list[DetectionSetting]:
    return [DetectionSetting(imputer, pattern, "", fraction) for pattern, fraction in product(MASKS, fractions)]


def method_settings(label: Mapping[str, Any]) -> list[DetectionSetting]:
    pairs = product(label["orders"], label["fractions"])
    return [DetectionSetting(label["imputer"], label["method"], order, fraction) for order, fraction in pairs]


def _detection_arrays(found: Mapping[DetectionSetting, MaskDetection]) -> dict[str, NDArray[Any]]:
    return {array_name(setting, name): array for setting, row in found.items() for name, array in row._asdict().items()}


def array_name(setting: DetectionSetting, field_name: str) -> str:
    return f"{field_name} {setting.order or setting.masks} {setting.fraction}"
