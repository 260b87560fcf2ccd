"""REGISTRY: every named part, one line each, for plans, the command line, the docs and the contract tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import getdoc, signature
from typing import Any

from roadworthy import attributions, datasets, imputers, models
from roadworthy.core.errors import UnknownNameError
from roadworthy.evaluation import orders
from roadworthy.training import augmentations


@dataclass(frozen=True)
class Part:
    """`make(**options)` builds the part; where `needs_data`, its first argument is the data set it is for."""

    make: Callable[..., Any]
    needs_data: bool = False

    @property
    def options(self) -> tuple[str, ...] | None:
        """Names of the options it takes; None if it takes any."""
        parameters = list(signature(self.make).parameters.values())[int(self.needs_data) :]
        if any(one.kind is one.VAR_KEYWORD for one in parameters):
            return None
        return tuple(one.name for one in parameters)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (getdoc(self.make) or "").partition("\n")[0]


def _value(part: Any, summary: str) -> Part:
    """A part without options is itself."""

    def make() -> Any:
        return part

    make.__doc__ = summary
    return Part(make)


def _of_paper(name: str) -> Part:
    def make(**options: Any) -> Any:
        return attributions.paper_methods(**options)[name]

    base, _, statistic = name.partition("-")
    make.__signature__ = signature(attributions.paper_methods)  # type: ignore[attr-defined]
    make.__doc__ = f"{base} over noisy samples: {statistic} (paper_methods; options steps, ig_samples, gb_samples)."
    return Part(make)


REGISTRY: Mapping[str, Mapping[str, Part]] = {
    "attributions": {
        "gradient": Part(attributions.Gradient),
        "input-x-gradient": Part(attributions.InputXGradient),
        "ig": Part(attributions.IntegratedGradients),
        "ig-sg": _of_paper("IG-SG"),
        "ig-sq": _of_paper("IG-SQ"),
        "ig-var": _of_paper("IG-Var"),
        "gb": Part(attributions.GuidedBackprop),
        "gb-sg": _of_paper("GB-SG"),
        "gb-sq": _of_paper("GB-SQ"),
        "gb-var": _of_paper("GB-Var"),
        "random": Part(attributions.Random),
        "edges": Part(attributions.Edges),
        "center": Part(attributions.Center),
    },
    "orders": {
        "morf": _value(orders.most_relevant_first, "MoRF: the most relevant pixel leaves first."),
        "lerf": _value(orders.least_relevant_first, "LeRF: MoRF reversed, ties included."),
    },
    "imputers": {
        "linear": Part(imputers.NoisyLinear),
        "fixed": Part(imputers.DatasetMean.of, needs_data=True),
        "image-mean": Part(imputers.ImageMean),
        "constant": Part(imputers.Constant),
        "blur": Part(imputers.Blur),
        "gain": Part(imputers.Gain.load),
    },
    "augmentations": {
        "flip": _value(augmentations.flipped, "Half of the train images mirrored."),
        "shift-flip": _value(augmentations.shifted_and_flipped, "Moved by up to 4 pixels, and half of them mirrored."),
    },
    "datasets": {
        "arrays": Part(datasets.Arrays),
        "cifar10": Part(datasets.CIFAR10),
        "digits": Part(datasets.Digits),
        "food101": Part(datasets.Food101),
        "folder": Part(datasets.ImageFolder),
    },
    "models": {
        "resnet18": Part(models.resnet18),
        "resnet50": Part(models.resnet50),
        "cifar-resnet": Part(models.cifar_resnet),
        "small-cnn": Part(models.small_cnn),
        "load": Part(models.load),
    },
}


def part(family: str, name: str) -> Part:
    """
    >>> part("imputers", "lineer")
    Traceback (most recent call last):
    ...
    roadworthy.errors.UnknownNameError: no part 'lineer' among the imputers: did you mean 'linear'? ...
    """
    known = REGISTRY[family]
    if name not in known:
        near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownNameError(f"no part {name!r} among the {family}: {hint}There are: {', '.join(known)}")
    return known[name]
