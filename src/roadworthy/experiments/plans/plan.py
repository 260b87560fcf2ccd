"""A plan: data, model, methods and settings as values. The product of its axes is the work to do.

A plan never touches data and builds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from roadworthy.core.masks import FRACTIONS
from roadworthy.evaluation.experiment import POINT_EVALUATORS
from roadworthy.training.gain import GainRecipe
from roadworthy.training.recipe import Recipe

Spec = Mapping[str, Any]
"""What to build, in strings, numbers, lists and tables: a registry `name` and its options, or the user's `function`.

A `function` is named "module:function". Without options the named object itself is the method or imputer; with
options it is called with them and must return one. The module is importable, or a file beside the plan.
"""

LOCATIONS = ("root", "weights", "path")
"""Options that say where a file lies. Ids use a fingerprint of its content instead."""

SIZES = ("images", "sample")
"""How much of a dataset to use: the first `images`, or a random `sample` (for datasets that are sorted by class)."""

SHORTHANDS = {"captum": "method", "grad-cam": "method", "zennit": "composite", "maps": "path"}
"""Methods that a plan may write as { NAME = "..." }, and the option that this is."""

ORDERS = ("morf", "lerf")

BLIND_CONTROLS = ("random", "edges", "center")
"""Controls that know nothing of the model: a useful method beats them."""

CONTROLS = (*BLIND_CONTROLS, "blurred", "inverted")
"""What methods are compared with; `blurred` and `inverted` are copies of the maps of some methods."""

LEADERS = 2
"""How many of the leading methods are copied if a plan does not name the ones to copy."""

Setting = tuple[str, str, str]
"""order, imputer, evaluator"""

STRATEGIES: Mapping[str, tuple[Setting, ...]] = {
    "ROAD": (("morf", "linear", "no-retrain"), ("lerf", "linear", "no-retrain")),
    "ROAR": (("morf", "fixed", "retrain"),),
    "KAR": (("lerf", "fixed", "retrain"),),
}
"""Settings that have a name in the literature."""


@dataclass(frozen=True)
class Training:
    """How `roadworthy train` fits the model to explain. Not part of any id: the fingerprint of the weights is."""

    recipe: Recipe
    data: Spec
    augment: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An experiment as values, as `read_plan` reads it from a TOML file (docs/plans.md)."""

    data: Spec
    model: Spec
    methods: Mapping[str, Spec]
    controls: tuple[str, ...] = CONTROLS
    copied: tuple[str, ...] = ()
    """methods of which blurred and inverted copies are made; by default the two leading ones"""
    self_test: bool = True
    """whether damaged copies of the leading methods say what the benchmark can see"""
    orders: tuple[str, ...] = ORDERS
    imputers: Mapping[str, Spec] = field(default_factory=lambda: {"linear": {"name": "linear"}})
    evaluators: tuple[str, ...] = ("no-retrain",)
    strategies: tuple[str, ...] = ()
    """named settings, instead of the product of orders, imputers and evaluators"""
    fractions: tuple[float, ...] = FRACTIONS
    seeds: tuple[int, ...] = (0,)
    target: Literal["label", "prediction"] = "label"
    """the class to explain"""
    channel_reduction: Literal["sum", "abs_sum", "max_abs"] = "sum"
    units: Spec = field(default_factory=lambda: {"name": "pixels"})
    """what is removed at a time"""
    unit_reduction: Literal["mean", "sum", "max", "max_abs"] = "mean"
    """how maps are pooled to units"""
    until: Literal["ranked", "best"] | None = None
    """when to stop early; None evaluates all images"""
    confidence: float = 0.95
    margin: float = 0.02
    population: Literal["infinite", "finite"] = "infinite"
    """what statements after early stopping are about: images like these, or the images of this data set"""
    train: Spec | None = None
    """the train split, for evaluators and imputers that train"""
    recipe: Recipe | None = None
    network: Spec | None = None
    """the architecture that is retrained; by default that of the model"""
    loss: str = ""
    """"module:function"; by default cross-entropy"""
    augment: str = ""
    """an augmentation of the registry, or "module:function"; by default none"""
    gain: GainRecipe | None = None
    """how to train a GAIN without weights"""
    training: Training | None = None
    map_seed: int = 0
    map_batch_size: int = 64
    batch_size: int = 64
    block_size: int | None = None
    """images per recorded block"""
    threads: int = 1
    autocast: Literal["bfloat16", "float16"] | None = None
    """precision in which the model predicts, lower than that of its weights"""
    channels_last: bool = False
    """memory format in which the model predicts"""
    folder: Path = Path()
    """what relative paths are relative to"""
    text: str = ""
    """the TOML source"""

    @property
    def settings(self) -> tuple[Setting, ...]:
        if self.strategies:
            return tuple(dict.fromkeys(setting for name in self.strategies for setting in STRATEGIES[name]))
        return tuple(product(self.orders, self.imputers, self.evaluators))

    @property
    def point_evaluators(self) -> tuple[str, ...]:
        """The evaluators of the plan that train a model for each point."""
        used = {evaluator for _, _, evaluator in self.settings}
        return tuple(name for name in POINT_EVALUATORS if name in used)

    @property
    def blind_controls(self) -> tuple[str, ...]:
        return tuple(name for name in self.controls if name in BLIND_CONTROLS)

    @property
    def copy_controls(self) -> tuple[str, ...]:
        """The kinds of copies; the copy of a method is named "METHOD KIND"."""
        return tuple(name for name in self.controls if name not in BLIND_CONTROLS)

    @property
    def trained_imputers(self) -> tuple[str, ...]:
        """Imputers without weights, which the run trains."""
        return tuple(name for name, spec in self.imputers.items() if _is_gain(spec) and "weights" not in spec)

    @property
    def imputer_files(self) -> dict[str, Path]:
        """Imputers with weights, and their files. (The `weights` of a linear imputer are numbers.)"""
        gains = {name: spec for name, spec in self.imputers.items() if _is_gain(spec) and "weights" in spec}
        return {name: self.folder / spec["weights"] for name, spec in gains.items()}

    @property
    def map_files(self) -> dict[str, Path]:
        """Methods given as precomputed maps, and their files."""
        return {name: self.folder / spec["path"] for name, spec in self.methods.items() if spec.get("name") == "maps"}

    @property
    def unit_files(self) -> dict[str, Path]:
        """The labels of a feature mask, by their key."""
        mask = self.units.get("name") == "feature-mask"
        return {"evaluation.units": self.folder / self.units["path"]} if mask else {}

    @property
    def functions(self) -> tuple[str, ...]:
        """The code that running the plan imports and calls, as "module:function"."""
        specs = (*self.methods.values(), *self.imputers.values(), self.units, self.model, self.network or {})
        names = [spec.get("function", spec.get("factory", "")) for spec in specs]
        names += [self.loss, self.augment, self.training.augment if self.training else ""]
        return tuple(dict.fromkeys(name for name in names if ":" in name))

    @property
    def function_files(self) -> dict[str, Path]:
        """The user's functions that are defined in a file beside the plan, and that file."""
        files = {name: self.folder / (name.partition(":")[0].replace(".", "/") + ".py") for name in self.functions}
        return {name: path for name, path in files.items() if path.is_file()}

    @property
    def option_files(self) -> dict[str, Path]:
        """Files among the options of the user's functions, by the dotted key of the option."""
        tables = {"methods": self.methods, "imputers": self.imputers, "evaluation": {"units": self.units}}
        files = {
            f"{table}.{name}.{option}": self.folder / spec[option]
            for table, specs in tables.items()
            for name, spec in specs.items()
            if "function" in spec
            for option in LOCATIONS
            if isinstance(spec.get(option), str)
        }
        return {key: path for key, path in files.items() if path.is_file()}

    def counts(self) -> dict[str, int]:
        """How much work the plan means.

        Inverted copies are free: the MoRF curve of one is the LeRF curve of its method. Without removal a model
        that is trained does not depend on the method: one training per evaluator and seed.
        """
        copies = len(self.copied) or min(LEADERS, len(self.methods))
        methods = len(self.methods) + len(self.blind_controls) + copies * ("blurred" in self.controls)
        curves = methods * len(self.settings) * len(self.seeds)
        trained = sum(evaluator in POINT_EVALUATORS for *_, evaluator in self.settings)
        fine_tuned = {imputer for _, imputer, evaluator in self.settings if evaluator == "fine-tuned"}
        return {
            "maps": methods * (2 if self.point_evaluators else 1),
            "points": curves * len(self.fractions),
            "trainings": methods * trained * len(self.seeds) * (len(self.fractions) - 1)
            + len(self.point_evaluators) * len(self.seeds)
            + len(fine_tuned) * len(self.seeds)
            + len(self.trained_imputers),
        }


def _is_gain(spec: Spec) -> bool:
    return spec.get("name") == "gain"
