"""Captum methods, by their class."""

from inspect import signature
from typing import Any, final

from torch import Tensor

from roadworthy.attributions.maps import ChannelReduction, reduced
from roadworthy.core.errors import InputError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Maps, Model


@final
class Captum:
    """Any Captum method that takes a `target`: `Captum(captum.attr.Saliency, abs=False)`.

    `options` are passed to `attribute`, `init` to the constructor: `Captum(LayerGradCam, init={"layer": net.layer4})`.
    The method receives the network and its normalized input. Random methods are seeded by key and ids, so they are
    reproducible, but their maps depend on the batch size because Captum has no random stream per image.
    """

    def __init__(
        self,
        method: type,
        *,
        channel_reduction: ChannelReduction = "sum",
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

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        with key.fold("captum", *batch.ids.tolist()).torch_rng():
            maps: Tensor = self.method(model.network, **self.init).attribute(
                model.normalize(batch.images).requires_grad_(), target=batch.labels, **self.options
            )
        return reduced(maps.detach(), self.channel_reduction)
