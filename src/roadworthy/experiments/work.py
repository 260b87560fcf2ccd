"""What a worker does: compute maps, train imputers, tune models, evaluator sweeps, measure leaks.

It returns arrays and writes nothing, but for the checkpoint of a training in hand.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.core.errors import PlanError
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions
from roadworthy.core.types import UNLABELED, Dataset, Evaluator, Removal
from roadworthy.evaluation.evaluators import FineTuned, Mapped, Retrain, check_apart, check_factory, check_splits
from roadworthy.evaluation.sweep import NoRetrain, evaluator_batch, explain, prediction
from roadworthy.experiments.auditing import AuditTask, measured
from roadworthy.experiments.build import Context, build_augment, build_loss, build_network, built, imputer_for
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.registry import part
from roadworthy.imputers.solvers.multigrid import compile_now
from roadworthy.models.prediction import evaluating, fastest_device, labeled, predict
from roadworthy.training.gain import GainRecipe, train_gain
from roadworthy.training.loop import Recipe, curve
from roadworthy.training.trainer import TrainingResult

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class MapTask:
    """PrecomputedMaps that share what they are computed from."""

    plan: Plan
    methods: tuple[str, ...]
    train: bool = False
    """of the train split"""


@dataclass(frozen=True, eq=False)
class ImputerTask:
    """A GAIN that comes without weights."""

    plan: Plan
    imputer: str
    checkpoint: Path


@dataclass(frozen=True, eq=False)
class TuneTask:
    """The model tuned with random masks and one imputer."""

    plan: Plan
    imputer: str
    seed: int
    checkpoint: Path
    painter: Arrays | None = None
    """the weights of an imputer that was trained here"""


@dataclass(frozen=True, eq=False)
class SweepTask:
    """One map in one order with one imputer, evaluator and seed, at those fractions that are missing.

    A retrained evaluator needs the method's maps of the train split too, and does one fraction per task; a fine-tuned one
    is given its weights.
    """

    plan: Plan
    method: str
    order: str
    imputer: str
    evaluator: str
    seed: int
    fractions: tuple[float, ...]
    maps: NDArray[np.float32]
    train_maps: NDArray[np.float32] | None = None
    weights: Arrays | None = None
    checkpoint: Path | None = None
    painter: Arrays | None = None
    """the weights of an imputer that was trained here"""


Task = MapTask | ImputerTask | TuneTask | SweepTask | AuditTask


class Done(NamedTuple):
    """Maps per method, a model's or an audit's arrays, or a Predictions per fraction, and the seconds that it took."""

    results: Mapping[Any, Any]
    seconds: float
    curves: Mapping[float, Arrays] = {}
    """per fraction, how its evaluator was trained"""


def perform(task: Task) -> Done:
    curves: dict[float, Arrays] = {}
    with threads(task.plan.threads):
        context = built(task.plan)
        compile_now()  # once per machine; its time belongs to no item
        started = time.perf_counter()
        device = fastest_device()
        with evaluating(context.model, device):
            if isinstance(task, MapTask):
                results: Mapping[Any, Any] = _maps(task, context)
            elif isinstance(task, ImputerTask):
                results = {task.imputer: _trained(task, context, device)}
            elif isinstance(task, TuneTask):
                results = {(task.imputer, task.seed): _tuned(task, context)}
            elif isinstance(task, AuditTask):
                results = {task.item.id: measured(task, context)}
            else:
                results = _sweep(task, context, device, curves)
    return Done(results, time.perf_counter() - started, curves)


def _maps(task: MapTask, context: Context) -> dict[str, NDArray[np.float32]]:
    wanted = {name: context.methods[name] for name in task.methods}
    key = Key(task.plan.map_seed).fold("maps")
    pieces: list[Mapping[str, Any]] = []
    for batch in (train_of(context) if task.train else context.data).batches(task.plan.map_batch):
        known = labeled(batch, predict(context.model, batch.images, context.model.device))
        pieces.append(explain(wanted, context.model, known, key))
    return {name: np.concatenate([piece[name].numpy() for piece in pieces]) for name in wanted}


def _trained(task: ImputerTask, context: Context, device: torch.device) -> Arrays:
    trained = train_gain(gain_of(task.plan), train_of(context), checkpoint=_reachable(task.checkpoint), device=device)
    return {name: tensor.numpy() for name, tensor in trained.tensors().items()}


def _tuned(task: TuneTask, context: Context) -> Arrays:
    evaluator = FineTuned(
        recipe_of(task.plan),
        train_of(context),
        context.model,
        loss=build_loss(task.plan),
        augment=build_augment(task.plan),
        checkpoint=_reachable(task.checkpoint),
    )
    result = evaluator.tuned(imputer_for(context, task.imputer, task.painter), Key(task.seed))
    weights = {f"weights.{name}": tensor.cpu().numpy() for name, tensor in result.model.state_dict().items()}
    return {**weights, **_curve(result)}


def _sweep(
    task: SweepTask, context: Context, device: torch.device, curves: dict[float, Arrays]
) -> dict[float, Predictions]:
    """The PointPredictions; where the evaluator was trained for a fraction, its curve is put into `curves`."""
    removal = Removal(part("orders", task.order).make(), imputer_for(context, task.imputer, task.painter))
    evaluator, key = _evaluator(task, context, device), Key(task.seed)
    if isinstance(evaluator, Retrain):
        curves |= {fraction: _curve(evaluator.trained(removal, fraction, key)) for fraction in task.fractions}
    above = [fraction for fraction in task.fractions if fraction > 0]
    pieces: dict[float, list[Predictions]] = {fraction: [] for fraction in task.fractions}
    start = 0
    for batch in context.data.batches(task.plan.batch):
        known = batch
        if 0 in pieces or (batch.labels == UNLABELED).any():
            known = labeled(batch, predict(context.model, batch.images, device))
            if 0 in pieces:
                plain = predict(evaluator.model_for(removal, 0.0, key), batch.images, device)
                pieces[0].append(prediction(known, known.labels, plain))
        maps = torch.from_numpy(task.maps[start : start + len(batch)])
        ranks = removal.order(maps, batch.ids, key)
        evaluated = evaluator_batch(evaluator, removal, ranks, known, known.labels, above, key, device)
        for fraction, one in zip(above, evaluated, strict=True):
            pieces[fraction].append(one)
        start += len(batch)
    return {fraction: Predictions.join(predictions) for fraction, predictions in pieces.items()}


def _evaluator(task: SweepTask, context: Context, device: torch.device) -> Evaluator:
    if task.train_maps is not None:
        return Retrain(
            recipe_of(task.plan),
            Mapped(train_of(context), torch.from_numpy(task.train_maps)),
            lambda: build_network(task.plan),
            test=Mapped(context.data, torch.from_numpy(task.maps)),
            loss=build_loss(task.plan),
            augment=build_augment(task.plan),
            checkpoint=_reachable(task.checkpoint),
            device=device,
        )
    if task.weights is not None:
        tuned = deepcopy(context.model)
        names = {name for name in task.weights if name.startswith("weights.")}
        tuned.load_state_dict(
            {name.removeprefix("weights."): torch.from_numpy(np.array(task.weights[name])) for name in names}
        )
        return NoRetrain(tuned)
    return NoRetrain(context.model)


def _curve(result: TrainingResult) -> Arrays:
    """How a model was trained, a row per epoch, and the epoch whose weights it has."""
    return {"curve": curve(result.records).numpy(), "epoch": np.array([result.epoch], dtype=np.int64)}


def _reachable(checkpoint: Path | None) -> Path | None:
    """A worker on another machine may not see the store: it trains without checkpoints."""
    return checkpoint if checkpoint and checkpoint.parent.parent.is_dir() else None


def train_of(context: Context) -> Dataset:
    if context.train is None:
        raise PlanError("[train] is missing: a evaluator that trains needs it")
    return context.train


def recipe_of(plan: Plan) -> Recipe:
    if plan.recipe is None:
        raise PlanError("[recipe] is missing: a evaluator that trains needs it")
    return plan.recipe


def gain_of(plan: Plan) -> GainRecipe:
    if plan.gain is None:
        raise PlanError("[gain] is missing: an imputer without weights needs it")
    return plan.gain


def check_training(plan: Plan) -> None:
    """What cannot be learned, or should not be, is said before the first epoch."""
    if plan.train is None:
        return
    context = built(plan)
    if plan.trained_imputers:
        check_apart(train_of(context), context.data)
    if plan.recipe is not None:
        check_splits(train_of(context), context.data)
        build_loss(plan)
        build_augment(plan)
        if plan.retrains:
            check_factory(lambda: build_network(plan))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Torch computes with so many inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def groups(plan: Plan, methods: Sequence[str]) -> list[tuple[str, ...]]:
    """Methods that share a source (one stream of samples) are computed together."""
    context = built(plan)
    found: dict[Any, list[str]] = {}
    for name in methods:
        method = context.methods[name]
        while (source := getattr(method, "source", None)) is not None:
            method = source
        found.setdefault(method, []).append(name)
    return [tuple(names) for names in found.values()]
