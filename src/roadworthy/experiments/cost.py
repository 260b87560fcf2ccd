"""What would a plan cost? A few images are timed with thinned-out methods, and multiplied by what was left out.

PrecomputedMaps and points are timed at two sizes, so that what is paid once (loading, building) is not multiplied.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from typing import NamedTuple

from roadworthy.attributions import paper_methods
from roadworthy.core.random import Key
from roadworthy.core.types import Dataset, Imputer, Maps, Removal
from roadworthy.datasets import first
from roadworthy.evaluation.evaluators import FineTuned, Mapped, Retrain
from roadworthy.experiments.build import (
    Arrays,
    awaits_training,
    build_augment,
    build_data,
    build_loss,
    build_network,
    build_trainer,
    build_untrained,
    built,
)
from roadworthy.experiments.items import Fingerprints
from roadworthy.experiments.plans.plan import SIZES, Plan, Spec
from roadworthy.experiments.registry import part
from roadworthy.experiments.runner import Work, pending
from roadworthy.experiments.stores.run_directory import FOLDERS, Store
from roadworthy.experiments.timing import Line, OnEpoch, seconds, seconds_per_image
from roadworthy.experiments.work import MapTask, SweepTask, gain_of, groups, perform, recipe_of, threads, train_of
from roadworthy.imputers import Constant
from roadworthy.imputers.solvers.multigrid import compile_now
from roadworthy.models.prediction import evaluating, fastest_device
from roadworthy.training.gain import train_gain
from roadworthy.training.loop import Recipe
from roadworthy.training.trainer import split

PIXELS = 32 * 32 * 32
"""How many are timed at once: 32 images of 32×32, of large ones a single image (trainings take two)."""
THIN = 3
"""Passes per image of the second timing of a method; the first has one."""
EPOCHS = 2
"""Of a training that is timed."""
_PASSES: Mapping[str, tuple[str, ...]] = {
    "ig": ("steps",),
    **dict.fromkeys(("ig-sg", "ig-sq", "ig-var"), ("steps", "ig_samples")),
    **dict.fromkeys(("gb-sg", "gb-sq", "gb-var"), ("gb_samples",)),
}
"""The options of a method whose product is its number of passes per image."""
_DEFAULTS = {name: option.default for name, option in signature(paper_methods).parameters.items()}


class Estimate(NamedTuple):
    """Seconds of one job on this machine for all of a plan, and how many images it is about."""

    images: int
    train_images: int
    maps: float
    trials: float
    trainings: float
    model: float
    """the training of the model itself, where its weights are yet to be made"""


def outlook(plan: Plan, store: Store) -> Work:
    """What a run would do, also before there are weights. To know that all is missing nobody need read the images."""
    if awaits_training(plan) or not any(store.ids(kind) for kind in FOLDERS):
        return pending(plan, store, Fingerprints("", "", "", dict.fromkeys(plan.imputer_files, "")))
    return pending(plan, store)


def estimate(plan: Plan) -> Estimate:
    data = build_data(plan)
    images, train_images = len(data), len(build_data(plan, "train")) if plan.train is not None else 0
    height, width = next(data.batches(1)).images.shape[-2:]
    count = min(images, max(1, PIXELS // (height * width)))
    model = _time_model(plan, count) if awaits_training(plan) else 0.0
    few = _few(plan, count)
    with Key(0).fold("estimate").torch_rng(), threads(plan.threads):
        compile_now()
        maps = _time_maps(few) / count * (images + (train_images if plan.retrains else 0))
        trainings, painter = 0.0, None
        if plan.trained_imputers:
            each, painter = _time_gain(few)
            trainings += len(plan.trained_imputers) * each * train_images * gain_of(plan).epochs
        points = _time_points(few, painter, max(2, count))
        trials = sum(_sweeps(plan, name) * line.at(images * len(plan.fractions)) for name, line in points.items())
        if plan.recipe is not None:
            fills = {name: line.each for name, line in points.items()}
            trainings += _time_evaluators(few, fills) * train_images * plan.recipe.epochs
    return Estimate(images, train_images, maps, trials, trainings, model)


def _few(plan: Plan, images: int) -> Plan:
    """The plan on its first images, in one batch; with fresh weights where there are none yet."""
    most = min([images, *(one.batch_size for one in (plan.recipe, plan.gain) if one is not None)])
    model = {key: value for key, value in plan.model.items() if key != "weights"}
    return replace(
        plan,
        data=_first(plan.data, images),
        train=None if plan.train is None else _first(plan.train, max(2, most)),
        model=model if awaits_training(plan) else plan.model,
        map_batch=images,
        batch=images,
    )


def _first(spec: Spec, images: int) -> Spec:
    return {**{key: value for key, value in spec.items() if key not in SIZES}, "images": images}


# ── maps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def passes(spec: Spec) -> int:
    """Per image, of those that can be left out; 1 for methods that are timed as they are."""
    if spec["name"] == "blurred":
        return passes(spec["of"])
    return math.prod(spec.get(option, _DEFAULTS[option]) for option in _PASSES.get(spec["name"], ()))


def thinned(spec: Spec, count: int) -> Spec:
    """The method with `count` passes per image, where its number can be chosen."""
    options = _PASSES.get(spec["name"], ())
    return {**spec, **dict.fromkeys(options, 1), **dict.fromkeys(options[:1], count)}


def _time_maps(few: Plan) -> float:
    """Of all methods. Those that share a source are told apart by the options of the plan, not by the thinned ones."""
    shared = groups(few, list(few.maps))
    wanted = {names: passes(few.maps[names[0]]) for names in shared}
    short = _timed_maps(few, 1, shared)
    longer = _timed_maps(few, THIN, [names for names in shared if wanted[names] > 1])
    lines = {names: Line.through((1, short[names]), (THIN, longer[names])) for names in longer}
    return sum(lines[names].at(wanted[names]) if names in lines else short[names] for names in shared)


def _timed_maps(few: Plan, count: int, shared: list[tuple[str, ...]]) -> dict[tuple[str, ...], float]:
    plan = replace(few, train=None, methods={name: thinned(spec, count) for name, spec in few.methods.items()})
    built(plan)  # its time belongs to no method
    return {names: seconds(lambda names=names: perform(MapTask(plan, names))) for names in shared}  # type: ignore[misc]


# ── points ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _time_points(few: Plan, painter: Arrays | None, images: int) -> dict[str, Line]:
    """imputer to what an image costs at one fraction"""
    small, large = (_timed_sweeps(few, painter, size) for size in (1, images))
    return {name: Line.through((1, small[name]), (images, large[name])) for name in few.imputers}


def _sweeps(plan: Plan, imputer: str, *evaluators: str) -> int:
    """How many there are with that imputer, and with one of those evaluators if any is named."""
    return sum(sweep[2] == imputer and sweep[3] in (evaluators or plan.evaluators) for sweep in plan.sweeps())


def _timed_sweeps(few: Plan, painter: Arrays | None, images: int) -> dict[str, float]:
    """imputer to the seconds of one fraction"""
    plan = replace(few, data=_first(few.data, images), train=None)
    maps = _some_maps(built(plan).data).numpy()
    found = {}
    for imputer in plan.imputers:
        own = painter if imputer in plan.trained_imputers else None
        task = SweepTask(plan, next(iter(plan.maps)), "morf", imputer, "no-retrain", 0, (0.5,), maps, painter=own)
        found[imputer] = seconds(lambda task=task: perform(task))  # type: ignore[misc]
    return found


def _some_maps(data: Dataset) -> Maps:
    height, width = next(data.batches(1)).images.shape[-2:]
    return Key(0).uniform(data.ids, (height, width))


# ── trainings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _time_evaluators(few: Plan, fills: Mapping[str, float]) -> float:
    """Seconds per image and epoch, of all trainings of evaluators together.

    One fill is timed in a training. Another costs there more or less what it does in a point, which `fills` tells.
    """
    retrained = {name: (len(few.fractions) - 1) * _sweeps(few, name, "retrain") for name in few.imputers}
    tuned = Counter(imputer for imputer, _ in few.tunings())
    base = next(iter(built(few).imputers), None)
    more = {name: fills[name] - (fills[base] if base else 0.0) for name in few.imputers}
    total = 0.0
    if few.retrains:
        each = _time_retraining(few, base)
        total += len(few.seeds) * each  # without removal: one per seed
        total += sum(count * max(0.0, each + more[name]) for name, count in retrained.items())
    if tuned:
        each = _time_tuning(few, base)
        total += sum(count * max(0.0, each + more[name]) for name, count in tuned.items())
    return total


def _time_retraining(few: Plan, imputer: str | None) -> float:
    train = train_of(built(few))

    def run(on_epoch: OnEpoch) -> None:
        evaluator = Retrain(
            _short(recipe_of(few)), Mapped(train, _some_maps(train)), lambda: build_network(few),
            loss=build_loss(few), augment=build_augment(few), device=fastest_device(), on_epoch=on_epoch,
        )  # fmt: skip
        evaluator.trained(Removal(part("orders", "morf").make(), _imputer(few, imputer)), 0.5, Key(0))

    return seconds_per_image(run, len(train))


def _time_tuning(few: Plan, imputer: str | None) -> float:
    context = built(few)

    def run(on_epoch: OnEpoch) -> None:
        evaluator = FineTuned(
            _short(recipe_of(few)), train_of(context), context.model,
            loss=build_loss(few), augment=build_augment(few), on_epoch=on_epoch,
        )  # fmt: skip
        with evaluating(context.model, fastest_device()):
            evaluator.tuned(_imputer(few, imputer), Key(0))

    return seconds_per_image(run, len(train_of(context)))


def _imputer(few: Plan, name: str | None) -> Imputer:
    """Where the only one is yet to be trained, a constant: it costs next to nothing."""
    return built(few).imputers[name] if name else Constant(0.5)


def _time_gain(few: Plan) -> tuple[float, Arrays]:
    """Seconds per image and epoch, and the weights of one that has hardly begun."""
    recipe, train = replace(gain_of(few), epochs=EPOCHS), train_of(built(few))
    some = first(train, max(2, len(train) // 2))  # two networks at work: half as many images do
    learned, _ = split(len(some), recipe.optimization, Key(0))
    begun: dict[str, Arrays] = {}

    def run(on_epoch: OnEpoch) -> None:
        tensors = train_gain(recipe, some, device=fastest_device(), on_epoch=on_epoch).tensors()
        begun["weights"] = {name: tensor.numpy() for name, tensor in tensors.items()}

    return seconds_per_image(run, len(learned)), begun["weights"]


def _time_model(plan: Plan, images: int) -> float:
    """Seconds of the whole training of the model itself, as `roadworthy train` does it."""
    if plan.training is None:
        return 0.0
    recipe, learned = plan.training.recipe, len(build_data(plan, "training"))
    few = _first(plan.training.data, max(2, min(images, recipe.batch_size)))
    trainer = build_trainer(replace(plan, training=replace(plan.training, recipe=_short(recipe), data=few)), seed=0)

    def run(on_epoch: OnEpoch) -> None:
        with Key(0).fold("init").torch_rng():
            model = build_untrained(plan).to(fastest_device())
        trainer._replace(on_epoch=on_epoch).train(model)

    with threads(plan.threads):
        return seconds_per_image(run, len(trainer.data)) * learned * recipe.epochs


def _short(recipe: Recipe) -> Recipe:
    """A few epochs of the same steps; the rate is so small that nothing diverges."""
    return replace(
        recipe, epochs=EPOCHS, lr=1e-9, schedule="constant", milestones=(), select="last", patience=0
    )  # fmt: skip
