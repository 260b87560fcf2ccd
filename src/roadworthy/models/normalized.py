"""Classifiers that take images in [0, 1] and normalize them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from roadworthy.core.errors import ModelError, RangeError, ShapeError
from roadworthy.core.types import Images, VisionTransformer
from roadworthy.models.modules import modules_behind
from roadworthy.models.vision_transformers import transformer_of


class Logits(nn.Module):
    """A Module or callable whose output is checked to be logits `(n, classes)`, with as many classes every time.

    The input is converted to the dtype of the network's weights; logits are float32 at least. Modules that a callable
    uses are kept in `behind`, so that mode, device and weights are the model's own.
    """

    def __init__(self, network: Any):
        super().__init__()
        self.network = network
        self.behind = nn.ModuleList([] if isinstance(network, nn.Module) else modules_behind(network))
        self._classes = 0

    def forward(self, inputs: Tensor) -> Tensor:
        output = self.network(inputs.to(self.dtype or inputs.dtype))
        logits = _logits(output)
        if logits is None:
            raise ModelError(
                f"the model returned {_described(output)}: return logits (n, classes), or an object or dict with logits"
            )
        if logits.ndim != 2 or len(logits) != len(inputs) or logits.shape[1] < 2:
            raise ModelError(
                f"the model returned shape {tuple(logits.shape)} for {len(inputs)} images: return one row of logits "
                "per image, for at least two classes (for a single sigmoid output z return stack([0·z, z], 1))"
            )
        if self._classes not in (0, logits.shape[1]):
            raise ModelError(
                f"the model returned {logits.shape[1]} classes after {self._classes} for other images: "
                "return one logit per class for every image"
            )
        self._classes = logits.shape[1]
        return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits

    @property
    def dtype(self) -> torch.dtype | None:
        """Of the weights; None for a network without any."""
        return next((parameter.dtype for parameter in self.parameters() if parameter.is_floating_point()), None)


def _logits(output: Any) -> Tensor | None:
    """The tensor itself, `.logits`, the entry "logits" or the only one that can be logits."""
    if isinstance(output, Mapping):
        tables = [value for value in output.values() if isinstance(value, Tensor) and value.ndim == 2]
        output = output.get("logits", tables[0] if len(tables) == 1 else None)
    elif isinstance(output, tuple) and len(output) == 1:
        (output,) = output
    logits = getattr(output, "logits", output)
    return logits if isinstance(logits, Tensor) else None


def _described(output: Any) -> str:
    keys = f" with {', '.join(map(str, output))}" if isinstance(output, Mapping) else ""
    return f"{type(output).__name__}{keys}"


class Normalized(nn.Module):
    """A classifier that normalizes its own input: images in [0, 1] ► (x − mean)/std ► network ► logits.

    Attributions with a baseline or noise work on `network`, in the normalized space.
    """

    mean: Tensor
    std: Tensor
    outputs: str = "logits"
    """what the network returns; `models/outputs.py` finds out"""
    autocast: torch.dtype | None = None
    """precision of predictions, lower than that of the weights; see `models.prediction.accelerated`"""
    channels_last: bool = False
    """memory format of predictions"""

    def __init__(self, network: Any, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0):
        super().__init__()
        if np.any(np.asarray(std) <= 0):
            raise RangeError(f"std {std}: the standard deviation of every channel must be above 0")
        self.network = Logits(network)
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).reshape(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).reshape(-1, 1, 1), persistent=False)

    def normalize(self, images: Images) -> Tensor:
        if len(self.mean) not in (1, images.shape[1]):
            raise ShapeError(f"the model normalizes {len(self.mean)} channels, the images have {images.shape[1]}")
        return (images - self.mean.to(images.device)) / self.std.to(images.device)

    def forward(self, images: Images) -> Tensor:
        return self.network(self.normalize(images))  # type: ignore[no-any-return]

    @property
    def transformer(self) -> VisionTransformer | None:
        """The network as a vision transformer, for methods and removals that work on its tokens; else None."""
        return transformer_of(self, self.networks)

    @property
    def networks(self) -> list[nn.Module]:
        """The user's network, or those that the user's function uses."""
        network = self.network.network if isinstance(self.network, Logits) else self.network
        return [network] if isinstance(network, nn.Module) else list(self.network.behind)

    @property
    def device(self) -> torch.device:
        """The device of the parameters; the CPU for a model without parameters."""
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))


def as_model(model: Any) -> Normalized:
    """The model as a `Normalized`; a plain Module or callable is wrapped without normalization."""
    if isinstance(model, Normalized):
        return model
    if not callable(model) or isinstance(model, type):
        name = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise ModelError(f"the model is {name}: give a torch Module or a callable images -> logits")
    return Normalized(model)
