"""What users may give as model, data, methods and imputers, and its conversion to the parts of an experiment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from roadworthy.attributions import PrecomputedMaps
from roadworthy.attributions.bridges import bridged
from roadworthy.attributions.functions import as_function
from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.types import Attribution, Dataset, Imputer, Units
from roadworthy.datasets import as_dataset
from roadworthy.experiments.arguments import check_names
from roadworthy.experiments.registry import REGISTRY, lookup
from roadworthy.models.loading import named
from roadworthy.models.normalized import Normalized
from roadworthy.training.gain import GainRecipe

ModelLike = Normalized | nn.Module | Callable[[torch.Tensor], torch.Tensor]
"""A torch Module or any callable from images to logits."""
DataLike = (
    Dataset
    | tuple[Any, Any]
    | Sequence[Any]
    | torch.Tensor
    | np.ndarray
    | torch.utils.data.Dataset[Any]
    | torch.utils.data.DataLoader[Any]
    | Any
)
"""(images, labels), images alone, PIL images, a torch Dataset or DataLoader, a Hugging Face Dataset, or a data set of
`rw.datasets`."""
MethodLike = Attribution | str | Path | np.ndarray | torch.Tensor | PrecomputedMaps | Any
"""An attribution, a function, precomputed maps (an array or a file), a registry name, "module:function", or a method of
Captum, zennit, pytorch-grad-cam, shap or Quantus (docs/bridges.md)."""
ImputerLike = Imputer | GainRecipe | str
"""An imputer, its registry name, or a recipe by which a GAIN is trained first."""
UnitsLike = Units | str
"""Units such as `rw.Patches(16)`, "pixels", "tokens", or a function batch -> labels."""


def as_data(data: Any, model: Normalized) -> Dataset:
    """Whatever `DataLike` allows, with the model's class names where the data have none."""
    names = tuple(getattr(model, "classes", ()))
    dataset = as_dataset(data, names)
    own = tuple(dataset.classes)
    if sorted(own) == sorted(names) and own != names:
        index = next(index for index, name in enumerate(own) if name != names[index])
        raise InputError(
            f"class {index} is {own[index]!r} in the data and {names[index]!r} in the model: reorder the labels, as in "
            "rw.datasets.Arrays(images, names_of_the_labels, classes=model.classes)"
        )
    return dataset


def as_method(name: str, method: Any, data: Dataset) -> Attribution:
    """Whatever `MethodLike` allows as an attribution; precomputed maps are matched to the images of `data`."""
    if isinstance(method, str) and ":" in method and not Path(method).exists():
        return as_function(name, named(method, f"method {name!r}"))
    if isinstance(method, str) and not Path(method).suffix:
        built: Attribution = lookup("attributions", method).make()
        return built
    if isinstance(method, str | Path):
        method = PrecomputedMaps.load(method)
    if (
        isinstance(method, list | tuple)
        and method
        and all(isinstance(one, np.ndarray | torch.Tensor) for one in method)
    ):
        method = _stacked(name, method)
    if isinstance(method, np.ndarray | torch.Tensor):
        method = PrecomputedMaps(method)
    bridge = bridged(method)
    method = method if bridge is None else bridge
    if isinstance(method, PrecomputedMaps):
        return method.bound(name, data.ids)
    if not callable(method) or isinstance(method, type | torch.nn.Module):
        raise InputError(
            f"{name}: a {_described(method)} is not a method: give an attribution, a function (model, batch, key) -> "
            "maps, maps (n, h, w), or an object of Captum, zennit, pytorch-grad-cam or shap (docs/bridges.md)"
        )
    return as_function(name, method)


def _stacked(name: str, maps: Sequence[Any]) -> torch.Tensor:
    """A map per image, as one array."""
    shapes = {tuple(one.shape) for one in maps}
    if len(shapes) > 1:
        raise ShapeError(f"{name}: maps of several shapes, {' and '.join(map(str, sorted(shapes)))}: give one")
    return torch.stack([torch.as_tensor(one) for one in maps])


def _described(method: Any) -> str:
    return f"class {method.__name__}" if isinstance(method, type) else type(method).__name__


def as_imputers(imputers: Any, data: Dataset) -> dict[str, Imputer | GainRecipe]:
    named_imputers = imputers if isinstance(imputers, Mapping) else _named_imputers(imputers)
    if not named_imputers:
        raise InputError("imputers is empty: give at least one, such as 'linear'")
    check_names("imputer", named_imputers)
    return {name: as_imputer(imputer, data) for name, imputer in named_imputers.items()}


def _named_imputers(imputers: Any) -> dict[str, Any]:
    one = isinstance(imputers, str | GainRecipe) or callable(imputers) or not isinstance(imputers, Iterable)
    result: dict[str, Any] = {}
    for imputer in [imputers] if one else imputers:
        name = _imputer_name(imputer)
        if name in result:
            raise InputError(
                f"two imputers are named {name!r}: name them yourself, as in imputers={{'{name}': ..., 'other': ...}}"
            )
        result[name] = imputer
    return result


def as_imputer(imputer: Any, data: Dataset | None) -> Imputer | GainRecipe:
    """An object as it is; a name is looked up, and needs `data`."""
    if isinstance(imputer, GainRecipe):
        return imputer
    if not isinstance(imputer, str):
        if not callable(imputer):
            raise InputError(f"imputer {imputer!r}: give an imputer such as rw.NoisyLinear(), or its name")
        return imputer  # type: ignore[no-any-return]
    entry = lookup("imputers", imputer)
    try:
        built: Imputer = entry.make(data) if entry.needs_data else entry.make()
    except TypeError as error:
        raise InputError(f"imputer {imputer!r} needs options ({error}): give it as an object") from error
    return built


def as_units(units: Any) -> Units:
    """An object as it is; a name is looked up."""
    if isinstance(units, str):
        entry = lookup("units", units)
        if entry.required:
            raise InputError(f"units={units!r} needs {entry.required[0]}: give units={_UNIT_EXAMPLES[units]}")
        built: Units = entry.make()
        return built
    if not callable(units) or isinstance(units, type | np.ndarray | torch.Tensor):
        is_array = isinstance(units, np.ndarray | torch.Tensor)
        given = _described(units) if is_array or isinstance(units, type) else repr(units)
        cure = "wrap labels in rw.FeatureMask(labels)" if is_array else "give 'pixels', 'tokens' or rw.Patches(16)"
        raise InputError(f"units={given}: {cure}")
    return units  # type: ignore[no-any-return]


_UNIT_EXAMPLES = {
    "patches": "rw.Patches(16)",
    "superpixels": "rw.Superpixels(50)",
    "feature-mask": "rw.FeatureMask(labels)",
}


def _imputer_name(imputer: Any) -> str:
    """The registry's name for what is in the registry, else the object's own."""
    if isinstance(imputer, str):
        return imputer
    if isinstance(imputer, GainRecipe):
        return "gain"
    for name, entry in REGISTRY["imputers"].items():
        if entry.make is type(imputer):
            return name
    return str(getattr(imputer, "__name__", type(imputer).__name__))
