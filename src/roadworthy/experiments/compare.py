"""`compare`: a model, images and methods in; a Comparison with its tables out."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from roadworthy.attributions import PrecomputedMaps
from roadworthy.attributions.maps import ChannelReduction
from roadworthy.core.errors import InputError, ModelError, RangeError
from roadworthy.core.masks import FRACTIONS, checked_fractions
from roadworthy.core.types import UNLABELED, Attribution, Dataset, Imputer, Order
from roadworthy.datasets import as_dataset
from roadworthy.evaluation.checks import check_apart, check_factory, check_splits
from roadworthy.evaluation.experiment import (
    EVALUATORS,
    POINT_EVALUATORS,
    TRAINED_EVALUATORS,
    Experiment,
    Setting,
    Target,
)
from roadworthy.evaluation.sweep import source_of
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.design import Design, EarlyStopping, Until
from roadworthy.experiments.executors.in_process import InProcess
from roadworthy.experiments.items import Block, Spec, block_step, growing_rows, sequential_rows
from roadworthy.experiments.plans.plan import BLIND_CONTROLS, CONTROLS
from roadworthy.experiments.progress import Bar
from roadworthy.experiments.registry import REGISTRY, lookup
from roadworthy.experiments.rehearsal import rehearse
from roadworthy.experiments.results import collect
from roadworthy.experiments.runner import execute, grouping, origin
from roadworthy.experiments.source import Source
from roadworthy.experiments.stores.scratch import ScratchStore
from roadworthy.experiments.worker import Worker
from roadworthy.imputers import DatasetMean, NoisyLinear
from roadworthy.models.loading import named
from roadworthy.models.normalized import Normalized, as_model
from roadworthy.models.prediction import eval_mode
from roadworthy.training.gain import GainRecipe
from roadworthy.training.recipe import RECIPES, Recipe
from roadworthy.training.trainer import Augment, readable

ModelLike = Normalized | nn.Module | Callable[[torch.Tensor], torch.Tensor]
"""A torch Module or any callable from images to logits."""
DataLike = (
    Dataset
    | tuple[Any, Any]
    | torch.Tensor
    | np.ndarray
    | torch.utils.data.Dataset[Any]
    | torch.utils.data.DataLoader[Any]
)
"""(images, labels), images alone, a torch Dataset or DataLoader, or a data set of `rw.datasets`."""
MethodLike = Attribution | str | Path | np.ndarray | torch.Tensor | PrecomputedMaps
"""An attribution, a function, precomputed maps (an array or a file), a registry name or "module:function"."""
ImputerLike = Imputer | GainRecipe | str
"""An imputer, its registry name, or a recipe by which a GAIN is trained first."""


def compare(
    model: ModelLike,
    data: DataLike,
    methods: Mapping[str, MethodLike],
    *,
    imputers: ImputerLike | Sequence[ImputerLike] | Mapping[str, ImputerLike] = "linear",
    orders: Sequence[str] | Mapping[str, Order] = ("morf", "lerf"),
    evaluators: str | Sequence[str] = "no-retrain",
    train: DataLike | None = None,
    recipe: Recipe | str | None = None,
    network: Callable[[], Any] | None = None,
    augment: Augment | str | None = None,
    units: Literal["pixels"] = "pixels",
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = (0,),
    target: Target = "label",
    controls: Sequence[str] = CONTROLS,
    until: Until | None = None,
    confidence: float = 0.95,
    margin: float = 0.02,
    channel_reduction: ChannelReduction = "sum",
    map_seed: int = 0,
    map_batch_size: int = 64,
    batch_size: int = 64,
    device: torch.device | str | None = None,
    progress: bool = True,
) -> Comparison:
    """Measure which of `methods` found what `model` uses.

    `model`: a torch Module or a callable images -> logits; wrap it in `rw.Normalized` if it expects normalized input.
    `data`: (images, labels), images alone, a torch Dataset or DataLoader, or a data set of `rw.datasets`.
    `methods`: name to an attribution, a function (model, batch, key) -> maps, precomputed maps, a registry name or
    "module:function".
    `imputers`: one or several, as objects or registry names; give {name: imputer} to name them yourself.
    `orders`: "morf" and "lerf", or {name: order}.
    `evaluators`: "no-retrain" (ROAD), "retrain" (ROAR, KAR), "warm-start", "fine-tuned". All but the first need
    `train`, labeled images, and a `recipe`; `network()` makes a fresh network, by default the model's own architecture
    with new weights.
    `target`: the class that is explained and whose probability is reported. Accuracy is always against the label.
    `controls`: ranked with the methods and marked; () for none.
    `until`: "ranked" or "best" takes images in growing batches, in an order fixed by the first seed, and stops when all
    pairs of methods, or the best and all others, are separated or their scores surely differ by less than `margin`, at
    this `confidence` for all pairs together (docs/statistics.md). Evaluators that train, and copies of the leading
    methods, follow on the images that were taken.
    `batch_size`: images evaluated at once, for speed; `map_batch_size`: images explained at once.
    """
    _check_arguments(methods, orders, seeds, target, controls, units)
    shares = _above_zero(fractions)
    dataset, classifier = as_dataset(data), as_model(model)
    train_set = readable(as_dataset(train)) if train is not None else None
    named_imputers = as_imputers(imputers, dataset)
    named_evaluators = _evaluators(evaluators, train_set, recipe)
    blind = [name for name in controls if name in BLIND_CONTROLS]
    experiment = Experiment(
        model=classifier,
        data=dataset,
        methods={
            **{name: as_method(name, method, dataset) for name, method in methods.items()},
            **{name: lookup("attributions", name).make() for name in blind},
        },
        orders=dict(orders) if isinstance(orders, Mapping) else {n: lookup("orders", n).make() for n in orders},
        imputers=named_imputers,
        target=target,
        channel_reduction=channel_reduction,
        map_seed=map_seed,
        map_batch_size=map_batch_size,
        batch_size=batch_size,
        device=_device(device) if device else classifier.device,
        train=train_set,
        recipe=RECIPES[recipe] if isinstance(recipe, str) else recipe,
        network=network or (lambda: fresh_copy(classifier)),
        augment=lookup("augmentations", augment).make() if isinstance(augment, str) else augment,
    )
    design = _design(
        experiment,
        methods=tuple(methods),
        controls=controls,
        evaluators=named_evaluators,
        fractions=shares,
        seeds=tuple(seeds),
        early_stopping=_early_stopping(until, confidence, margin, len(experiment.methods), named_evaluators),
    )
    _check_training(experiment, named_evaluators)
    store = ScratchStore()
    with eval_mode(classifier, experiment.device):
        rehearse(experiment, shares, design.seeds[0])
        group_key = grouping({name: source_of(method) for name, method in experiment.methods.items()})
        with Bar("comparing", progress) as bar:
            state = execute(design, store, InProcess(Worker(experiment), raises=True), group_key, bar)
    facts = {"classes": dataset.classes, "unlabeled": _unlabeled(dataset), "about": described(classifier, dataset)}
    store.write_manifest({**store.manifest(), **origin(), **facts})
    return Comparison(collect(design, state, store, facts), Source(design, store, lambda: experiment), group_key)


def _design(
    experiment: Experiment,
    *,
    methods: tuple[str, ...],
    controls: Sequence[str],
    evaluators: Sequence[str],
    fractions: tuple[float, ...],
    seeds: tuple[int, ...],
    early_stopping: EarlyStopping | None,
) -> Design:
    """Items that live in memory need no fingerprints, only names that differ."""
    size = block_step(experiment.batch_size, experiment.map_batch_size)
    images, train_images = len(experiment.data), len(experiment.train) if experiment.train is not None else 0
    rows = (
        growing_rows(images, experiment.map_batch_size, seeds[0]) if early_stopping else sequential_rows(images, size)
    )
    return Design(
        model={},
        methods={name: {"object": name} for name in methods},
        blind_controls={name: {"name": name} for name in controls if name in BLIND_CONTROLS},
        copy_controls=tuple(name for name in controls if name not in BLIND_CONTROLS),
        orders={name: {"object": name} for name in experiment.orders},
        imputers={name: _imputer_spec(name, imputer) for name, imputer in experiment.imputers.items()},
        trained_imputers=tuple(n for n, imputer in experiment.imputers.items() if isinstance(imputer, GainRecipe)),
        settings=tuple(
            Setting(order, imputer, evaluator)
            for order in experiment.orders
            for imputer in experiment.imputers
            for evaluator in evaluators
        ),
        fractions=fractions,
        seeds=seeds,
        target=experiment.target,
        maps={},
        batch_size=experiment.batch_size,
        threads=torch.get_num_threads(),
        blocks=_blocks("test", rows),
        train_blocks=_blocks("train", sequential_rows(train_images, size))
        if set(evaluators) & set(POINT_EVALUATORS)
        else (),
        early_stopping=early_stopping,
    )


def _blocks(split: str, rows: Sequence[tuple[int, ...]]) -> tuple[Block, ...]:
    return tuple(Block(split, index, part, f"{split} {index}") for index, part in enumerate(rows))


def _imputer_spec(name: str, imputer: Any) -> Spec:
    """What the tables need to know of an imputer: whether it is one of the paper's."""
    kinds = {NoisyLinear: "linear", DatasetMean: "fixed"}
    return {"object": name, **({"name": kinds[type(imputer)]} if type(imputer) in kinds else {})}


def described(model: Normalized, data: Dataset) -> dict[str, str]:
    """What was evaluated and on what, for people."""
    network = getattr(model.network, "network", model.network)
    name = getattr(network, "__name__", type(network).__name__)
    weights = sum(parameter.numel() for parameter in model.parameters())
    while isinstance(whole := getattr(data, "data", None), Dataset):  # a subset is named by its data set
        data = whole
    return {"Model": f"{name}, {weights:,} weights" if weights else name, "Data": type(data).__name__}


def _unlabeled(data: Dataset) -> bool:
    labels = getattr(data, "labels", None)
    if isinstance(labels, torch.Tensor):
        return bool((labels == UNLABELED).all())
    return bool((next(data.batches(1)).labels == UNLABELED).all())


def fresh_copy(model: Normalized) -> Normalized:
    """The model's architecture with new weights, drawn from torch's generator."""
    copy = deepcopy(model)
    covered: set[int] = set()
    for module in copy.modules():
        if callable(reset := getattr(module, "reset_parameters", None)):
            reset()
            covered |= {id(parameter) for parameter in module.parameters(recurse=False)}
    left = [name for name, parameter in copy.named_parameters() if id(parameter) not in covered]
    if left:
        raise ModelError(
            f"retraining: {left[0]} has no reset_parameters, so the model cannot be copied with new weights: "
            "give network=, a function that makes a fresh network"
        )
    return copy


# ── what users give ──────────────────────────────────────────────────────────────────────────────────────────────────


def as_method(name: str, method: Any, data: Dataset) -> Attribution:
    """An attribution, a function, precomputed maps (arrays or a file), a registry name or "module:function"."""
    if isinstance(method, str) and ":" in method and not Path(method).exists():
        return named(method, f"method {name!r}")
    if isinstance(method, str) and not Path(method).suffix:
        built: Attribution = lookup("attributions", method).make()
        return built
    if isinstance(method, str | Path):
        method = PrecomputedMaps.load(method)
    if isinstance(method, np.ndarray | torch.Tensor):
        method = PrecomputedMaps(method)
    if isinstance(method, PrecomputedMaps):
        return method.bound(name, data.ids)
    if not callable(method):
        raise InputError(f"{name}: a {type(method).__name__} is not a method: give an attribution, a function or maps")
    return method  # type: ignore[no-any-return]


def as_imputers(imputers: Any, data: Dataset) -> dict[str, Imputer | GainRecipe]:
    named_imputers = imputers if isinstance(imputers, Mapping) else _named_imputers(imputers)
    if not named_imputers:
        raise InputError("imputers is empty: give at least one, such as 'linear'")
    return {name: _as_imputer(imputer, data) for name, imputer in named_imputers.items()}


def _named_imputers(imputers: Any) -> dict[str, Any]:
    several: Sequence[Any] = imputers if isinstance(imputers, list | tuple) else [imputers]
    result: dict[str, Any] = {}
    for imputer in several:
        name = _imputer_name(imputer)
        if name in result:
            raise InputError(
                f"two imputers are named {name!r}: name them yourself, as in imputers={{'{name}': ..., 'other': ...}}"
            )
        result[name] = imputer
    return result


def _as_imputer(imputer: Any, data: Dataset) -> Imputer | GainRecipe:
    if isinstance(imputer, GainRecipe):
        return imputer
    if not isinstance(imputer, str):
        if not callable(imputer):
            raise InputError(f"imputer {imputer!r}: give an imputer such as rw.NoisyLinear(), or its name")
        return imputer  # type: ignore[no-any-return]
    entry = lookup("imputers", imputer)
    try:
        built: Imputer = entry.make(data) if entry.needs_data else entry.make()
    except TypeError as error:
        raise InputError(f"imputer {imputer!r} needs options ({error}): give it as an object") from error
    return built


def _imputer_name(imputer: Any) -> str:
    """The registry's name for what is in the registry, else the object's own."""
    if isinstance(imputer, str):
        return imputer
    if isinstance(imputer, GainRecipe):
        return "gain"
    for name, entry in REGISTRY["imputers"].items():
        if entry.make is type(imputer):
            return name
    return str(getattr(imputer, "__name__", type(imputer).__name__))


def _evaluators(evaluators: str | Sequence[str], train: Dataset | None, recipe: Recipe | str | None) -> tuple[str, ...]:
    names = (evaluators,) if isinstance(evaluators, str) else tuple(evaluators)
    for name in names:
        if name not in EVALUATORS:
            raise InputError(f"evaluator {name!r}: choose from {', '.join(EVALUATORS)}")
        if name in TRAINED_EVALUATORS and (train is None or recipe is None):
            lacking = "train" if train is None else "recipe"
            raise InputError(f"evaluator {name!r} trains: give {lacking}= too (docs/retraining.md)")
    if not names:
        raise InputError("evaluators is empty: give at least one, such as 'no-retrain'")
    if isinstance(recipe, str) and recipe not in RECIPES:
        raise InputError(f"recipe {recipe!r}: choose from {', '.join(RECIPES)}, or give an rw.Recipe")
    return names


def _check_training(experiment: Experiment, evaluators: Sequence[str]) -> None:
    """Report what cannot be learned, or should not be, before the first epoch."""
    gains = [name for name, imputer in experiment.imputers.items() if isinstance(imputer, GainRecipe)]
    if gains and experiment.train is None:
        raise InputError(f"imputer {gains[0]!r} is trained first: give train= too (docs/gain.md)")
    if experiment.train is None:
        return
    precomputed = [name for name, method in experiment.methods.items() if isinstance(method, PrecomputedMaps)]
    for name in (name for name in evaluators if precomputed and name in POINT_EVALUATORS):
        raise InputError(
            f"{precomputed[0]}: precomputed maps cover the images of data only, but {name!r} needs maps of the train "
            f"images too: give an attribution or a function, or leave {name!r} out"
        )
    if gains:
        check_apart(experiment.train, experiment.data)
    if set(evaluators) & set(TRAINED_EVALUATORS):
        check_splits(experiment.train, experiment.data)
    if "retrain" in evaluators and experiment.network is not None:
        check_factory(experiment.network)


def _early_stopping(
    until: Until | None, confidence: float, margin: float, methods: int, evaluators: Sequence[str]
) -> EarlyStopping | None:
    if until is None:
        return None
    if until not in ("ranked", "best"):
        raise InputError(f"until={until!r}: choose 'ranked' or 'best', or None for all images")
    if not 0.5 <= confidence < 1:
        raise RangeError(f"confidence={confidence}: give a value from 0.5 to below 1, such as 0.95")
    if not margin >= 0:
        raise RangeError(f"margin={margin}: give a difference of scores of 0 or more, such as 0.02")
    if methods < 2:
        raise InputError("until needs at least 2 methods: add a method or a control")
    if "no-retrain" not in evaluators:
        raise InputError(f"until={until!r} ranks the methods without retraining: add 'no-retrain' to evaluators")
    return EarlyStopping(until, confidence, margin)


def _device(name: torch.device | str) -> torch.device:
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device={name!r} cannot be used here ({error}): leave it out, or give 'cpu'") from error


def _check_arguments(
    methods: Mapping[str, Any],
    orders: Sequence[str] | Mapping[str, Order],
    seeds: Sequence[int],
    target: str,
    controls: Sequence[str],
    units: str,
) -> None:
    if not isinstance(methods, Mapping):
        raise InputError(
            f"methods is a {type(methods).__name__}: give names, {{'IG': rw.attributions.IntegratedGradients()}}"
        )
    for key, value in (("orders", orders), ("controls", controls), ("seeds", seeds)):
        if isinstance(value, str | int):
            raise InputError(f"{key}={value!r}: give several, as in {key}=({value!r},)")
    if not methods or not orders or not seeds:
        raise InputError("methods, orders and seeds must each hold at least one entry")
    if target not in ("label", "prediction"):
        raise InputError(f"target={target!r}: explain the 'label' or the 'prediction'")
    if units != "pixels":
        raise InputError(f"units={units!r}: only 'pixels' are supported")
    if unknown := [name for name in controls if name not in CONTROLS]:
        raise InputError(f"control {unknown[0]!r}: choose from {', '.join(CONTROLS)}, or () for none")
    taken = {*controls, *(f"{name} {kind}" for name in methods for kind in controls if kind not in BLIND_CONTROLS)}
    if clash := [name for name in methods if name in taken]:
        raise InputError(f"{clash[0]!r} names a method and a control: rename the method, or leave the control out")


def _above_zero(fractions: Sequence[float]) -> tuple[float, ...]:
    """Point 0 is always measured: it is the plain accuracy."""
    above = tuple(fraction for fraction in checked_fractions(fractions) if fraction > 0)
    if not above:
        raise InputError("fractions holds only 0: add a fraction of pixels to remove, such as rw.FRACTIONS")
    return above
