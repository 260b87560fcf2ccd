"""Captum methods, by their class or as objects."""

import warnings
from collections.abc import Mapping
from copy import copy
from inspect import Parameter, signature
from typing import Any, final

import torch
from torch import Tensor

from roadworthy.attributions.baselines import BaselineLike, baseline_inputs, checked_baseline, has_mean
from roadworthy.attributions.bridges.binding import calling, inputs_of, module_named, own_network
from roadworthy.attributions.maps import ChannelReduction, reduced
from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.partitions import Partition, on
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Maps, Model

_NETWORK_FIELDS = ("forward_func", "model")


@final
class Captum:
    """Any Captum method that takes a `target`: a class, `Captum(Saliency, abs=False)`, or an object, `Saliency(net)`.

    `options` are passed to `attribute`; `init` to the constructor of a class: `Captum(LayerGradCam, init={"layer":
    net.layer4})`, or the layer's name, "layer4.0.conv1". A class receives the network and its normalized input. An
    object is copied; it receives what its own network takes: images in [0, 1] if that is an `rw.Normalized`, else
    normalized ones. Channels of a layer are summed. Random methods are seeded by key and ids, so they are reproducible,
    but their maps depend on the batch size because Captum has no random stream per image. `channel_reduction`: by
    default that of the experiment. `baseline`, in pixel space: of a method that takes `baselines`, unless these are
    among the options, in the space of the input; by default "mean" for a class, Captum's own zero for an object.
    Methods that explain regions (`feature_mask`: Lime, KernelShap, FeatureAblation, ...) get the units of the
    experiment as their regions, unless a `feature_mask` is among the options.
    """

    def __init__(
        self,
        method: Any,
        *,
        channel_reduction: ChannelReduction | None = None,
        baseline: BaselineLike | None = None,
        init: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.method, self.init, self.options = method, init or {}, options
        self.channel_reduction = channel_reduction
        self.name = method.__name__ if isinstance(method, type) else type(method).__name__
        _check_explains_classes(method, self.name)
        _check_options(method, self.name, options)
        if isinstance(method, type):
            _check_constructor(method, self.init)
        elif init:
            raise InputError(f"{self.name}: init= is for a class; this is an object, which is constructed already")
        parameter = _parameters(method).get("baselines")
        takes = parameter is not None and "baselines" not in options
        if baseline is not None and not takes:
            reason = "baselines= is given too" if "baselines" in options else "the method has no baselines"
            raise InputError(f"{self.name}, baseline={baseline!r}: {reason}: leave it out")
        self.needs_baselines = takes and parameter is not None and parameter.default is Parameter.empty
        if takes and baseline is None and (isinstance(method, type) or self.needs_baselines):
            baseline = "mean"
        self.baseline = None if baseline is None else checked_baseline(baseline)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        method, inputs, takes_images = self._bound(model, batch)
        baselines = self._baselines(model, batch.images, takes_images)
        with calling("captum", self.name, model, batch, key):
            if batch.units is None or not self.takes_regions:
                output = method.attribute(inputs.requires_grad_(), target=batch.labels, **baselines, **self.options)
            else:
                output = self._of_regions(method, inputs, batch, batch.units, baselines)
        return self._maps(output, batch)

    @property
    def takes_regions(self) -> bool:
        return "feature_mask" in _parameters(self.method) and "feature_mask" not in self.options

    def _of_regions(
        self, method: Any, inputs: Tensor, batch: Batch, units: Partition, baselines: Mapping[str, Tensor]
    ) -> Tensor:
        """Images with equally many units together: Captum takes the largest label of a batch as the number of all."""
        maps, labels = torch.empty_like(inputs), units.each_label(len(batch))[:, None]
        for _, rows in units.groups(len(batch)):
            chosen = on(rows, inputs.device)
            arguments = {
                name: value[chosen] if len(value) == len(batch) else value for name, value in baselines.items()
            }
            mask = labels[:1] if units.shared else labels[chosen]
            with warnings.catch_warnings():
                warnings.filterwarnings(
                    "ignore", "You are providing multiple inputs for Lime"
                )  # it explains each alone
                maps[chosen] = method.attribute(
                    inputs[chosen], target=batch.labels[chosen], feature_mask=mask, **arguments, **self.options
                ).to(maps.dtype)
        return maps

    def _bound(self, model: Model, batch: Batch) -> tuple[Any, Tensor, bool]:
        """The method around the model's network, its input, and whether that is images."""
        if isinstance(self.method, type):
            return _constructed(self.method, model.network, self.init), model.normalize(batch.images), False
        networks = _networks(self.method)
        spaces = [inputs_of(model, network, f"{self.name} of Captum") for network in networks]
        return _copied(self.method, model), spaces[0](batch.images), networks[0] is model

    def _baselines(self, model: Model, images: Images, takes_images: bool) -> dict[str, Tensor]:
        if self.baseline is None:
            return {}
        if takes_images:
            raise InputError(
                f"{self.name} of Captum is built around rw.Normalized, so its baselines are images in [0, 1]: "
                "give them as baselines="
            )
        if self.baseline == "mean" and has_mean(model, images) and not self.needs_baselines:
            return {}  # Captum's own default: zero in normalized space
        return {"baselines": baseline_inputs(self.baseline, model, images)}

    def _maps(self, output: Any, batch: Batch) -> Maps:
        maps = output[0] if isinstance(output, tuple) else output  # (maps, convergence delta)
        if not isinstance(maps, Tensor) or maps.ndim != 4:
            shape = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
            raise ShapeError(
                f"{self.name} of Captum returned {shape} for images {tuple(batch.images.shape)}: choose a layer with "
                "height and width (tokens of a transformer have none: write a function that reshapes them)"
            )
        maps, channels = maps.detach(), maps.shape[1]
        layered = channels not in (1, batch.images.shape[1])
        rule = self.channel_reduction or ("sum" if layered else None)
        return reduced(maps, rule) if rule else maps


def _parameters(method: Any) -> Mapping[str, Parameter]:
    return signature(method.attribute).parameters


def _check_explains_classes(method: Any, name: str) -> None:
    if not callable(getattr(method, "attribute", None)):
        raise InputError(f"{method!r} has no attribute() method: give a class or an object of captum.attr")
    parameters = _parameters(method)
    if "target" not in parameters and all(p.kind is not Parameter.VAR_KEYWORD for p in parameters.values()):
        raise InputError(f"{name} of Captum takes no target, so it explains no class: choose a method that does")


def _check_options(method: Any, name: str, options: Mapping[str, Any]) -> None:
    """Options that `attribute` does not know or lacks; inputs, target and baselines are given here."""
    parameters = _parameters(method)
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    if unknown := [option for option in options if option not in parameters and not takes_any]:
        raise InputError(f"{name} of Captum has no option {unknown[0]!r}: choose from {', '.join(parameters)}")
    given = {"self", "inputs", "target", "baselines", *options}
    required = [
        p.name for p in parameters.values() if p.default is Parameter.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    if missing := [option for option in required if option not in given]:
        raise InputError(f"{name} of Captum needs {missing[0]}: rw.attributions.Captum(method, {missing[0]}=...)")


def _check_constructor(method: type, init: dict[str, Any]) -> None:
    parameters = signature(method).parameters
    if "layer" in parameters and "layer" not in init:
        raise InputError(f'{method.__name__} explains a layer: Captum({method.__name__}, init={{"layer": net.layer4}})')
    if "attribution_method" in parameters and "attribution_method" not in init:
        raise InputError(
            f"{method.__name__} wraps another method: give an object, {method.__name__}(Saliency(net)), or its class, "
            f'Captum({method.__name__}, init={{"attribution_method": Saliency}})'
        )


def _constructed(method: type, network: Any, init: dict[str, Any]) -> Any:
    arguments = dict(init)
    if isinstance(layer := init.get("layer"), str):
        arguments["layer"] = module_named(network, layer)
    if "attribution_method" not in init:
        return method(network, **arguments)
    inner = arguments.pop("attribution_method")
    return method(inner(network, **arguments) if isinstance(inner, type) else inner)


def _is_captum(value: Any) -> bool:
    return callable(getattr(value, "attribute", None)) and not isinstance(value, type)


def _networks(method: Any) -> list[Any]:
    """Every network that a method and the methods inside it refer to."""
    fields = vars(method)
    inner = [network for value in fields.values() if _is_captum(value) for network in _networks(value)]
    return [fields[name] for name in _NETWORK_FIELDS if name in fields] + inner


def _copied(method: Any, model: Model) -> Any:
    """A copy whose network checks its output; an `rw.Normalized` does so itself."""
    result = copy(method)
    for name, value in vars(method).items():
        if value is own_network(model):
            setattr(result, name, model.network)
        elif _is_captum(value):
            setattr(result, name, _copied(value, model))
        elif isinstance(value, list | dict):
            setattr(result, name, value.copy())
    return result
