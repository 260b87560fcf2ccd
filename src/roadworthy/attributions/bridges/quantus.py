"""Quantus: functions that it calls as `explain_func(model=..., inputs=..., targets=...)`."""

from collections.abc import Callable
from typing import Any, final

from torch import Tensor

from roadworthy.attributions.bridges.binding import calling
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Maps, Model


@final
class Quantus:
    """An `explain_func` of Quantus: `Quantus(quantus.explain, method="Saliency")`, or your own.

    It gets the network, its normalized input and the classes as arrays, and `options` as further arguments. Random
    numbers that it draws from torch or NumPy are seeded.
    """

    def __init__(self, explain_func: Callable[..., Any], **options: Any) -> None:
        self.explain_func, self.options = explain_func, options

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        inputs: Tensor = model.normalize(batch.images).detach()
        with calling("quantus", "the explain_func", model, batch, key):
            return self.explain_func(  # type: ignore[no-any-return]
                model=model.network,
                inputs=inputs.float().cpu().numpy(),
                targets=batch.labels.cpu().numpy(),
                **self.options,
            )
