"""The two networks of GAIN: a generator that paints images with holes, a discriminator that looks for the holes."""

from collections.abc import Mapping
from typing import TypeVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, relu
from torch.nn.utils.parametrizations import spectral_norm

Module = TypeVar("Module", bound=nn.Module)


@final
class Generator(nn.Module):
    """Images with noise in their holes, minus the mean image ► residual network ► tanh, plus the mean image.

    `noise` is the deviation of that noise. Whole images are painted; whoever calls takes the holes.
    """

    mean: Tensor
    noise: Tensor

    def __init__(self, mean: Tensor, width: int, blocks: int, noise: float):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("noise", torch.tensor([noise]))
        self.network = ResidualNetwork(len(mean) + 1, len(mean), width, blocks)

    def forward(self, images: Tensor, removed: Tensor, field: Tensor) -> Tensor:
        """`removed` is `(n, 1, h, w)`; `field` holds standard normal numbers, as many as the images."""
        seen = torch.where(removed, self.noise * field, images - self.mean)
        return self.mean + torch.tanh(self.network(torch.cat([seen, removed.to(seen.dtype)], dim=1)))


@final
class Discriminator(nn.Module):
    """Filled images, minus the mean image, and a hint ► residual network ► per pixel the logit of "was removed"."""

    def __init__(self, channels: int, width: int, blocks: int):
        super().__init__()
        self.network = ResidualNetwork(channels + 1, 1, width, blocks)

    def forward(self, centerd: Tensor, hint: Tensor) -> Tensor:
        return self.network(torch.cat([centerd, hint], dim=1))  # type: ignore[no-any-return]


@final
class ResidualNetwork(nn.Module):
    """7×7 to `width` ► one halving 3×3 to twice that ► `blocks` residual blocks ► doubled again ► 7×7.

    Any size of image, down to one pixel: the doubling meets the size that was halved.
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
        wide = interpolate(relu(inner), size=inputs.shape[-2:], mode="nearest")
        return self.last(relu(self.up(wide)))  # type: ignore[no-any-return]


@final
class Block(nn.Module):
    """Two 3×3 convolutions beside a shortcut, activated before each (arXiv:1603.05027)."""

    def __init__(self, width: int):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(relu(self.conv1(relu(x))))  # type: ignore[no-any-return]


def spectrally_normalized(network: Module) -> Module:
    """Every convolution is divided by its largest singular value (arXiv:1802.05957), in place."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            spectral_norm(module)
    return network


def generator_of(state: Mapping[str, Tensor]) -> Generator:
    """In eval mode, from its plain weights, whose shapes tell its sizes; nothing is drawn to initialize it."""
    blocks = len({name.split(".")[2] for name in state if name.startswith("network.blocks.")})
    with torch.device("meta"):
        generator = Generator(torch.empty(state["mean"].shape), len(state["network.first.bias"]), blocks, 0.0)
    generator.load_state_dict(state, assign=True)
    return generator.eval()


def plain(generator: Generator) -> Generator:
    """A copy whose weights are those that the normalized generator, which is put into eval mode, multiplies with.

    Built anew: a deep copy shares its classes with the original, which would lose its normalization with it.
    """
    state = {"mean": generator.mean, "noise": generator.noise}
    for name, module in generator.eval().named_modules():
        if isinstance(module, nn.Conv2d) and module.bias is not None:
            state |= {f"{name}.weight": module.weight, f"{name}.bias": module.bias}
    return generator_of({name: tensor.detach().clone() for name, tensor in state.items()})
