"""A network small enough to be trained and explained hundreds of times on a laptop's CPU."""

from typing import final

from torch import Tensor, nn

from roadworthy.models.sizes import check_positive


def small_cnn(classes: int = 10, channels: int = 1, width: int = 16) -> "SmallCNN":
    """For 28×28 digits, or images of any other size."""
    return SmallCNN(classes, channels, width)


@final
class SmallCNN(nn.Module):
    """Three halving convolutions and one more ► mean over pixels ► classes.

    All convolutions, no pooling layer (Springenberg et al., "Striving for Simplicity", arXiv:1412.6806), with batch
    normalization (Ioffe and Szegedy, arXiv:1502.03167). The halving kernels are 4×4 with stride 2, so that each input
    pixel is read equally often: odd kernels leave a chequerboard in the gradient (Odena et al., Distill 2016).
    """

    def __init__(self, classes: int, channels: int, width: int):
        super().__init__()
        check_positive(classes=classes, channels=channels, width=width)
        self.features = nn.Sequential(
            *_halved(channels, width),
            *_halved(width, 2 * width),
            *_halved(2 * width, 4 * width),
            *_activated(nn.Conv2d(4 * width, 4 * width, 3, padding=1, bias=False)),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.fc(self.pool(self.features(inputs)).flatten(1))  # type: ignore[no-any-return]


def _halved(channels: int, out: int) -> list[nn.Module]:
    # Padding 2 lets even a single pixel through, and border pixels count as often as the others.
    return _activated(nn.Conv2d(channels, out, 4, stride=2, padding=2, bias=False))


def _activated(conv: nn.Conv2d) -> list[nn.Module]:
    return [conv, nn.BatchNorm2d(conv.out_channels), nn.ReLU()]


def mask_cnn(classes: int = 10, channels: int = 1, width: int = 16) -> nn.Sequential:
    """For masks of about 32×32: three halving convolutions whose answer keeps its place on a 4×4 grid ► classes.

    Where a hole lies may tell the class as well as its shape does; a mean over all pixels would forget it.
    """
    check_positive(classes=classes, channels=channels, width=width)
    return nn.Sequential(
        *_halved(channels, width),
        *_halved(width, 2 * width),
        *_halved(2 * width, 4 * width),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(16 * 4 * width, classes),
    )
