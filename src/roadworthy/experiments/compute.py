"""How items are computed: one function per kind, in `KINDS`. A new kind is a function and an entry.

They return arrays and write nothing but the checkpoint of a training.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.audit.randomization import shuffled_weights
from roadworthy.core.errors import InputError
from roadworthy.core.random import Key
from roadworthy.core.results import Point, Predictions
from roadworthy.core.types import Batch, Dataset, Evaluator, Imputer, Maps, Order
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.experiment import POINT_EVALUATORS, Experiment
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.retraining import FineTuned, Mapped, Retrain
from roadworthy.evaluation.sweep import Curve, explain, predictions, sweep, tied
from roadworthy.evaluation.token_removal import evaluator_of
from roadworthy.experiments.audit_measures import measure
from roadworthy.experiments.inputs import first_images
from roadworthy.experiments.items import Arrays, Item
from roadworthy.experiments.recorded import as_predictions, prediction_arrays
from roadworthy.experiments.self_test.measures import copied_maps
from roadworthy.experiments.worker import Computed, Inputs, Worker, block_of, of_kind, threads
from roadworthy.models.outputs import recognized
from roadworthy.models.prediction import accelerated, eval_mode, with_labels
from roadworthy.training.gain import GainRecipe, train_gain
from roadworthy.training.loop import curve as training_curve
from roadworthy.training.trainer import TrainingResult, readable


def compute(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None = None) -> Computed:
    """Items of one kind that are cheaper together; those with a training come alone, with its checkpoint."""
    experiment = worker.experiment
    with threads(experiment.threads), eval_mode(experiment.model, experiment.device):
        yield from KINDS[items[0].kind](worker, items, inputs, checkpoint)


def _baseline(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None) -> Computed:
    experiment = worker.experiment
    for item in items:
        parts = []
        block = block_of(item)
        for _, batch in worker.batch(block).split(experiment.batch_size):
            probabilities = worker.predict(batch, block.split)
            known = with_labels(batch, probabilities)
            targets = probabilities.argmax(dim=1) if experiment.target == "prediction" else known.labels
            parts.append(predictions(known, targets, probabilities))
        yield item, prediction_arrays(Predictions.join(parts))


def _maps(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None) -> Computed:
    experiment, (first, *_) = worker.experiment, items
    share = first.spec.get("randomized", 0.0)
    if "copy_of" in first.label and not share:
        for item in items:
            copied = copied_maps(item, inputs)
            yield item, {"maps": copied.numpy(), "ties": tied(copied, worker.batch(block_of(item)).units)}
        return
    baseline = as_predictions(inputs[first.needs[0].id])
    batch = replace(worker.batch(block_of(first)), labels=_targets(experiment, baseline))
    names = {item.id: item.label.get("copy_of", item.label["method"]) for item in items}
    methods = {name: experiment.methods[name] for name in names.values()}
    with shuffled_weights(experiment.model, share, Key(0).fold("randomized")):
        parts = [
            explain(methods, experiment.model, piece, experiment.map_key, experiment.channel_reduction)
            for _, piece in batch.split(experiment.map_batch_size)
        ]
    for item in items:
        maps = torch.cat([part[names[item.id]] for part in parts])
        yield item, {"maps": maps.numpy(), "ties": tied(maps, batch.units)}


def _trained_imputer(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None) -> Computed:
    for item in items:
        recipe = worker.experiment.imputers[item.label["imputer"]]
        if not isinstance(recipe, GainRecipe):
            raise InputError(f"imputer {item.label['imputer']!r} has weights: there is nothing to train")
        gain = train_gain(recipe, worker.train(), checkpoint=checkpoint, device=worker.experiment.device)
        yield item, {name: tensor.numpy() for name, tensor in gain.tensors().items()}


def _fine_tuned(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None) -> Computed:
    experiment = worker.experiment
    for item in items:
        evaluator = FineTuned(
            worker.recipe(),
            worker.train(),
            experiment.model,
            loss=experiment.loss,
            augment=experiment.augment,
            checkpoint=checkpoint,
            units=experiment.units,
        )
        result = evaluator.fit(worker.imputer(item.label["imputer"], item, inputs), Key(item.label["seed"]))
        weights = {f"weights.{name}": tensor.cpu().numpy() for name, tensor in result.model.state_dict().items()}
        yield item, {**weights, **_curve_arrays(result)}


def _predictions(worker: Worker, items: Sequence[Item], inputs: Inputs, checkpoint: Path | None) -> Computed:
    if items[0].spec["evaluator"] in POINT_EVALUATORS:
        for item in items:
            yield item, _retrained(worker, item, inputs, checkpoint)
        return
    experiment, (first, *_) = worker.experiment, items
    by_point = {(_curve(item), item.label["fraction"]): item for item in items}
    curves: dict[Curve, list[float]] = {}
    for curve, fraction in by_point:
        curves.setdefault(curve, []).append(fraction)
    examples = {curve: by_point[curve, fractions[0]] for curve, fractions in curves.items()}
    yield from (
        (by_point[curve, fraction], prediction_arrays(result))
        for curve, fraction, result in sweep(
            curves,
            {curve.order: _order(experiment, curve.order) for curve in curves},
            {curve.imputer: _imputer(worker, item, inputs) for curve, item in examples.items()},
            {curve: _evaluator(experiment, item, inputs) for curve, item in examples.items()},
            *_evaluated_block(worker, first, inputs),
            experiment.batch_size,
            experiment.device,
        )
    )


def _retrained(worker: Worker, item: Item, inputs: Inputs, checkpoint: Path | None) -> Arrays:
    experiment, point = worker.experiment, Point(**item.label)
    warm = point.evaluator == "warm-start"
    baselines = of_kind(item, "baseline")
    rows = [row for need in baselines for row in block_of(need).rows]
    order, key = _order(experiment, point.order), Key(point.seed)
    imputer = _imputer(worker, item, inputs)
    train, test = readable(worker.train()), picked(experiment.data, sorted(rows))
    evaluator = Retrain(
        worker.recipe(),
        Mapped(train, _all_maps(item, "train", train, inputs)),
        None if warm else experiment.network,
        start=experiment.model if warm else None,
        test=Mapped(test, _all_maps(item, "test", test, inputs)),
        loss=experiment.loss,
        augment=experiment.augment,
        checkpoint=checkpoint,
        device=experiment.device,
        units=experiment.units,
    )
    result = evaluator.fit(order, imputer, point.fraction, key)
    curve, parts = Curve(point.order, point.imputer, point.evaluator, point.seed), []
    own = experiment.model
    model = accelerated(result.model, own.autocast, own.channels_last)
    model = recognized(model, first_images(experiment.data), experiment.device)
    with eval_mode(model, experiment.device):
        predictor = NoRetrain(model, experiment.device)
        for need in baselines:
            maps, batch, targets = _evaluated_block(worker, item, inputs, need)
            ((_, _, predicted),) = sweep(
                {curve: [point.fraction]},
                {point.order: order},
                {point.imputer: imputer},
                {curve: predictor},
                maps,
                batch,
                targets,
                experiment.batch_size,
                experiment.device,
            )
            parts.append(predicted)
    in_order = Predictions.join(parts).take(sorted(range(len(rows)), key=rows.__getitem__))
    return {**prediction_arrays(in_order), **_curve_arrays(result)}


def _targets(experiment: Experiment, baseline: Predictions) -> Tensor:
    return torch.from_numpy(np.array(baseline.predicted if experiment.target == "prediction" else baseline.labels))


def _curve(item: Item) -> Curve:
    label = item.label
    return Curve(label["order"], label["imputer"], label["evaluator"], label["seed"])


def _order(experiment: Experiment, name: str) -> Order:
    """Point 0 removes nothing, in whatever order."""
    return experiment.orders[name] if name else next(iter(experiment.orders.values()))


def _imputer(worker: Worker, item: Item, inputs: Inputs) -> Imputer:
    """Point 0 has no maps and needs no imputer."""
    return worker.imputer(item.label["imputer"], item, inputs) if of_kind(item, "maps") else _unchanged


def _unchanged(batch: Batch, removed: Tensor, key: Key) -> Tensor:
    return batch.images


def _evaluator(experiment: Experiment, item: Item, inputs: Inputs) -> Evaluator:
    tuned = of_kind(item, "model")
    if not tuned:
        imputer = experiment.imputers.get(item.label["imputer"]) if of_kind(item, "maps") else None
        return evaluator_of(experiment.model, imputer, experiment.device)
    model, arrays = deepcopy(experiment.model), inputs[tuned[0].id]
    model.load_state_dict(
        {
            name.removeprefix("weights."): torch.from_numpy(np.array(array))
            for name, array in arrays.items()
            if name.startswith("weights.")
        }
    )
    return NoRetrain(model, experiment.device)


def _evaluated_block(
    worker: Worker, item: Item, inputs: Inputs, baseline: Item | None = None
) -> tuple[Maps, Batch, Tensor]:
    """Maps, images with known labels, and targets of one block."""
    baseline = baseline or of_kind(item, "baseline")[0]
    block, known = block_of(baseline), as_predictions(inputs[baseline.id])
    batch = replace(worker.placed(block), labels=torch.from_numpy(np.array(known.labels)))
    maps = [need for need in of_kind(item, "maps", block.split) if block_of(need).index == block.index]
    found = torch.from_numpy(np.array(inputs[maps[0].id]["maps"])) if maps else _no_maps(batch)
    return found, batch, _targets(worker.experiment, known)


def _no_maps(batch: Batch) -> Maps:
    return torch.zeros(len(batch), *batch.images.shape[-2:])


def _all_maps(item: Item, split: str, data: Dataset, inputs: Inputs) -> Maps:
    """The maps of a split, in the order of its rows."""
    needs = of_kind(item, "maps", split)
    if not needs:
        height, width = next(data.batches(1)).images.shape[-2:]
        return torch.zeros(len(data), height, width)
    rows = [row for need in needs for row in block_of(need).rows]
    joined = torch.cat([torch.from_numpy(np.array(inputs[need.id]["maps"])) for need in needs])
    return joined[torch.tensor(sorted(range(len(rows)), key=rows.__getitem__))]


def _curve_arrays(result: TrainingResult) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
    """How a model was trained, a row per epoch, and the epoch whose weights it has."""
    return {"curve": training_curve(result.records).numpy(), "epoch": np.array([result.epoch], dtype=np.int64)}


KINDS: Mapping[str, Callable[[Worker, Sequence[Item], Inputs, Path | None], Computed]] = {
    "baseline": _baseline,
    "maps": _maps,
    "imputer": _trained_imputer,
    "model": _fine_tuned,
    "predictions": _predictions,
    "audit": measure,
}
