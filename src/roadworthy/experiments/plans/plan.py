"""A plan: data, model, methods and settings as values; the product of its axes is the work to do.

It never touches data.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from roadworthy.core.masks import FRACTIONS
from roadworthy.training.gain import GainRecipe
from roadworthy.training.loop import Recipe

Spec = Mapping[str, Any]
"""A part's `name` and its options: strings, numbers, lists and tables only."""

LOCATIONS = ("root", "weights", "path")
"""Options that say where something lies. What lies there is told by its fingerprint, so they belong to no id."""

SIZES = ("images", "sample")
"""How much of a data set: the first so many, or so many drawn at random by key (for sets that are sorted by class)."""

CONTROLS = ("random", "edges", "center")

EVALUATORS = ("no-retrain", "retrain", "fine-tuned")
TRAINED = ("retrain", "fine-tuned")
"""evaluators that need train images and a recipe"""

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
    """How the model that is explained was trained, for `roadworthy train`; its weights are what belongs to ids."""

    recipe: Recipe
    data: Spec
    augment: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    data: Spec
    model: Spec
    methods: Mapping[str, Spec]
    controls: tuple[str, ...] = CONTROLS
    blurred: tuple[str, ...] = ()
    """methods of which a blurred copy is evaluated too"""
    orders: tuple[str, ...] = ("morf", "lerf")
    imputers: Mapping[str, Spec] = field(default_factory=lambda: {"linear": {"name": "linear"}})
    evaluators: tuple[str, ...] = ("no-retrain",)
    fractions: tuple[float, ...] = FRACTIONS
    seeds: tuple[int, ...] = (0,)
    strategies: tuple[str, ...] = ()
    """settings by name, instead of the product of orders, imputers and evaluators"""
    train: Spec | None = None
    """the train split, for evaluators and imputers that train"""
    recipe: Recipe | None = None
    network: Spec | None = None
    """what is trained from scratch; the model's own architecture if not given"""
    loss: str = ""
    """"package.module:function"; cross-entropy if not given"""
    augment: str = ""
    """a part, or "package.module:function"; nothing if not given"""
    gain: GainRecipe | None = None
    """how a GAIN without weights is trained"""
    training: Training | None = None
    map_seed: int = 0
    map_batch: int = 64
    batch: int = 64
    threads: int = 1
    folder: Path = Path()
    """what relative paths are relative to"""

    @property
    def maps(self) -> dict[str, Spec]:
        """Every map that the plan needs: the methods', the controls' and the blurred copies'."""
        return {
            **self.methods,
            **{name: {"name": name} for name in self.controls},
            **{f"{name} blurred": {"name": "blurred", "of": self.methods[name]} for name in self.blurred},
        }

    @property
    def settings(self) -> tuple[Setting, ...]:
        if self.strategies:
            return tuple(dict.fromkeys(setting for name in self.strategies for setting in STRATEGIES[name]))
        return tuple(product(self.orders, self.imputers, self.evaluators))

    @property
    def retrains(self) -> bool:
        return any(evaluator == "retrain" for _, _, evaluator in self.settings)

    @property
    def trained_imputers(self) -> tuple[str, ...]:
        """those that come without weights"""
        return tuple(name for name, spec in self.imputers.items() if spec["name"] == "gain" and "weights" not in spec)

    @property
    def imputer_files(self) -> dict[str, Path]:
        """where the weights of the others lie (`weights` of a linear fill are numbers)"""
        gains = {name: spec for name, spec in self.imputers.items() if spec["name"] == "gain" and "weights" in spec}
        return {name: self.folder / spec["weights"] for name, spec in gains.items()}

    def sweeps(self) -> Iterator[tuple[str, str, str, str, int]]:
        """(method, order, imputer, evaluator, seed): all that a curve is drawn from."""
        for method, setting, seed in product(self.maps, self.settings, self.seeds):
            yield method, *setting, seed

    def tunings(self) -> tuple[tuple[str, int], ...]:
        """(imputer, seed) of each model that is tuned with random masks."""
        imputers = dict.fromkeys(imputer for _, imputer, evaluator in self.settings if evaluator == "fine-tuned")
        return tuple(product(imputers, self.seeds))

    def counts(self) -> dict[str, int]:
        """How much work the plan means. Without removal nothing depends on the method: one training per seed."""
        sweeps = list(self.sweeps())
        retrained = sum(evaluator == "retrain" for _, _, _, evaluator, _ in sweeps) * (len(self.fractions) - 1)
        return {
            "maps": len(self.maps) * (2 if self.retrains else 1),
            "points": len(sweeps) * len(self.fractions),
            "trainings": retrained
            + (len(self.seeds) if self.retrains else 0)
            + len(self.tunings())
            + len(self.trained_imputers),
        }
