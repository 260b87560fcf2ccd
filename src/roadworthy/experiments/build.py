"""From a plan to its experiment: live objects. Its design is made in `plan_design.py`."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from torch import Tensor
from torch.nn.functional import cross_entropy

from roadworthy.core.errors import InputError, PlanError, RandomWeightsWarning
from roadworthy.core.random import Key
from roadworthy.core.types import Attribution, Batch, Dataset, Imputer
from roadworthy.datasets import first
from roadworthy.datasets.subsets import picked
from roadworthy.datasets.verified import verified
from roadworthy.evaluation.checks import check_apart, check_factory, check_splits
from roadworthy.evaluation.experiment import Experiment
from roadworthy.evaluation.units import UnitSetting, units_for
from roadworthy.experiments.adapt import as_method
from roadworthy.experiments.fingerprints import Fingerprints, check_unchanged
from roadworthy.experiments.inputs import with_known_outputs
from roadworthy.experiments.items import Spec
from roadworthy.experiments.plan_parts import make_part, own_function, own_part, placed, with_key
from roadworthy.experiments.plans import Plan
from roadworthy.experiments.plans.plan import SIZES
from roadworthy.experiments.registry import REGISTRY, lookup
from roadworthy.experiments.source import Parts
from roadworthy.experiments.worker import Worker
from roadworthy.models import load
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import AUTOCAST, accelerated, fastest_device
from roadworthy.training.gain import GainRecipe
from roadworthy.training.loop import Loss
from roadworthy.training.trainer import Augment, Trainer, readable


def build(plan: Plan, untrained: bool = False) -> Experiment:
    """All of it but imputers that are trained first: those stay recipes. `untrained`: the model with fresh weights."""
    data = verified(build_data(plan))
    train = readable(build_data(plan, "train")) if plan.train is not None else None
    model = build_untrained(plan) if untrained else build_model(plan)
    experiment = Experiment(
        model=accelerated(model, AUTOCAST[plan.autocast] if plan.autocast else None, plan.channels_last),
        data=data,
        methods={
            **{name: with_key(f"methods.{name}", build_method, plan, name, data) for name in plan.methods},
            **{name: lookup("attributions", name).make() for name in plan.blind_controls},
        },
        orders={name: lookup("orders", name).make() for name in plan.orders},
        imputers={
            name: with_key(f"evaluation.imputers: {name}", build_imputer, plan, name, data) for name in plan.imputers
        },
        target=plan.target,
        channel_reduction=plan.channel_reduction,
        units=with_key("evaluation.units", build_units, plan, model, data),
        map_seed=plan.map_seed,
        map_batch_size=plan.map_batch_size,
        batch_size=plan.batch_size,
        device=fastest_device(),
        threads=plan.threads,
        train=train,
        recipe=plan.recipe,
        network=(lambda: build_network(plan)) if "retrain" in plan.point_evaluators else None,
        loss=build_loss(plan),
        augment=build_augment(plan),
    )
    return with_known_outputs(experiment)


def build_parts(plan: Plan, prints: Fingerprints) -> Parts:
    """What pictures need, for commands that only read: no code that the plan names is imported or run."""
    data = build_data(plan)
    own = tuple(name for name, spec in plan.imputers.items() if "function" in spec)
    return Parts(
        data,
        {name: lookup("orders", name).make() for name in plan.orders},
        {
            name: with_key(f"evaluation.imputers: {name}", build_imputer, plan, name, data)
            for name in plan.imputers
            if name not in own
        },
        own,
        with_key("evaluation.units", _readable_units, plan, prints, data),
    )


def make_worker(plan: Plan, prints: Fingerprints) -> Worker:
    """Build a plan's experiment in another process, and check that it is the driver's."""
    experiment = build(plan)
    check_unchanged(plan, prints, experiment)
    return Worker(experiment, verify=True)


def check_training(plan: Plan, experiment: Experiment) -> None:
    """Report what cannot be learned, or should not be, before the first epoch."""
    if experiment.train is None:
        return
    if plan.trained_imputers:
        check_apart(experiment.train, experiment.data)
    if plan.recipe is not None:
        check_splits(experiment.train, experiment.data)
        if experiment.network is not None:
            check_factory(experiment.network)


def build_data(plan: Plan, key: Literal["data", "train", "training"] = "data") -> Dataset:
    specs = {"data": plan.data, "train": plan.train, "training": plan.training and plan.training.data}
    options = {**placed(specs[key] or {}, plan.folder)}
    images, sample = (options.pop(name, None) for name in SIZES)
    data: Dataset = with_key(key, make_part, "datasets", options)
    if sample is not None:
        rows = Key(0).fold("sample").permutation(0, len(data))[:sample]
        return picked(data, sorted(rows.tolist()))
    return data if images is None else first(data, images)


def awaits_training(plan: Plan) -> bool:
    """The plan says how its model is trained, and the weights do not exist yet."""
    return plan.training is not None and not (plan.folder / plan.model.get("weights", "")).exists()


_WITH_WEIGHTS = ("timm", "torchvision", "transformers")
"""Libraries that bring the weights of their models."""


def build_model(plan: Plan) -> Normalized:
    if awaits_training(plan):
        weights = plan.folder / plan.model["weights"]
        raise PlanError(f"model.weights: {weights} does not exist yet: make it with `roadworthy train` and this plan")
    if not {"weights", "factory"} & set(plan.model) and plan.model["name"] not in _WITH_WEIGHTS:
        warnings.warn(
            f"model: {plan.model['name']} has no weights in this plan, so a network with random ones is explained: "
            'give a file, weights = "model.safetensors"',
            RandomWeightsWarning,
            stacklevel=2,
        )
    with Key(0).fold("model").torch_rng():  # without weights, the same ones in every process
        return _build_model("model", plan.model, plan.folder)


def build_network(plan: Plan) -> Normalized:
    """A fresh network to train from scratch: [recipe] model, or the architecture of [model]."""
    if plan.network is None:
        return build_untrained(plan)
    return _build_model("recipe.model", {key: v for key, v in plan.network.items() if key != "weights"}, plan.folder)


def build_untrained(plan: Plan) -> Normalized:
    """The architecture of [model], with fresh weights."""
    spec = {key: value for key, value in plan.model.items() if key != "weights"}
    return _build_model("model", spec, plan.folder)


def _build_model(key: str, spec: Spec, folder: Path) -> Normalized:
    options = dict(placed(spec, folder))
    norm = {key: options.pop(key) for key in ("mean", "std") if key in options}
    name, weights, factory = options.pop("name"), options.pop("weights", None), options.pop("factory", None)
    maker = own_function(key, factory, folder) if isinstance(factory, str) else REGISTRY["models"][name].make
    network = with_key(key, lambda: load(maker, weights, **options))
    return network if isinstance(network, Normalized) and not norm else Normalized(network, **norm)


def build_trainer(plan: Plan, seed: int) -> Trainer:
    """How the model of a plan is trained: on unmodified images."""
    training = plan.training
    if training is None:
        raise PlanError("[training] is missing: copy it from plans/cifar10-cpu-resnet18.toml")
    return Trainer(
        training.recipe,
        readable(build_data(plan, "training")),
        lambda batch, rows, now: batch.images,
        Key(seed).fold("model"),
        augment=build_augment(plan, training.augment),
    )


def build_loss(plan: Plan) -> Loss:
    loss: Loss = own_function("recipe.loss", plan.loss, plan.folder) if plan.loss else cross_entropy
    return loss


def build_augment(plan: Plan, name: str | None = None) -> Augment | None:
    """The plan's own for retraining, or the one of that name."""
    name = plan.augment if name is None else name
    if not name:
        return None
    augment: Augment = (
        own_function("augment", name, plan.folder) if ":" in name else lookup("augmentations", name).make()
    )
    return augment


def build_method(plan: Plan, name: str, data: Dataset) -> Attribution:
    spec = placed(plan.methods[name], plan.folder)
    if "function" in spec:
        return as_method(name, own_part(f"methods.{name}", spec, plan.folder), data)
    method: Any = make_part("attributions", spec)
    built: Attribution = method.bound(name, data.ids) if spec["name"] == "maps" else method
    return built


def build_imputer(plan: Plan, name: str, data: Dataset) -> Imputer | GainRecipe:
    spec = plan.imputers[name]
    if name in plan.trained_imputers and plan.gain is not None:
        return plan.gain
    if "function" in spec:
        return own_part(f"evaluation.imputers: {name}", placed(spec, plan.folder), plan.folder)  # type: ignore[no-any-return]
    entry = lookup("imputers", spec["name"])
    found = placed(spec, plan.folder) if name in plan.imputer_files else spec
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in found.items() if key != "name"}
    imputer: Imputer = entry.make(data, **options) if entry.needs_data else entry.make(**options)
    return imputer


def build_units(plan: Plan, model: Normalized | None, data: Dataset) -> UnitSetting:
    spec = placed(plan.units, plan.folder)
    units = own_part("evaluation.units", spec, plan.folder) if "function" in spec else make_part("units", spec)
    return UnitSetting(units_for(units, model, data), plan.unit_reduction)


def _readable_units(plan: Plan, prints: Fingerprints, data: Dataset) -> UnitSetting:
    """Without the model and without code of the plan, which is not run to read results."""
    if "function" in plan.units:
        return UnitSetting(_not_run, plan.unit_reduction)
    tokens = {"name": "tokens", "size": prints.patch} if prints.patch else {}
    return build_units(replace(plan, units={**plan.units, **tokens}), None, data)


def _not_run(batch: Batch) -> Tensor:
    raise InputError("the units are a function of the plan, and reading results runs no code of a plan")
