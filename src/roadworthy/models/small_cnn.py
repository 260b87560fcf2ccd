"""Networks small enough to be trained and explained hundreds of times on a CPU."""

from typing import final

from torch import Tensor, nn

from roadworthy.models.sizes import check_positive


def small_cnn(classes: int = 10, channels: int = 1, width: int = 16) -> "SmallCNN":
    """A small CNN for 28×28 digits, or images of any other size."""
    return SmallCNN(classes, channels, width)


@final
class SmallCNN(nn.Module):
    """Three convolutions with stride 2 and one with stride 1 ► mean over pixels ► classes.

    All convolutions, no pooling layer (Springenberg et al., "Striving for Simplicity", arXiv:1412.6806), with batch
    normalization (Ioffe and Szegedy, arXiv:1502.03167). Kernels with stride 2 are 4×4, so that each input pixel is read
    equally often: odd kernels cause checkerboard artifacts in the gradient (Odena et al., Distill 2016).
    """

    def __init__(self, classes: int, channels: int, width: int):
        super().__init__()
        check_positive(classes=classes, channels=channels, width=width)
        self.features = nn.Sequential(
            *_strided(channels, width),
            *_strided(width, 2 * width),
            *_strided(2 * width, 4 * width),
            *_activated(nn.Conv2d(4 * width, 4 * width, 3, padding=1, bias=False)),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.fc(self.pool(self.features(inputs)).flatten(1))  # type: ignore[no-any-return]


def _strided(channels: int, out: int) -> list[nn.Module]:
    # With padding 2 even a single pixel is valid input, and border pixels are read as often as the others.
    return _activated(nn.Conv2d(channels, out, 4, stride=2, padding=2, bias=False))


def _activated(conv: nn.Conv2d) -> list[nn.Module]:
    return [conv, nn.BatchNorm2d(conv.out_channels), nn.ReLU()]


def mask_cnn(classes: int = 10, channels: int = 1, width: int = 16) -> nn.Sequential:
    """For masks of about 32×32: three convolutions with stride 2 ► 4×4 grid ► classes.

    The grid preserves where pixels were removed, which a mean over all pixels would discard; position may reveal the
    class as well as shape.
    """
    check_positive(classes=classes, channels=channels, width=width)
    return nn.Sequential(
        *_strided(channels, width),
        *_strided(width, 2 * width),
        *_strided(2 * width, 4 * width),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(16 * 4 * width, classes),
    )
