"""zennit: an Attributor around a network, or a Composite alone."""

from copy import copy
from importlib import import_module
from typing import Any, final

from torch import Tensor, nn
from torch.nn.functional import one_hot

from roadworthy.attributions.bridges.binding import calling, inputs_of, own_network
from roadworthy.core.errors import InputError, MissingExtraError, ModelError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Maps, Model


@final
class Zennit:
    """An Attributor, `Gradient(net, EpsilonPlusFlat())`, or a Composite, whose rules the gradient then follows.

    The class to explain is the batch's label, whatever `attr_output` the attributor has. `options` are those of
    zennit's `Gradient` for a composite. Rules are registered during the call only.
    """

    def __init__(self, method: Any, **options: Any) -> None:
        if isinstance(method, type):
            raise InputError(f"{method.__name__} is a class: give an object, {method.__name__}(...)")
        if not (hasattr(method, "attr_output_fn") or hasattr(method, "register")):
            raise InputError(f"{type(method).__name__}: give an Attributor or a Composite of zennit")
        self.method, self.options = method, options

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        attributor, inputs = self._bound(model, batch)
        with calling("zennit", type(self.method).__name__, model, batch, key):
            _, relevance = attributor(
                inputs.detach().requires_grad_(), lambda output: one_hot(batch.labels, output.shape[1]).to(output)
            )
        return relevance.detach()  # type: ignore[no-any-return]

    def _bound(self, model: Model, batch: Batch) -> tuple[Any, Tensor]:
        # Composites may refer to modules by name, so they get the user's network without our wrapper.
        if hasattr(self.method, "attr_output_fn"):
            inputs = inputs_of(model, self.method.model, f"{type(self.method).__name__} of zennit")(batch.images)
            return copy(self.method), inputs
        network = own_network(model)
        if not isinstance(network, nn.Module):
            raise ModelError(f"zennit needs a torch Module, the model is a {type(network).__name__}")
        return zennit_module("attribution").Gradient(network, self.method, **self.options), model.normalize(
            batch.images
        )


def zennit_module(name: str) -> Any:
    try:
        return import_module(f"zennit.{name}")
    except ImportError as error:
        raise MissingExtraError("zennit is not installed: pip install 'roadworthy[zennit]'") from error
