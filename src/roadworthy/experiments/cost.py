"""What a plan would cost, estimated by timing a few images of each kind of work on this machine."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch

from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Imputer
from roadworthy.datasets import first
from roadworthy.evaluation.experiment import POINT_EVALUATORS, Experiment
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.retraining import FineTuned, Mapped, Retrain
from roadworthy.evaluation.sweep import Curve, explain, source_of, sweep
from roadworthy.experiments.build import awaits_training, build, build_data, build_trainer, build_untrained
from roadworthy.experiments.items import default_block_size
from roadworthy.experiments.pending import survey
from roadworthy.experiments.plans import Plan
from roadworthy.experiments.run import prepare
from roadworthy.experiments.self_test.cost import missing_self_test, self_test_work
from roadworthy.experiments.stores.run_directory import RunDirectory
from roadworthy.experiments.worker import threads
from roadworthy.imputers import Constant
from roadworthy.imputers.solvers.multigrid import compile_now
from roadworthy.models.prediction import eval_mode, fastest_device, predict, with_labels
from roadworthy.training.gain import GainRecipe, train_gain
from roadworthy.training.recipe import Recipe

ENOUGH = 0.5
"""Seconds of timing after which nothing is timed again."""
LARGEST = 32
"""Images that are timed at once, at most."""
EPOCHS = 2
"""Of a training that is timed."""


class Work(NamedTuple):
    """One kind of work: how many there are, how many are missing, and the seconds of all of them in one process."""

    kind: str
    number: int
    missing: int
    seconds: float

    @property
    def missing_seconds(self) -> float:
        return self.seconds * self.missing / self.number if self.number else 0.0


class Estimate(NamedTuple):
    images: int
    train_images: int
    work: tuple[Work, ...]

    @property
    def seconds(self) -> float:
        return sum(work.missing_seconds for work in self.work)


def missing_counts(plan: Plan, store: RunDirectory) -> dict[str, int]:
    """How many maps, points and trainings of a plan are missing. An empty directory needs no look at the data."""
    counts = plan.counts()
    if awaits_training(plan) or not store.ids():
        return {**counts, **missing_self_test(plan, None)}
    state = survey(prepare(plan).design, store)
    missing = {item.id for item in state.missing}
    inverted = {name for name, copy in state.copies.items() if copy.how == "inverted"}  # cost nothing: not in `counts`
    known = {point: items for point, items in state.points.items() if point.method not in inverted}
    points = [point for point, items in known.items() if any(item.id in missing for item in items)]
    compared = () if state.self_test else state.missing  # the maps of the self-test are part of its cost
    maps = {(item.label["method"], item.label["split"]) for item in compared if item.kind == "maps"}
    trained = [item for item in state.missing if item.block is None and item.kind != "audit"]
    unknown = 0 if state.final else counts["points"] - len(known)
    return {
        "maps": len(maps),
        "points": len(points) + max(0, unknown),
        "trainings": len(trained),
        **missing_self_test(plan, state),
    }


def estimate(plan: Plan, missing: Mapping[str, int]) -> Estimate:
    counts, waiting = plan.counts(), awaits_training(plan)
    model = _model_seconds(plan) if waiting else 0.0
    experiment = build(plan, untrained=waiting)
    images, train_images = len(experiment.data), len(experiment.train) if experiment.train is not None else 0
    with Key(0).fold("estimate").torch_rng(), threads(plan.threads), eval_mode(experiment.model, experiment.device):
        batch = _few(experiment)
        compile_now(*batch.images.shape[-2:])
        map_seconds = _map_seconds(experiment, batch)
        maps = map_seconds * (images + (train_images if plan.point_evaluators else 0))
        trainings = 0.0
        gain: Imputer = Constant(0.5)
        for recipe in (imputer for imputer in experiment.imputers.values() if isinstance(imputer, GainRecipe)):
            each, gain = _gain_seconds(recipe, experiment)
            trainings += each * train_images * recipe.epochs
        ready = {name: gain if isinstance(i, GainRecipe) else i for name, i in experiment.imputers.items()}
        points = {name: _point_seconds(experiment, imputer, batch) for name, imputer in ready.items()}
        if plan.recipe is not None:
            trainings += _training_seconds(plan, experiment, ready) * train_images * plan.recipe.epochs
    curves = Counter(imputer for _, imputer, _ in plan.settings)
    per_setting = counts["points"] / max(1, len(plan.settings))
    evaluation = sum(curves[name] * per_setting * images * seconds for name, seconds in points.items())
    size = plan.block_size or default_block_size(batch.images.shape[1:], plan.batch_size, plan.map_batch_size)
    tested = self_test_work(plan, images, size, map_seconds, points)
    work = [
        Work("maps", counts["maps"], missing["maps"], maps),
        Work("points", counts["points"], missing["points"], evaluation),
        Work("trainings", counts["trainings"], missing["trainings"], trainings),
        Work("self-test", tested.points, missing.get("self-test", 0), tested.seconds),
        Work("the model itself", int(waiting), int(waiting), model),
    ]
    return Estimate(images, train_images, tuple(row for row in work if row.number))


def _few(experiment: Experiment) -> Batch:
    batch = next(first(experiment.data, LARGEST).batches(LARGEST))
    return experiment.units(with_labels(batch, predict(experiment.model, batch.images, experiment.device)))


def _per_image(action: Callable[[int], object], most: int) -> float:
    """Seconds per image: of 1 image, then 2, 4, … until that takes long enough to be measured well."""
    images = 1
    while True:
        started = time.perf_counter()
        action(images)
        seconds = time.perf_counter() - started
        if seconds > ENOUGH or images >= most:
            return seconds / images
        images = min(2 * images, most)


def _map_seconds(experiment: Experiment, batch: Batch) -> float:
    """Of one image with all methods; those that share a source are computed together."""
    groups: dict[object, dict[str, object]] = {}
    for name, method in experiment.methods.items():
        groups.setdefault(source_of(method), {})[name] = method
    return sum(
        _per_image(
            lambda count, methods=methods: explain(methods, experiment.model, batch[:count], experiment.map_key),  # type: ignore[misc]
            len(batch),
        )
        for methods in groups.values()
    )


def _point_seconds(experiment: Experiment, imputer: Imputer, batch: Batch) -> float:
    """Of one image at one fraction."""
    curve, maps = Curve("order", "imputer", "no-retrain", 0), _some_maps(batch.ids, batch.images.shape)
    order, evaluator = next(iter(experiment.orders.values())), NoRetrain(experiment.model, experiment.device)

    def evaluate(count: int) -> None:
        list(
            sweep(
                {curve: [0.5]},
                {"order": order},
                {"imputer": imputer},
                {curve: evaluator},
                maps[:count],
                batch[:count],
                batch.labels[:count],
                experiment.batch_size,
                experiment.device,
            )
        )

    return _per_image(evaluate, len(batch))


def _some_maps(ids: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    return Key(0).uniform(ids, (shape[-2], shape[-1]))


# ── trainings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _training_seconds(plan: Plan, experiment: Experiment, imputers: Mapping[str, Imputer]) -> float:
    """Per image and epoch, of all trainings of evaluators together."""
    total, counts = 0.0, plan.counts()
    retrained = Counter(
        (imputer, evaluator) for _, imputer, evaluator in plan.settings if evaluator in POINT_EVALUATORS
    )
    tuned = {imputer for _, imputer, evaluator in plan.settings if evaluator == "fine-tuned"}
    others = len(plan.trained_imputers) + len(tuned) * len(plan.seeds)
    per_setting = (counts["trainings"] - others) / max(1, sum(retrained.values()))
    for (name, evaluator), settings in retrained.items():
        total += settings * per_setting * _retrain_seconds(experiment, imputers[name], evaluator == "warm-start")
    for name in tuned:
        total += len(plan.seeds) * _fine_tune_seconds(experiment, imputers[name])
    return total


def _retrain_seconds(experiment: Experiment, imputer: Imputer, warm: bool) -> float:
    data, recipe = _train_images(experiment)
    order = next(iter(experiment.orders.values()))

    def fit(on_epoch: Callable[[object], object]) -> None:
        maps = _some_maps(data.ids, next(data.batches(1)).images.shape)
        Retrain(
            _short(recipe),
            Mapped(data, maps),
            None if warm else experiment.network,
            start=experiment.model if warm else None,
            loss=experiment.loss,
            augment=experiment.augment,
            device=experiment.device,
            on_epoch=on_epoch,
            units=experiment.units,
        ).fit(order, imputer, 0.5, Key(0))

    return _second_epoch(fit, len(data))


def _fine_tune_seconds(experiment: Experiment, imputer: Imputer) -> float:
    data, recipe = _train_images(experiment)

    def fit(on_epoch: Callable[[object], object]) -> None:
        FineTuned(
            _short(recipe),
            data,
            experiment.model,
            loss=experiment.loss,
            augment=experiment.augment,
            on_epoch=on_epoch,
            units=experiment.units,
        ).fit(imputer, Key(0))

    return _second_epoch(fit, len(data))


def _gain_seconds(recipe: GainRecipe, experiment: Experiment) -> tuple[float, Imputer]:
    """Per image and epoch, and a GAIN that has hardly begun to learn."""
    data, _ = _train_images(experiment, recipe.batch_size)
    gains: list[Imputer] = []

    def fit(on_epoch: Callable[[object], object]) -> None:
        gains.append(train_gain(replace(recipe, epochs=EPOCHS), data, device=experiment.device, on_epoch=on_epoch).gain)

    return _second_epoch(fit, len(data)), gains[0]


def _model_seconds(plan: Plan) -> float:
    """Of the training of the model itself, as `roadworthy train` does it."""
    if plan.training is None:
        return 0.0
    recipe, images = plan.training.recipe, len(build_data(plan, "training"))
    sizes = {key: value for key, value in plan.training.data.items() if key not in ("images", "sample")}
    few = replace(
        plan.training, recipe=_short(recipe), data={**sizes, "images": max(2, min(LARGEST, recipe.batch_size))}
    )
    trainer = build_trainer(replace(plan, training=few), seed=0)

    def fit(on_epoch: Callable[[object], object]) -> None:
        with Key(0).fold("init").torch_rng():
            model = build_untrained(plan).to(fastest_device())
        trainer._replace(on_epoch=on_epoch).train(model)

    with threads(plan.threads):
        return _second_epoch(fit, len(trainer.data)) * images * recipe.epochs


def _train_images(experiment: Experiment, batch_size: int | None = None) -> tuple[Dataset, Recipe]:
    recipe = experiment.recipe or Recipe(epochs=EPOCHS)
    if experiment.train is None:
        raise ValueError("nothing is trained without train images")
    return first(experiment.train, max(4, min(LARGEST, batch_size or recipe.batch_size))), recipe


def _second_epoch(fit: Callable[[Callable[[object], object]], None], images: int) -> float:
    """Seconds per image and epoch. The first epoch also pays for building, which a real training hardly feels."""
    ends: list[float] = []
    fit(lambda record: ends.append(time.perf_counter()))
    return (ends[1] - ends[0]) / images


def _short(recipe: Recipe) -> Recipe:
    """A few epochs of the same steps; the rate is so small that nothing diverges."""
    return replace(recipe, epochs=EPOCHS, lr=1e-9, schedule="constant", milestones=(), select="last", patience=0)
