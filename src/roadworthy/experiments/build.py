"""From a plan to its experiment (live objects) and its design (JSON, with fingerprints in place of paths)."""

import hashlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

from torch import Tensor
from torch.nn.functional import cross_entropy

from roadworthy.core.errors import InputError, PlanError, RandomWeightsWarning, RoadworthyError, StoreError
from roadworthy.core.random import Key
from roadworthy.core.types import Attribution, Batch, Dataset, Imputer
from roadworthy.datasets import first
from roadworthy.datasets.subsets import picked
from roadworthy.datasets.verified import verified
from roadworthy.evaluation.checks import check_apart, check_factory, check_splits
from roadworthy.evaluation.experiment import Experiment, Setting
from roadworthy.evaluation.units import FeatureMask, Tokens, UnitSetting, setting_name, units_for
from roadworthy.experiments.adapt import as_method
from roadworthy.experiments.design import Design, EarlyStopping
from roadworthy.experiments.inputs import gray_baselines, with_known_outputs
from roadworthy.experiments.items import (
    Block,
    Spec,
    combined,
    default_block_size,
    fingerprint_blocks,
    fingerprint_model,
    fingerprint_path,
    growing_rows,
    sequential_rows,
)
from roadworthy.experiments.plans import Plan
from roadworthy.experiments.plans.plan import LOCATIONS, SIZES
from roadworthy.experiments.registry import REGISTRY, lookup
from roadworthy.experiments.source import Parts
from roadworthy.experiments.worker import Worker
from roadworthy.models import load
from roadworthy.models.loading import WEIGHTS, named
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import AUTOCAST, accelerated, fastest_device
from roadworthy.training.gain import GainRecipe
from roadworthy.training.loop import Loss
from roadworthy.training.trainer import Augment, Trainer, readable

# ── fingerprints and design ──────────────────────────────────────────────────────────────────────────────────────────


class Fingerprints(NamedTuple):
    """What a plan's files hold, and how its images are cut into blocks: all that ids need besides the plan."""

    model: str
    block_size: int
    images: int
    data: tuple[str, ...]
    """per block"""
    train_images: int = 0
    train: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    """of weights, maps and functions, by the key of the plan that names them"""
    baselines: Mapping[str, str] = {}
    """what the default baseline of a method is, where it is not the model's normalization mean"""
    outputs: str = "logits"
    """of the model"""
    patch: tuple[int, ...] = ()
    """the patch size of the model's tokens, where these are the units"""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Fingerprints":
        try:
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
            }
            return cls(**values)._checked()
        except TypeError as error:
            raise StoreError(f"manifest.json: the fingerprints are not valid ({error}): run the plan again") from error

    def _checked(self) -> "Fingerprints":
        """Before they are trusted: a manifest may come from elsewhere."""
        for name, kind in (
            ("model", str),
            ("block_size", int),
            ("images", int),
            ("data", tuple),
            ("train_images", int),
        ):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} is a {type(getattr(self, name)).__name__}")
        for name, images, prints in (("data", self.images, self.data), ("train", self.train_images, self.train)):
            if not isinstance(prints, tuple) or not all(isinstance(fingerprint, str) for fingerprint in prints):
                raise TypeError(f"{name} is not a list of texts")
            if not (len(prints) <= images and self.block_size > 0):
                raise TypeError(f"{len(prints)} blocks of {self.block_size} for {images} images")
        if not isinstance(self.files, Mapping):
            raise TypeError(f"files is a {type(self.files).__name__}")
        return self


def fingerprints(plan: Plan, experiment: Experiment) -> Fingerprints:
    """Reads every image once."""
    image = next(experiment.data.batches(1)).images.shape[1:]
    size = plan.block_size or default_block_size(image, plan.batch_size, plan.map_batch_size)
    images, train_images = len(experiment.data), len(experiment.train) if experiment.train is not None else 0
    return Fingerprints(
        fingerprint_model(experiment.model),
        size,
        images,
        tuple(fingerprint_blocks(experiment.data, _rows(plan, images, size))),
        train_images,
        tuple(fingerprint_blocks(experiment.train, sequential_rows(train_images, size)))
        if experiment.train is not None
        else (),
        file_fingerprints(plan),
        gray_baselines(experiment),
        experiment.model.outputs,
        experiment.units.units.sides if isinstance(experiment.units.units, Tokens) else (),
    )


def _rows(plan: Plan, images: int, size: int) -> list[tuple[int, ...]]:
    if plan.until is None:
        return sequential_rows(images, size)
    return growing_rows(images, plan.map_batch_size, plan.seeds[0])


def file_fingerprints(plan: Plan) -> dict[str, str]:
    """Of everything that is read from files besides data and the model's weights."""
    files = {
        **{f"imputers.{name}": path for name, path in plan.imputer_files.items()},
        **{f"methods.{name}": path for name, path in plan.map_files.items()},
        **plan.unit_files,
        **plan.function_files,
        **plan.option_files,
    }
    return {name: _digest(name, path) for name, path in files.items()}


def _digest(name: str, path: Path) -> str:
    try:
        return fingerprint_path(path)
    except OSError as error:
        raise PlanError(f"{name}: {path} could not be read ({error.strerror})") from error


def design_of(plan: Plan, prints: Fingerprints) -> Design:
    train = combined(prints.train) if prints.train else ""
    return Design(
        model=_model_spec(plan, prints),
        methods={name: _method_spec(plan, name, prints) for name in plan.methods},
        blind_controls={name: {"name": name} for name in plan.blind_controls},
        copy_controls=plan.copy_controls,
        copied=plan.copied,
        orders={name: {"name": name} for name in plan.orders},
        imputers={name: _imputer_spec(plan, name, prints, train) for name in plan.imputers},
        trained_imputers=plan.trained_imputers,
        settings=tuple(Setting(*setting) for setting in plan.settings),
        fractions=tuple(fraction for fraction in plan.fractions if fraction > 0),
        seeds=plan.seeds,
        target=plan.target,
        units=_unit_spec(plan, prints),
        unit_name=_unit_name(plan),
        maps={"seed": plan.map_seed, "batch_size": plan.map_batch_size, "channel_reduction": plan.channel_reduction},
        batch_size=plan.batch_size,
        threads=plan.threads,
        blocks=_blocks("test", _rows(plan, prints.images, prints.block_size), prints.data),
        train_blocks=_blocks("train", sequential_rows(prints.train_images, prints.block_size), prints.train),
        training=_training_spec(plan, prints, train),
        network=_fingerprinted(plan.network or {}, "recipe.model", prints),
        early_stopping=EarlyStopping(plan.until, plan.confidence, plan.margin, plan.population) if plan.until else None,
        confidence=plan.confidence,
        margin=plan.margin,
        self_test=plan.self_test,
    )


def _blocks(split: str, rows: Sequence[tuple[int, ...]], prints: Sequence[str]) -> tuple[Block, ...]:
    if len(rows) != len(prints):
        raise StoreError(f"the manifest names {len(prints)} blocks of {split} images, the plan makes {len(rows)}")
    return tuple(Block(split, index, *pair) for index, pair in enumerate(zip(rows, prints, strict=True)))


def _model_spec(plan: Plan, prints: Fingerprints) -> Spec:
    """Predictions from probabilities differ from those from logits; log-probabilities make no difference."""
    outputs = {"outputs": prints.outputs} if prints.outputs == "probabilities" else {}
    autocast = {"autocast": plan.autocast} if plan.autocast else {}
    layout = {"channels_last": True} if plan.channels_last else {}
    return {**_fingerprinted(plan.model, "model", prints), "weights": prints.model, **outputs, **autocast, **layout}


def _method_spec(plan: Plan, name: str, prints: Fingerprints) -> Spec:
    """With what the default baseline is, where the plan alone does not say it."""
    baseline = {"baseline": prints.baselines[name]} if name in prints.baselines else {}
    return {**_fingerprinted(plan.methods[name], f"methods.{name}", prints), **baseline}


def _fingerprinted(spec: Spec, key: str, prints: Fingerprints) -> Spec:
    """Fingerprints of its file, its code and the files among its options, in place of their paths."""
    code = spec.get("function", spec.get("factory", ""))
    fingerprint = prints.files.get(key, prints.files.get(code))
    options = {name: prints.files.get(f"{key}.{name}", value) for name, value in spec.items() if name in LOCATIONS}
    return {
        **_placeless(spec),
        **(options if "function" in spec else {}),
        **({"fingerprint": fingerprint} if fingerprint else {}),
    }


def _imputer_spec(plan: Plan, name: str, prints: Fingerprints, train: str) -> Spec:
    spec = plan.imputers[name]
    if name in plan.trained_imputers and plan.gain is not None:
        return {**spec, "train": train, "recipe": plan.gain.spec}
    if name in plan.imputer_files or "function" in spec:
        return _fingerprinted(spec, f"imputers.{name}", prints)
    if lookup("imputers", spec["name"]).needs_data:
        return {**spec, "data": combined(prints.data)}
    return spec


def _unit_spec(plan: Plan, prints: Fingerprints) -> Spec:
    """Nothing for pixels: ids do not mention them."""
    if plan.units.get("name") == "pixels":
        return {}
    return {**_fingerprinted(plan.units, "evaluation.units", prints), "reduction": plan.unit_reduction}


def _unit_name(plan: Plan) -> str:
    """As tables have it; no file is read and no code of the plan is run."""
    spec, rule = plan.units, plan.unit_reduction
    if "function" in spec:
        return setting_name(spec["function"].partition(":")[2], rule)
    if spec["name"] == "feature-mask":
        return setting_name(FeatureMask.name, rule)
    return UnitSetting(_make("units", spec), rule).name


def _training_spec(plan: Plan, prints: Fingerprints, train: str) -> Spec:
    if plan.recipe is None:
        return {}
    functions = {key: value for key, value in (("loss", plan.loss), ("augment", plan.augment)) if value}
    sources = {f"{key}_fingerprint": prints.files[name] for key, name in functions.items() if name in prints.files}
    return {"train": train, "recipe": plan.recipe.spec, **functions, **sources}


def _placeless(spec: Spec) -> Spec:
    return {key: value for key, value in spec.items() if key not in LOCATIONS}


# ── live objects ─────────────────────────────────────────────────────────────────────────────────────────────────────


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


def check_unchanged(plan: Plan, prints: Fingerprints, experiment: Experiment) -> None:
    """Weights and files are those of the fingerprints; images are checked block by block."""
    if fingerprint_model(experiment.model) != prints.model:
        name = plan.model.get("factory", plan.model["name"])
        raise PlanError(
            f"model: {name} has other weights than when the run started: "
            "its factory is not deterministic, or its file of weights changed"
        )
    for name, fingerprint in file_fingerprints(plan).items():
        if fingerprint != prints.files.get(name):
            raise PlanError(f"{name}: its file is not the one that the run started with")


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
    options = {**_placed(specs[key] or {}, plan.folder)}
    images, sample = (options.pop(name, None) for name in SIZES)
    data: Dataset = with_key(key, _make, "datasets", options)
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
    options = dict(_placed(spec, folder))
    norm = {key: options.pop(key) for key in ("mean", "std") if key in options}
    name, weights, factory = options.pop("name"), options.pop("weights", None), options.pop("factory", None)
    maker = _function(key, factory, folder) if isinstance(factory, str) else REGISTRY["models"][name].make
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
    loss: Loss = _function("recipe.loss", plan.loss, plan.folder) if plan.loss else cross_entropy
    return loss


def build_augment(plan: Plan, name: str | None = None) -> Augment | None:
    """The plan's own for retraining, or the one of that name."""
    name = plan.augment if name is None else name
    if not name:
        return None
    augment: Augment = _function("augment", name, plan.folder) if ":" in name else lookup("augmentations", name).make()
    return augment


def build_method(plan: Plan, name: str, data: Dataset) -> Attribution:
    spec = _placed(plan.methods[name], plan.folder)
    if "function" in spec:
        return as_method(name, _own(f"methods.{name}", spec, plan.folder), data)
    method: Any = _make("attributions", spec)
    built: Attribution = method.bound(name, data.ids) if spec["name"] == "maps" else method
    return built


def build_imputer(plan: Plan, name: str, data: Dataset) -> Imputer | GainRecipe:
    spec = plan.imputers[name]
    if name in plan.trained_imputers and plan.gain is not None:
        return plan.gain
    if "function" in spec:
        return _own(f"evaluation.imputers: {name}", _placed(spec, plan.folder), plan.folder)  # type: ignore[no-any-return]
    entry = lookup("imputers", spec["name"])
    placed = _placed(spec, plan.folder) if name in plan.imputer_files else spec
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in placed.items() if key != "name"}
    imputer: Imputer = entry.make(data, **options) if entry.needs_data else entry.make(**options)
    return imputer


def build_units(plan: Plan, model: Normalized | None, data: Dataset) -> UnitSetting:
    spec = _placed(plan.units, plan.folder)
    units = _own("evaluation.units", spec, plan.folder) if "function" in spec else _make("units", spec)
    return UnitSetting(units_for(units, model, data), plan.unit_reduction)


def _readable_units(plan: Plan, prints: Fingerprints, data: Dataset) -> UnitSetting:
    """Without the model and without code of the plan, which is not run to read results."""
    if "function" in plan.units:
        return UnitSetting(_not_run, plan.unit_reduction)
    tokens = {"name": "tokens", "size": prints.patch} if prints.patch else {}
    return build_units(replace(plan, units={**plan.units, **tokens}), None, data)


def _not_run(batch: Batch) -> Tensor:
    raise InputError("the units are a function of the plan, and reading results runs no code of a plan")


def _own(key: str, spec: Spec, folder: Path) -> Any:
    """The user's own object; with options, what it makes of them."""
    found = _function(key, spec["function"], folder)
    options = {name: value for name, value in spec.items() if name != "function"}
    return found(**options) if options else found


def _function(key: str, name: str, folder: Path) -> Any:
    """ "module:function", from the file beside the plan or else from an installed module."""
    module_name, _, attribute = name.partition(":")
    path = folder / (module_name.replace(".", "/") + ".py")
    if not path.is_file():
        return with_key(key, named, name, key)
    module = with_key(key, _module, path, folder)
    if not hasattr(module, attribute):
        raise PlanError(f"{key}: {path} has no {attribute!r}: check the name after the colon")
    return getattr(module, attribute)


def _module(path: Path, folder: Path) -> ModuleType:
    """The file as it is now. Python would serve an earlier version, or a file of that name beside another plan."""
    content = path.read_bytes()
    name = f"{path.stem}_{hashlib.sha256(str(path.resolve()).encode() + content).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = spec_from_loader(name, SourceFileLoader(name, str(path)))
        if spec is None or spec.loader is None:
            raise PlanError(f"{path} cannot be imported")
        module = sys.modules[name] = module_from_spec(spec)
        sys.path.insert(0, str(folder))  # for modules beside it
        try:
            exec(compile(content, str(path), "exec"), module.__dict__)  # noqa: S102  the user's own code, by the user's own plan
        except BaseException:
            del sys.modules[name]
            raise
        finally:
            sys.path.remove(str(folder))
    return sys.modules[name]


def _make(family: str, spec: Spec) -> Any:
    return lookup(family, spec["name"]).make(**{key: value for key, value in spec.items() if key != "name"})


def _placed(spec: Spec, folder: Path) -> Spec:
    """Paths relative to the plan's folder, made usable from here; names of weights of the package stay."""

    def is_path(key: str, value: Any) -> bool:
        return key in LOCATIONS and isinstance(value, str) and not (key == "weights" and value in WEIGHTS)

    return {key: folder / value if is_path(key, value) else value for key, value in spec.items()}


def with_key(key: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """Errors while building a part start with the plan's key."""
    try:
        return make(*arguments)
    except RoadworthyError as error:
        raise PlanError(f"{key}: {error}") from error
    except TypeError as error:
        raise PlanError(f"{key}: {error}; see `roadworthy list` and the docstring of the part") from error
