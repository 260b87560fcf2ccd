"""REGISTRY: everything that has a name, for plans, the command line, the docs and the contract tests."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any

from roadworthy import attributions, datasets, imputers, models
from roadworthy.core.errors import MissingExtraError, UnknownNameError
from roadworthy.evaluation import orders, units
from roadworthy.training import augmentations


@dataclass(frozen=True)
class Entry:
    """`make(**options)` builds the object; where `needs_data`, its first argument is the dataset it is for."""

    make: Callable[..., Any]
    needs_data: bool = False

    @property
    def options(self) -> tuple[str, ...] | None:
        """The names of the options; None if any are accepted."""
        if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in self._parameters):
            return None
        return tuple(parameter.name for parameter in self._parameters)

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the options without a default."""
        optional = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        return tuple(p.name for p in self._parameters if p.default is Parameter.empty and p.kind not in optional)

    @property
    def summary(self) -> str:
        """The first line of the docstring; of a class method, that of its class."""
        return (getdoc(getattr(self.make, "__self__", self.make)) or "").partition("\n")[0]

    @property
    def _parameters(self) -> list[Parameter]:
        return list(signature(self.make).parameters.values())[int(self.needs_data) :]


def _value(value: Any, summary: str = "") -> Entry:
    """An entry without options, which is `value` itself."""

    def make() -> Any:
        return value

    make.__doc__ = summary or getdoc(value)
    return Entry(make)


def _paper_method(name: str) -> Entry:
    def make(**options: Any) -> Any:
        return attributions.paper_methods(**options)[name]

    base, _, statistic = name.partition("-")
    base, statistic = _PAPER_BASES[base], _PAPER_STATISTICS[statistic]
    make.__signature__ = signature(attributions.paper_methods)  # type: ignore[attr-defined]
    make.__doc__ = f"{statistic} of {base} over noisy inputs."
    return Entry(make)


_PAPER_BASES = {"IG": "Integrated Gradients", "GB": "Guided Backprop"}
_PAPER_STATISTICS = {
    "SG": "SmoothGrad: the mean",
    "SQ": "SmoothGrad-Squared: the mean square",
    "Var": "VarGrad: the variance",
}


def _captum(
    method: str, layer: str | None = None, of: str | None = None, init: Mapping[str, Any] | None = None, **options: Any
) -> Any:
    """Any method of Captum, by the name of its class in captum.attr.

    `options` go to `attribute` and `init` to the constructor; `layer` is the dotted name of a module of the network,
    `of` the method that a NoiseTunnel wraps. Lists become tuples, as Captum expects.
    """
    classes = {name: value for name, value in vars(import_module("captum.attr")).items() if hasattr(value, "attribute")}
    for name in filter(None, (method, of)):
        if name not in classes:
            raise _unknown("Captum method", name, classes)
    parts = {"layer": layer, "attribution_method": classes[of] if of else None}
    constructor = {**_tuples(init or {}), **{name: value for name, value in parts.items() if value is not None}}
    return attributions.Captum(classes[method], init=constructor, **_tuples(options))


def _grad_cam(method: str, layer: str, **options: Any) -> Any:
    """Any CAM of pytorch-grad-cam, by the name of its class, for a `layer` given by its dotted name."""
    classes = _classes("pytorch_grad_cam", "pytorch-grad-cam", "grad-cam", "CAM")
    if method not in classes:
        raise _unknown("CAM", method, classes)
    return attributions.GradCam(classes[method], layer=layer, **options)


def _zennit(composite: str, **options: Any) -> Any:
    """The gradient under the rules of a composite of zennit, by its name, such as EpsilonPlusFlat."""
    classes = _classes("zennit.composites", "zennit", "zennit", "")
    if composite not in classes:
        raise _unknown("composite", composite, classes)
    return attributions.Zennit(classes[composite](**options))


def _classes(module: str, library: str, extra: str, part: str) -> dict[str, Any]:
    try:
        names = vars(import_module(module))
    except ImportError as error:
        raise MissingExtraError(f"{library} is not installed: pip install 'roadworthy[{extra}]'") from error
    return {name: value for name, value in names.items() if isinstance(value, type) and part in name}


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def _maps(path: str | Path, array: str | None = None) -> attributions.PrecomputedMaps:
    """Precomputed maps in a .npy, .npz, .safetensors, .zarr or .h5 file; `array` picks one of several arrays."""
    return attributions.PrecomputedMaps.load(path, array)


REGISTRY: Mapping[str, Mapping[str, Entry]] = {
    "attributions": {
        "gradient": Entry(attributions.Gradient),
        "input-x-gradient": Entry(attributions.InputXGradient),
        "ig": Entry(attributions.IntegratedGradients),
        "ig-sg": _paper_method("IG-SG"),
        "ig-sq": _paper_method("IG-SQ"),
        "ig-var": _paper_method("IG-Var"),
        "gb": Entry(attributions.GuidedBackprop),
        "gb-sg": _paper_method("GB-SG"),
        "gb-sq": _paper_method("GB-SQ"),
        "gb-var": _paper_method("GB-Var"),
        "captum": Entry(_captum),
        "grad-cam": Entry(_grad_cam),
        "zennit": Entry(_zennit),
        "maps": Entry(_maps),
        "random": Entry(attributions.Random),
        "edges": Entry(attributions.Edges),
        "center": Entry(attributions.Center),
    },
    "orders": {
        "morf": _value(orders.most_relevant_first),
        "lerf": _value(orders.least_relevant_first, "LeRF: MoRF reversed, ties included."),
    },
    "imputers": {
        "linear": Entry(imputers.NoisyLinear),
        "fixed": Entry(imputers.DatasetMean.of, needs_data=True),
        "image-mean": Entry(imputers.ImageMean),
        "constant": Entry(imputers.Constant),
        "blur": Entry(imputers.Blur),
        "gain": Entry(imputers.Gain.load),
    },
    "units": {
        "pixels": Entry(units.Pixels),
        "patches": Entry(units.Patches),
        "superpixels": Entry(units.Superpixels),
        "tokens": Entry(units.Tokens),
        "feature-mask": Entry(units.FeatureMask.load),
    },
    "augmentations": {"flip": _value(augmentations.flipped), "shift-flip": _value(augmentations.shifted_and_flipped)},
    "datasets": {
        "arrays": Entry(datasets.Arrays),
        "cifar10": Entry(datasets.CIFAR10),
        "cifar10-sample": Entry(datasets.CIFAR10Sample),
        "digits": Entry(datasets.Digits),
        "food101": Entry(datasets.Food101),
        "folder": Entry(datasets.ImageFolder),
    },
    "models": {
        "resnet18": Entry(models.resnet18),
        "resnet50": Entry(models.resnet50),
        "cifar-resnet": Entry(models.cifar_resnet),
        "small-cnn": Entry(models.small_cnn),
        "timm": Entry(models.from_timm),
        "torchvision": Entry(models.from_torchvision),
        "transformers": Entry(models.from_transformers),
        "load": Entry(models.load),
    },
}


def lookup(family: str, name: str) -> Entry:
    """
    >>> lookup("imputers", "lineer")
    Traceback (most recent call last):
    ...
    roadworthy.core.errors.UnknownNameError: unknown imputer 'lineer': did you mean 'linear'? Available: ...
    """
    entries = REGISTRY[family]
    if name not in entries:
        raise _unknown(family if family == "units" else family.removesuffix("s"), name, entries)
    return entries[name]


def _unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    return UnknownNameError(f"unknown {kind} {name!r}: {suggestion(name, known)}")


def suggestion(name: str, known: Iterable[str], shown: Callable[[str], str] = repr) -> str:
    """What `name` may be a misspelling of, and all that is `known`.

    >>> suggestion("mofr", ("morf", "lerf"))
    "did you mean 'morf'? Available: morf, lerf"
    """
    spellings = {option.lower(): option for option in known}
    near = get_close_matches(name.lower(), spellings, n=1, cutoff=0.5)
    hint = f"did you mean {shown(spellings[near[0]])}? " if near else ""
    return f"{hint}Available: {', '.join(spellings.values())}"
