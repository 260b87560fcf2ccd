"""shap: an Explanation, or an explainer of torch models (GradientExplainer, DeepExplainer)."""

from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from roadworthy.attributions.bridges.binding import calling, inputs_of
from roadworthy.attributions.precomputed import PrecomputedMaps, of_classes
from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Maps, Model


def explanation_maps(explanation: Any) -> PrecomputedMaps:
    """The values of a `shap.Explanation` of the images, in their order; of several outputs that of the class."""
    values = explanation.values
    if not isinstance(values, np.ndarray) or values.dtype == object:
        raise InputError(f"the Explanation holds {type(values).__name__}: give one array of values (n, …)")
    data = explanation.data
    axes = np.ndim(data) if isinstance(data, np.ndarray | Tensor) and np.ndim(data) >= 3 else 4
    return PrecomputedMaps(values, per_class=values.ndim == axes + 1)


@final
class ShapExplainer:
    """A `shap.GradientExplainer` or `DeepExplainer` around the network or the model; `options` go to `shap_values`.

    It gets what its own network takes: images in [0, 1] if that is an `rw.Normalized`, else normalized ones; its
    background data must be of the same kind. shap explains every class, of which that of the label is taken: with many
    classes it is slow.
    """

    def __init__(self, explainer: Any, **options: Any) -> None:
        if isinstance(explainer, type):
            raise InputError(
                f"{explainer.__name__} is a class: give an object, {explainer.__name__}(network, background)"
            )
        inner: Any = getattr(explainer, "explainer", None)
        if not hasattr(explainer, "shap_values") or not hasattr(inner, "model"):
            raise InputError(
                f"a {type(explainer).__name__} of shap cannot be checked to explain the model that is evaluated: "
                "give its result, explainer(images), or use GradientExplainer or DeepExplainer"
            )
        self.explainer, self.network, self.options = explainer, inner.model, options

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        name = type(self.explainer).__name__
        inputs = inputs_of(model, self.network, f"{name} of shap")(batch.images).detach()
        with calling("shap", name, model, batch, key):
            values = np.asarray(self.explainer.shap_values(inputs, **self.options))
        if values.shape[:-1] != tuple(inputs.shape):
            raise ShapeError(
                f"shap returned values {values.shape} for inputs {tuple(inputs.shape)}: explain the input, not a "
                "layer, and all outputs"
            )
        return of_classes(torch.as_tensor(values), model, batch)
