"""The networks of GAIN: a generator that imputes removed pixels, a discriminator that detects imputed ones."""

from collections.abc import Mapping
from typing import TypeVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, relu
from torch.nn.utils.parametrizations import spectral_norm

Module = TypeVar("Module", bound=nn.Module)


@final
class Generator(nn.Module):
    """Images minus the mean image, with noise at removed pixels ► residual network ► tanh ► plus the mean image.

    `noise` is the standard deviation of that noise. The output is a whole image; the caller uses the removed pixels.
    """

    mean: Tensor
    noise: Tensor

    def __init__(self, mean: Tensor, width: int, blocks: int, noise: float):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("noise", torch.tensor([noise]))
        self.network = ResidualNetwork(len(mean) + 1, len(mean), width, blocks)

    def forward(self, images: Tensor, removed: Tensor, field: Tensor) -> Tensor:
        """`removed` is `(n, 1, h, w)`; `field` is standard normal, of the shape of `images`."""
        visible = torch.where(removed, self.noise * field, images - self.mean)
        return self.mean + torch.tanh(self.network(torch.cat([visible, removed.to(visible.dtype)], dim=1)))


@final
class Discriminator(nn.Module):
    """Imputed images minus the mean image, and a hint ► residual network ► logits of "was removed" per pixel."""

    def __init__(self, channels: int, width: int, blocks: int):
        super().__init__()
        self.network = ResidualNetwork(channels + 1, 1, width, blocks)

    def forward(self, centered: Tensor, hint: Tensor) -> Tensor:
        return self.network(torch.cat([centered, hint], dim=1))  # type: ignore[no-any-return]


@final
class ResidualNetwork(nn.Module):
    """7×7 to `width` ► 3×3 with stride 2 to 2·`width` ► `blocks` residual blocks ► upsampled, 3×3 to `width` ► 7×7.

    Works for images of any size, down to one pixel.
    """

    def __init__(self, channels: int, out: int, width: int, blocks: int):
        super().__init__()
        self.first = nn.Conv2d(channels, width, 7, padding=3)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(Block(2 * width) for _ in range(blocks)))
        self.up = nn.Conv2d(2 * width, width, 3, padding=1)
        self.last = nn.Conv2d(width, out, 7, padding=3)

    def forward(self, inputs: Tensor) -> Tensor:
        inner = self.blocks(self.down(relu(self.first(inputs))))
        upsampled = interpolate(relu(inner), size=inputs.shape[-2:], mode="nearest")
        return self.last(relu(self.up(upsampled)))  # type: ignore[no-any-return]


@final
class Block(nn.Module):
    """A residual block of two 3×3 convolutions with pre-activation (arXiv:1603.05027)."""

    def __init__(self, width: int):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(relu(self.conv1(relu(x))))  # type: ignore[no-any-return]


def spectrally_normalized(network: Module) -> Module:
    """Divide every convolution by its largest singular value (arXiv:1802.05957), in place."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            spectral_norm(module)
    return network


def generator_of(state: Mapping[str, Tensor]) -> Generator:
    """A generator in eval mode from its plain weights, whose shapes determine its size; draws no random numbers."""
    blocks = len({name.split(".")[2] for name in state if name.startswith("network.blocks.")})
    with torch.device("meta"):
        generator = Generator(torch.empty(state["mean"].shape), len(state["network.first.bias"]), blocks, 0.0)
    generator.load_state_dict(state, assign=True)
    return generator.eval()


def plain(generator: Generator) -> Generator:
    """A copy with the effective weights of a spectrally normalized generator, which is put into eval mode.

    Rebuilt from weights: removing the normalization from a deep copy would also remove it from the original, because
    the two share their parametrized classes.
    """
    state = {"mean": generator.mean, "noise": generator.noise}
    for name, module in generator.eval().named_modules():
        if isinstance(module, nn.Conv2d) and module.bias is not None:
            state |= {f"{name}.weight": module.weight, f"{name}.bias": module.bias}
    return generator_of({name: tensor.detach().clone() for name, tensor in state.items()})
