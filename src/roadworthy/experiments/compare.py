"""`compare`: a model, images and methods in; a Comparison with its tables out."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

import torch

from roadworthy.attributions import PrecomputedMaps
from roadworthy.attributions.maps import ChannelReduction
from roadworthy.core.errors import InputError, ModelError
from roadworthy.core.masks import FRACTIONS
from roadworthy.core.partitions import UnitReduction
from roadworthy.core.types import UNLABELED, Dataset, Order
from roadworthy.datasets.verified import verified
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
from roadworthy.evaluation.token_removal import NAME, check_evaluators
from roadworthy.evaluation.units import UnitSetting, units_for
from roadworthy.experiments.adapt import (
    DataLike,
    ImputerLike,
    MethodLike,
    ModelLike,
    UnitsLike,
    as_data,
    as_imputers,
    as_method,
    as_units,
)
from roadworthy.experiments.arguments import (
    above_zero,
    check_choices,
    checked_autocast,
    checked_controls,
    checked_device,
    checked_flag,
    checked_integer,
    checked_methods,
    checked_orders,
    checked_seeds,
    checked_self_test,
    early_stopping_of,
    several,
)
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.design import Design, EarlyStopping, Population, Until
from roadworthy.experiments.executors.in_process import InProcess
from roadworthy.experiments.inputs import check_unit_labels, input_facts, with_known_outputs
from roadworthy.experiments.items import Block, Spec, block_step, growing_rows, sequential_rows
from roadworthy.experiments.plans.plan import BLIND_CONTROLS, CONTROLS, LEADERS
from roadworthy.experiments.progress import Bar
from roadworthy.experiments.registry import lookup
from roadworthy.experiments.rehearsal import REHEARSAL, rehearse
from roadworthy.experiments.results import collect
from roadworthy.experiments.runner import execute, grouping, origin
from roadworthy.experiments.self_test.design import SelfTestDesign
from roadworthy.experiments.source import Source
from roadworthy.experiments.stores.scratch import ScratchStore
from roadworthy.experiments.worker import Worker
from roadworthy.imputers import DatasetMean, NoisyLinear, TokenRemoval
from roadworthy.models.normalized import Normalized, as_model
from roadworthy.models.prediction import accelerated, eval_mode
from roadworthy.training.gain import GainRecipe
from roadworthy.training.recipe import RECIPES, Recipe
from roadworthy.training.trainer import Augment, readable


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
    units: UnitsLike = "pixels",
    unit_reduction: UnitReduction = "mean",
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = (0,),
    target: Target = "label",
    controls: Sequence[str] = CONTROLS,
    self_test: bool = False,
    until: Until | None = None,
    confidence: float = 0.95,
    margin: float = 0.02,
    population: Population = "infinite",
    channel_reduction: ChannelReduction = "sum",
    map_seed: int = 0,
    map_batch_size: int = 64,
    batch_size: int = 64,
    device: torch.device | str | None = None,
    autocast: Literal["bfloat16", "float16"] | None = None,
    channels_last: bool = False,
    progress: bool = True,
) -> Comparison:
    """Measure which of `methods` found what `model` uses.

    `model`: a torch Module or a callable images -> logits; wrap it in `rw.Normalized` if it expects normalized input.
    `data`: (images, labels), images alone, a list of PIL images, a torch Dataset or DataLoader, a Hugging Face Dataset,
    or a data set of `rw.datasets`.
    `methods`: name to an attribution, a function (model, batch, key) -> maps, precomputed maps, a registry name,
    "module:function", or a method of Captum, zennit, pytorch-grad-cam, shap or Quantus (docs/bridges.md).
    `imputers`: one or several, as objects or registry names; give {name: imputer} to name them yourself.
    `orders`: "morf" and "lerf", or {name: order}.
    `evaluators`: "no-retrain" (ROAD), "retrain" (ROAR, KAR), "warm-start", "fine-tuned". All but the first need
    `train`, labeled images, and a `recipe`; `network()` makes a fresh network, by default the model's own architecture
    with new weights.
    `units`: what is removed at a time: "pixels", `rw.Patches(16)`, `rw.Superpixels(50)`, `rw.FeatureMask(labels)`,
    "tokens" of a vision transformer, or a function batch -> labels (docs/units.md). Maps are pooled to units by
    `unit_reduction`: "mean", "sum", "max" or "max_abs". Fractions then count units.
    `target`: the class that is explained and whose probability is reported. Accuracy is always against the label.
    `controls`: ranked with the methods and marked; () for none.
    `self_test`: also evaluate damaged copies of the leading methods, whose true order is known, and more
    (docs/self-test.md): `comparison.self_test()` says what this benchmark can see here. They are never listed.
    `confidence`: of all intervals. `margin`: methods whose scores surely differ by less are tied.
    `until`: "ranked" or "best" takes images in growing batches, in an order fixed by the first seed, and stops when all
    pairs of methods, or the best and all others, are separated or tied, at this `confidence` for all pairs together
    (docs/statistics.md). Evaluators that train, and copies of the leading
    methods, follow on the images that were taken.
    `population`: what early stopping makes statements about: "infinite", images like these, or "finite", the images of
    this data set: the result that all of them would give, with fewer images.
    `batch_size`: images evaluated at once, for speed; `map_batch_size`: images explained at once.
    `autocast`: let the model predict in "bfloat16" or "float16", `channels_last`: in that memory format, both for
    speed, mostly on a GPU (docs/performance.md). Attributions do not use them.
    """
    methods = checked_methods(methods)
    controls, seeds, ranked_orders = checked_controls(controls, methods), checked_seeds(seeds), checked_orders(orders)
    shares = above_zero(fractions)
    check_choices(target, channel_reduction, unit_reduction)
    removed_units = as_units(units)
    batch_size, map_batch_size, map_seed = (
        checked_integer(name, value, least)
        for name, value, least in (
            ("batch_size", batch_size, 1), ("map_batch_size", map_batch_size, 1), ("map_seed", map_seed, 0)
        )
    )  # fmt: skip
    named_evaluators = _evaluators(evaluators, train, recipe)
    blind = [name for name in controls if name in BLIND_CONTROLS]
    stopping = early_stopping_of(until, confidence, margin, population, len(methods) + len(blind), named_evaluators)
    placed = checked_device(device) if device is not None else None
    classifier = accelerated(as_model(model), checked_autocast(autocast), checked_flag("channels_last", channels_last))
    dataset = verified(as_data(data, classifier))
    train_set = readable(as_data(train, classifier)) if train is not None else None
    named_imputers = as_imputers(imputers, dataset)
    experiment = Experiment(
        model=classifier,
        data=dataset,
        methods={
            **{name: as_method(name, method, dataset) for name, method in methods.items()},
            **{name: lookup("attributions", name).make() for name in blind},
        },
        orders=ranked_orders,
        imputers=named_imputers,
        target=target,
        channel_reduction=channel_reduction,
        units=UnitSetting(units_for(removed_units, classifier, dataset), unit_reduction),
        map_seed=map_seed,
        map_batch_size=map_batch_size,
        batch_size=batch_size,
        device=placed or classifier.device,
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
        seeds=seeds,
        early_stopping=stopping,
        confidence=confidence,
        margin=margin,
        self_test=checked_self_test(self_test, ranked_orders),
    )
    check_unit_labels(experiment, shares, named_evaluators)
    _check_training(experiment, named_evaluators)
    experiment, store = with_known_outputs(experiment), ScratchStore()
    store.expect(_size_of_maps(experiment, design))
    with eval_mode(experiment.model, experiment.device), Bar("comparing", progress) as bar:
        bar.on_stage(REHEARSAL)
        noted, predicted = rehearse(experiment, shares, design.seeds[0])
        group_key = grouping({name: source_of(method) for name, method in experiment.methods.items()})
        executor = InProcess(Worker(experiment, predicted=predicted), raises=True)
        state = execute(replace(design, self_test=False), store, executor, group_key, bar)
        if design.self_test:
            try:
                state = execute(design, store, executor, group_key, bar)
            except Exception as error:  # a method may fail in any way on a model with shuffled weights
                design = replace(design, self_test=False)
                noted = [
                    *noted,
                    f"the self-test failed ({type(error).__name__}: {error}); the ranking needs none of it",
                ]
    about = {**described(classifier, dataset), **input_facts(experiment)}
    facts = {"classes": dataset.classes, "unlabeled": _unlabeled(dataset), "about": about, "noted": noted}
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
    confidence: float,
    margin: float,
    self_test: bool,
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
        unit_name=experiment.units.name,
        maps={},
        batch_size=experiment.batch_size,
        threads=torch.get_num_threads(),
        blocks=_blocks("test", rows),
        train_blocks=_blocks("train", sequential_rows(train_images, size))
        if set(evaluators) & set(POINT_EVALUATORS)
        else (),
        early_stopping=early_stopping,
        confidence=confidence,
        margin=margin,
        self_test=self_test,
    )


def _size_of_maps(experiment: Experiment, design: Design) -> int:
    """In bytes, of float32, with the copies of two methods."""
    height, width = next(experiment.data.batches(1)).images.shape[-2:]
    images = sum(len(block.rows) for block in (*design.blocks, *design.train_blocks))
    maps = images * (len(experiment.methods) + 2 * ("blurred" in design.copy_controls))
    if design.self_test:
        copied = SelfTestDesign(design, design.blocks, tuple(design.methods)[:LEADERS])
        maps += copied.maps()
    return 4 * int(height * width) * maps


def _blocks(split: str, rows: Sequence[tuple[int, ...]]) -> tuple[Block, ...]:
    return tuple(Block(split, index, part, f"{split} {index}") for index, part in enumerate(rows))


def _imputer_spec(name: str, imputer: Any) -> Spec:
    """What the tables need to know of an imputer: whether it is one of the paper's, or none at all."""
    kinds = {NoisyLinear: "linear", DatasetMean: "fixed", TokenRemoval: NAME}
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
    labels = getattr(getattr(data, "data", data), "labels", None)
    if isinstance(labels, torch.Tensor):
        return bool((labels == UNLABELED).all())
    return bool((next(data.batches(1)).labels == UNLABELED).all())


def fresh_copy(model: Normalized) -> Normalized:
    """The model's architecture with new weights, drawn from torch's generator."""
    if len(getattr(model.network, "behind", ())):
        raise ModelError(
            "retraining: the model is a function around a network, which cannot be copied with new weights: give the "
            "Module itself, or network=, a function that makes a fresh network"
        )
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


# ── checks of arguments ─────────────────────────────────────────────────────────────────────────────────────────────


def _evaluators(evaluators: str | Sequence[str], train: object, recipe: Recipe | str | None) -> tuple[str, ...]:
    names = (evaluators,) if isinstance(evaluators, str) else several("evaluators", evaluators, "'no-retrain'")
    names = tuple(dict.fromkeys(names))
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
    for name, imputer in experiment.imputers.items():
        if isinstance(imputer, TokenRemoval):
            check_evaluators(name, evaluators)
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
