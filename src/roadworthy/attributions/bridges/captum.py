"""Captum methods, by their class."""

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any, final

from torch import Tensor, nn

from roadworthy.attributions.baselines import BaselineLike, baseline_inputs, checked_baseline, has_mean
from roadworthy.attributions.maps import ChannelReduction, reduced
from roadworthy.core.errors import InputError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Maps, Model


@final
class Captum:
    """Any Captum method that takes a `target`: `Captum(captum.attr.Saliency, abs=False)`.

    `options` are passed to `attribute`, `init` to the constructor: `Captum(LayerGradCam, init={"layer": net.layer4})`.
    A layer may also be given by name, "layer4.0.conv1". The method receives the network and its normalized input.
    Random methods are seeded by key and ids, so they are reproducible, but their maps depend on the batch size because
    Captum has no random stream per image. `channel_reduction`: by default that of the experiment. `baseline`, in pixel
    space: of a method that takes `baselines`, unless these are among the options, which are in normalized space.
    """

    def __init__(
        self,
        method: type,
        *,
        channel_reduction: ChannelReduction | None = None,
        baseline: BaselineLike = "mean",
        init: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if not hasattr(method, "attribute"):
            raise InputError(f"{method!r} has no attribute() method: give a class from captum.attr")
        if "layer" in signature(method).parameters and "layer" not in (init or {}):
            raise InputError(
                f'{method.__name__} explains a layer: Captum({method.__name__}, init={{"layer": net.layer4}})'
            )
        self.method, self.init, self.options = method, init or {}, options
        self.channel_reduction = channel_reduction
        self.baseline = checked_baseline(baseline) if self._takes_baseline else None
        if self.baseline is None and not (isinstance(baseline, str) and baseline == "mean"):
            reason = "baselines= is given too" if "baselines" in options else "the method has no baselines"
            raise InputError(f"{method.__name__}, baseline={baseline!r}: {reason}: leave it out")

    @property
    def _takes_baseline(self) -> bool:
        return "baselines" in _parameters(self.method) and "baselines" not in self.options

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        init = {
            name: _layer(model.network, value) if name == "layer" and isinstance(value, str) else value
            for name, value in self.init.items()
        }
        with key.fold("captum", *batch.ids.tolist()).torch_rng():
            maps: Tensor = self.method(model.network, **init).attribute(
                model.normalize(batch.images).requires_grad_(),
                target=batch.labels,
                **self._baselines(model, batch.images),
                **self.options,
            )
        return reduced(maps.detach(), self.channel_reduction) if self.channel_reduction else maps.detach()

    def _baselines(self, model: Model, images: Images) -> dict[str, Tensor]:
        if self.baseline is None:
            return {}
        optional = _parameters(self.method)["baselines"].default is not Parameter.empty
        if optional and self.baseline == "mean" and has_mean(model, images):
            return {}  # Captum's own default: zero in normalized space
        return {"baselines": baseline_inputs(self.baseline, model, images)}


def _parameters(method: Any) -> Mapping[str, Parameter]:
    return signature(method.attribute).parameters


def _layer(network: Any, name: str) -> nn.Module:
    """The module of that dotted name, as the user's own network calls it inside the wrapper around it."""
    modules: dict[str, nn.Module] = {}
    for root in (network, getattr(network, "network", None)):
        modules |= dict(root.named_modules()) if isinstance(root, nn.Module) else {}
    if name not in modules:
        near = get_close_matches(name, modules, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see the names in network.named_modules()"
        raise InputError(f"layer {name!r}: the network has no such module; {hint}")
    return modules[name]
