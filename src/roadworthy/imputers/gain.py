"""Generative adversarial imputation (GAIN, arXiv:1806.02920, in the convolutional form of arXiv:1905.09340)."""

import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from roadworthy.core.device import on_device
from roadworthy.core.errors import ShapeError, WeightsError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Removed
from roadworthy.imputers.gain_networks import Generator, generator_of
from roadworthy.imputers.noise import Noise

_PREFIX = "generator."


@on_device
@final
@dataclass(frozen=True, eq=False)
class Gain:
    """Imputes with a generator trained by `roadworthy gain train`, for images of one size.

    An image without kept pixels is generated from noise alone.
    """

    generator: Generator

    @classmethod
    def load(cls, weights: str | os.PathLike[str], device: str = "cpu") -> Self:
        """Read a weights file written by `roadworthy gain train`."""
        path = Path(weights)
        if not path.is_file():
            raise WeightsError(
                f"no GAIN at {path.absolute()}: train one with `roadworthy gain train PLAN --out {path}`"
            )
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise WeightsError(
                f"{path} cannot be read ({error}): give a safetensors file written by `roadworthy gain train`"
            ) from error
        try:
            return cls.of(tensors).to(device)
        except WeightsError as error:
            raise WeightsError(f"{path}: {error}") from error

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Self:
        """From the tensors of a weights file, whose shapes determine the network; other tensors are ignored."""
        weights = {name.removeprefix(_PREFIX): tensor for name, tensor in tensors.items() if name.startswith(_PREFIX)}
        try:
            generator = generator_of(weights)
        except (KeyError, RuntimeError, TypeError, IndexError) as error:
            raise WeightsError(
                f"not the weights of a GAIN ({error}): train one with `roadworthy gain train`"
            ) from error
        if not all(torch.isfinite(tensor).all() for tensor in weights.values()):
            raise WeightsError("some weights are infinite or NaN: train the GAIN again with a lower lr")
        return cls(generator)

    def tensors(self) -> dict[str, Tensor]:
        """The weights, as `of` expects them."""
        state = self.generator.state_dict()
        return {f"{_PREFIX}{name}": tensor.detach().cpu().contiguous() for name, tensor in state.items()}

    def to(self, device: torch.device | str) -> Self:
        """A copy that computes on `device`; imputed images are returned on the device of the input."""
        return type(self)(deepcopy(self.generator).to(device))

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        images = batch.images
        self._check_size(images)
        mask = removed[:, None].to(images.device)
        field = self._noise(batch, key).each(images.device)
        return torch.where(mask, self._generated(images, mask, field).to(images.device), images)

    def draw(self, batch: Batch, key: Key) -> None:
        """Draw the noise for these images and move it to their device, before they are imputed."""
        self._noise(batch, key)

    def _noise(self, batch: Batch, key: Key) -> Noise:
        return Noise.drawn(key, batch.ids, tuple(batch.images.shape[1:]), 1.0, batch.images.device)

    def _generated(self, images: Images, removed: Tensor, field: Tensor) -> Images:
        """On the CPU one image at a time: the order of summation in a convolution may depend on the batch size."""
        device = self.generator.mean.device
        images, removed, field = (tensor.to(device).contiguous() for tensor in (images, removed, field))
        with torch.no_grad():
            if device.type != "cpu":
                return self.generator(images, removed, field)  # type: ignore[no-any-return]
            rows = [slice(row, row + 1) for row in range(len(images))]
            return torch.cat([self.generator(images[row], removed[row], field[row]) for row in rows])

    def _check_size(self, images: Images) -> None:
        trained, given = tuple(self.generator.mean.shape), tuple(images.shape[1:])
        if trained != given:
            raise ShapeError(
                f"this GAIN was trained on images of (channels, height, width) {trained}, these are {given}: "
                "train one on images of this size with `roadworthy gain train`"
            )
