"""Residual networks: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016 (arXiv:1512.03385).

`resnet18` and `resnet50` have the state-dict keys and shapes of torchvision, `cifar_resnet` those of the common
CIFAR-10 checkpoints, so that pretrained weights load. No ReLU is shared or in place, so that hooks see each of them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, final, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from roadworthy.core.errors import InputError, RangeError
from roadworthy.models.sizes import check_positive

Stem = Literal["imagenet", "cifar"]
ModuleMaker = Callable[[int, int, int], nn.Module]
"""(channels, width, stride) -> a block or a shortcut"""


def resnet18(classes: int = 1000, stem: Stem = "imagenet", width: int = 64, channels: int = 3) -> "ResNet":
    """Basic blocks, (2, 2, 2, 2) of them (He et al., table 1)."""
    return ResNet(Basic, 1, (2, 2, 2, 2), classes, stem, width, channels)


def resnet50(classes: int = 1000, stem: Stem = "imagenet", width: int = 64, channels: int = 3) -> "ResNet":
    """Bottleneck blocks, (3, 4, 6, 3) of them (He et al., table 1); the stride is in the 3×3 convolution."""
    return ResNet(Bottleneck, Bottleneck.expansion, (3, 4, 6, 3), classes, stem, width, channels)


def cifar_resnet(depth: int = 20, classes: int = 10, width: int = 16, channels: int = 3) -> "CifarResNet":
    """ResNet-20, 32, 44, 56 … for small images: three stages of (depth − 2)/6 blocks, option A (He et al., 4.2)."""
    if depth < 8 or (depth - 2) % 6:
        raise RangeError(f"depth={depth}: a CIFAR ResNet has depth 6n+2, such as 20, 32, 44 or 56")
    return CifarResNet((depth - 2) // 6, classes, width, channels)


@final
class ResNet(nn.Module):
    """Stem ► four stages, all but the first halving the image and doubling the width ► mean over pixels ► classes.

    The stem "imagenet" reduces the image by 4 (7×7 with stride 2, max-pooling); "cifar" keeps its size (3×3).
    """

    def __init__(
        self,
        block: ModuleMaker,
        expansion: int,
        depths: Sequence[int],
        classes: int,
        stem: Stem,
        width: int,
        channels: int,
    ):
        super().__init__()
        check_positive(classes=classes, width=width, channels=channels)
        self.conv1, self.maxpool = _stem(stem, channels, width)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.layer1 = _stage(block, depths[0], width, width, 1, expansion)
        self.layer2 = _stage(block, depths[1], expansion * width, 2 * width, 2, expansion)
        self.layer3 = _stage(block, depths[2], expansion * 2 * width, 4 * width, 2, expansion)
        self.layer4 = _stage(block, depths[3], expansion * 4 * width, 8 * width, 2, expansion)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(expansion * 8 * width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(inputs))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))  # type: ignore[no-any-return]


@final
class Basic(nn.Module):
    """Two 3×3 convolutions with a shortcut (He et al., figure 5 left)."""

    def __init__(self, channels: int, width: int, stride: int, shortcut: ModuleMaker | None = None):
        super().__init__()
        self.conv1 = Conv3x3(channels, width, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = Conv3x3(width, width)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = (shortcut or _projection)(channels, width, stride)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        residual = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(residual + self.downsample(x))  # type: ignore[no-any-return]


@final
class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions with a shortcut; the output is four times as wide (He et al., figure 5 right)."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        wide = self.expansion * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = Conv3x3(width, width, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU()
        self.conv3 = nn.Conv2d(width, wide, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(wide)
        self.downsample = _projection(channels, wide, stride)
        self.relu3 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        residual = self.relu1(self.bn1(self.conv1(x)))
        residual = self.relu2(self.bn2(self.conv2(residual)))
        residual = self.bn3(self.conv3(residual))
        return self.relu3(residual + self.downsample(x))  # type: ignore[no-any-return]


@final
class CifarResNet(nn.Module):
    """3×3 convolution ► three stages of `blocks`, of width w, 2w, 4w ► mean over pixels ► classes."""

    def __init__(self, blocks: int, classes: int, width: int, channels: int):
        super().__init__()
        check_positive(classes=classes, width=width, channels=channels)
        self.conv1 = Conv3x3(channels, width)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        block = partial(Basic, shortcut=_subsampled)
        self.layer1 = _stage(block, blocks, width, width, 1)
        self.layer2 = _stage(block, blocks, width, 2 * width, 2)
        self.layer3 = _stage(block, blocks, 2 * width, 4 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(4 * width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(inputs)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(self.avgpool(x).flatten(1))  # type: ignore[no-any-return]


@final
class Subsampled(nn.Module):
    """Option A: every `stride`-th pixel and `extra` zero channels, half before, half after (He et al., 3.3, 4.1)."""

    def __init__(self, extra: int, stride: int):
        super().__init__()
        self.before, self.after = extra // 2, extra - extra // 2
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 1 and not self.before + self.after:
            return x  # F.pad would copy it
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))


def _stem(stem: Stem, channels: int, width: int) -> tuple[nn.Conv2d, nn.Module]:
    if stem == "imagenet":
        return nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False), nn.MaxPool2d(3, stride=2, padding=1)
    if stem == "cifar":
        return Conv3x3(channels, width), nn.Identity()
    raise InputError(f"stem={stem!r}: choose one of {', '.join(get_args(Stem))}")


def _stage(
    block: ModuleMaker, blocks: int, channels: int, width: int, stride: int, expansion: int = 1
) -> nn.Sequential:
    rest = [block(expansion * width, width, 1) for _ in range(blocks - 1)]
    return nn.Sequential(block(channels, width, stride), *rest)


def _projection(channels: int, out: int, stride: int) -> nn.Sequential:
    """Option B: a 1×1 convolution if the shape changes, else an empty Sequential, which has no keys."""
    if stride == 1 and channels == out:
        return nn.Sequential()
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))


def _subsampled(channels: int, out: int, stride: int) -> Subsampled:
    return Subsampled(out - channels, stride)


@final
class Conv3x3(nn.Conv2d):
    """A 3×3 convolution with padding, and without what it multiplies by padding where the input is tiny.

    Of 1×1 pixels only the middle of the kernel meets an input. So on at most 2×2 pixels the convolution is one matrix,
    of a ninth to four ninths of the multiplications. The last two stages of a `resnet18` are so small for 32×32 images.
    """

    def __init__(self, channels: int, out: int, stride: int = 1):
        super().__init__(channels, out, 3, stride=stride, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        if self.bias is not None or height > 2 or width > 2:  # a fused batch normalization adds a bias
            return super().forward(x)
        rows, columns = range(0, height, self.stride[0]), range(0, width, self.stride[1])
        kernel = self.weight.permute(0, 2, 3, 1)  # as it lies in memory in channels_last: what follows copies it once
        parts = [kernel[:, 1 - i : 1 - i + height, 1 - j : 1 - j + width] for i in rows for j in columns]
        matrix = torch.stack(parts).flatten(2).flatten(0, 1) if height * width > 1 else kernel[:, 1, 1]
        pixels = F.linear(x.permute(0, 2, 3, 1).flatten(1), matrix)
        return pixels.view(len(x), len(rows), len(columns), -1).permute(0, 3, 1, 2)
