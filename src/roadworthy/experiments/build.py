"""From a plan to its parts: data, model, methods, imputers, built once per process."""

import hashlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from roadworthy.attributions import Blurred
from roadworthy.core.errors import PlanError, RoadworthyError
from roadworthy.core.random import Key
from roadworthy.core.types import Attribution, Dataset, Imputer
from roadworthy.datasets import first
from roadworthy.datasets.subsets import picked
from roadworthy.experiments.items import Fingerprints, fingerprint_data, fingerprint_model
from roadworthy.experiments.plans.plan import LOCATIONS, SIZES, Plan, Spec
from roadworthy.experiments.registry import REGISTRY, part
from roadworthy.imputers import Gain
from roadworthy.models import load
from roadworthy.models.loading import named
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import fastest_device
from roadworthy.training.loop import Loss
from roadworthy.training.trainer import Augment, Trainer, readable

Arrays = Mapping[str, NDArray[Any]]


class Context(NamedTuple):
    """The parts of a plan, built; imputers that are yet to be trained are not among them."""

    data: Dataset
    model: Normalized
    methods: dict[str, Attribution]
    imputers: dict[str, Imputer]
    train: Dataset | None = None


def built(plan: Plan) -> Context:
    """The parts of a plan; one plan is kept, because a worker does many tasks of the same."""
    return _built(_Hashable(plan))


class _Hashable:
    """A plan by its content."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.text = repr(plan)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=1)
def _built(hashable: _Hashable) -> Context:
    plan = hashable.plan
    data = build_data(plan)
    return Context(
        data,
        build_model(plan),
        {name: _named(f"methods.{name}", build_method, spec) for name, spec in plan.maps.items()},
        build_imputers(plan, data),
        readable(build_data(plan, "train")) if plan.train is not None else None,
    )


def fingerprints(plan: Plan) -> Fingerprints:
    context = built(plan)
    train = fingerprint_data(context.train) if context.train is not None else ""
    imputers = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in plan.imputer_files.items()}
    return Fingerprints(fingerprint_data(context.data), fingerprint_model(context.model), train, imputers)


def build_data(plan: Plan, key: Literal["data", "train", "training"] = "data") -> Dataset:
    specs = {"data": plan.data, "train": plan.train, "training": plan.training and plan.training.data}
    options = {**_placed(specs[key] or {}, plan.folder)}
    images, sample = (options.pop(name, None) for name in SIZES)
    data: Dataset = _named(key, _make, "datasets", options)
    if sample is not None:
        rows = Key(0).fold("sample").permutation(0, len(data))[:sample]
        return picked(data, sorted(rows.tolist()))
    return data if images is None else first(data, images)


def awaits_training(plan: Plan) -> bool:
    """The plan says how its model is trained, and the weights are not there yet."""
    return plan.training is not None and not (plan.folder / plan.model.get("weights", "")).exists()


def build_model(plan: Plan) -> Normalized:
    if awaits_training(plan):
        weights = plan.folder / plan.model["weights"]
        raise PlanError(f"model.weights: there is no {weights} yet: make it with `roadworthy train` and this plan")
    return _build_model("model", plan.model, plan.folder)


def build_network(plan: Plan) -> Normalized:
    """A fresh network to be trained from scratch: [recipe] model, or the architecture of [model]."""
    if plan.network is None:
        return build_untrained(plan)
    return _build_model("recipe.model", {key: v for key, v in plan.network.items() if key != "weights"}, plan.folder)


def build_untrained(plan: Plan) -> Normalized:
    """The architecture of [model], with fresh weights."""
    spec = {key: value for key, value in plan.model.items() if key != "weights"}
    return _build_model("model", spec, plan.folder)


def _build_model(key: str, spec: Spec, folder: Path) -> Normalized:
    options = dict(_placed(spec, folder))
    norm = {key: options.pop(key) for key in ("mean", "std") if key in options}
    name, weights, factory = options.pop("name"), options.pop("weights", None), options.pop("factory", None)
    maker = factory or REGISTRY["models"][name].make
    with _importable(folder):
        network = _named(key, lambda: load(maker, weights, **options))
    return network if isinstance(network, Normalized) and not norm else Normalized(network, **norm)


def build_trainer(plan: Plan, seed: int) -> Trainer:
    """How the model of a plan is trained. Nothing is removed: the images are learned from as they are."""
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
    with _importable(plan.folder):
        return _named("recipe.loss", named, plan.loss, "loss") if plan.loss else cross_entropy


def build_augment(plan: Plan, name: str | None = None) -> Augment | None:
    """The plan's own for retraining, or the one of that name."""
    name = plan.augment if name is None else name
    if not name:
        return None
    if ":" not in name:
        return part("augmentations", name).make()  # type: ignore[no-any-return]
    with _importable(plan.folder):
        return _named("augment", named, name, "augment")  # type: ignore[no-any-return]


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """A factory in a file beside the plan is found, wherever the worker runs."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def build_method(spec: Spec) -> Attribution:
    if spec["name"] == "blurred":
        options = {key: value for key, value in spec.items() if key not in ("name", "of")}
        return Blurred(build_method(spec["of"]), **options)
    method: Attribution = _make("attributions", spec)
    return method


def build_imputers(plan: Plan, data: Dataset) -> dict[str, Imputer]:
    """All but those that are trained in the store."""
    specs = {
        name: _placed(spec, plan.folder) if name in plan.imputer_files else spec
        for name, spec in plan.imputers.items()
        if name not in plan.trained_imputers
    }
    return {name: _named(f"evaluation.imputers: {name}", build_imputer, spec, data) for name, spec in specs.items()}


def trained_imputer(arrays: Arrays) -> Gain:
    """One that was trained in a store, from what it holds of it."""
    return Gain.of({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}).to(fastest_device())


def imputer_for(context: Context, name: str, painter: Arrays | None) -> Imputer:
    return context.imputers[name] if painter is None else trained_imputer(painter)


def build_imputer(spec: Spec, data: Dataset) -> Imputer:
    named = part("imputers", spec["name"])
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in spec.items() if key != "name"}
    imputer: Imputer = named.make(data, **options) if named.needs_data else named.make(**options)
    return imputer


def _make(family: str, spec: Spec) -> Any:
    return part(family, spec["name"]).make(**{key: value for key, value in spec.items() if key != "name"})


def _placed(spec: Spec, folder: Path) -> Spec:
    """Paths relative to the plan's folder, made usable from here."""
    return {key: folder / value if key in LOCATIONS else value for key, value in spec.items()}


def _named(key: str, make: Any, *arguments: Any) -> Any:
    """Whatever goes wrong while building a part is told with the plan's key."""
    try:
        return make(*arguments)
    except RoadworthyError as error:
        raise PlanError(f"{key}: {error}") from error
    except TypeError as error:
        raise PlanError(f"{key}: {error}; see `roadworthy parts` and the docstring of the part") from error
