"""Training recipes: settings with their checks, learning-rate schedules and optimizers, and a few recipes by name."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

import torch
from torch import nn

from roadworthy.core.errors import InputError, RangeError


@final
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train a network. Epochs count from 0.

    `schedule`: "constant" keeps `lr`; "cosine" anneals it to 0 over the epochs (arXiv:1608.03983, without restarts);
    "step" multiplies it by `gamma` at each of the `milestones`. `momentum` is the momentum of "sgd" and the β₁ of
    "adam" (arXiv:1412.6980).

    `select`: which epoch's weights are kept. "validation" keeps the epoch with the best accuracy on a held-out
    fraction `validation` of the train images, "last" the last one. "best-on-test" selects on the test set, a leak in
    the paper's code, and is meant for comparison with it. Training stops after `patience` epochs without improvement;
    0 disables early stopping.

    `channels_last` trains with convolutions in that memory format, which is faster on most CPUs. It changes the last
    bits of the weights, and a network that calls `view` on its activations may refuse it. The trained network has the
    usual format again.

    `autocast="bfloat16"` computes convolutions and products in that precision (torch.autocast); weights stay in
    float32. A processor with instructions for it trains faster, another one is slowed down.

    `fit` itself uses neither `batch_size`, `select` nor `validation`: they are for the caller, who supplies the
    batches and the `measure`.
    """

    epochs: int
    batch_size: int = 64
    lr: float = 1e-3
    optimizer: Literal["adam", "sgd"] = "adam"
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine", "step"] = "constant"
    milestones: tuple[int, ...] = ()
    gamma: float = 0.1
    select: Literal["validation", "last", "best-on-test"] = "validation"
    validation: float = 0.1
    patience: int = 0
    channels_last: bool = False
    autocast: Literal["bfloat16"] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "milestones", tuple(self.milestones))
        check_positive_integer("epochs", self.epochs)
        check_positive_integer("batch_size", self.batch_size)
        check_range("lr", self.lr, 0 < self.lr < math.inf, "must be positive and finite")
        check_range("momentum", self.momentum, 0 <= self.momentum < 1, "must be in [0, 1)")
        check_range("weight_decay", self.weight_decay, 0 <= self.weight_decay < math.inf, "must be 0 or more")
        check_range("gamma", self.gamma, 0 < self.gamma <= 1, "must be in (0, 1]")
        _check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.autocast is not None:
            _check_choice("autocast", self.autocast, ("bfloat16",))
        _check_choice("schedule", self.schedule, SCHEDULES)
        _check_milestones(self)
        _check_choice("select", self.select, ("validation", "last", "best-on-test"))
        check_range("validation", self.validation, 0 < self.validation < 1, "must be a fraction in (0, 1), such as 0.1")
        valid = self.patience >= 0 and self.patience % 1 == 0
        check_range("patience", self.patience, valid, "must be a number of epochs, or 0 to disable early stopping")
        if self.patience and self.select == "last":
            raise InputError(
                f'patience={self.patience} with select="last": early stopping needs a selection criterion; '
                'use select="validation"'
            )

    def lr_at(self, epoch: int) -> float:
        """The learning rate of `epoch`, constant within it."""
        return self.lr * SCHEDULES[self.schedule](self, epoch)

    @property
    def spec(self) -> dict[str, Any]:
        """The fields, for ids. Those of LATER only where they are set: ids from before they were fields stay valid."""
        return {name: value for name, value in asdict(self).items() if name not in LATER or value}


LATER = ("channels_last", "autocast")
"""fields of a Recipe that came later"""


SCHEDULES: dict[str, Callable[[Recipe, int], float]] = {
    "constant": lambda recipe, epoch: 1.0,
    "cosine": lambda recipe, epoch: (1 + math.cos(math.pi * epoch / recipe.epochs)) / 2,
    "step": lambda recipe, epoch: recipe.gamma ** sum(epoch >= milestone for milestone in recipe.milestones),
}
"""(recipe, epoch) -> factor of the learning rate"""

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter], Recipe], torch.optim.Optimizer]] = {
    "adam": lambda parameters, recipe: torch.optim.Adam(
        parameters, lr=recipe.lr, betas=(recipe.momentum, 0.999), weight_decay=recipe.weight_decay, fused=True
    ),
    "sgd": lambda parameters, recipe: torch.optim.SGD(
        parameters, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    ),
}


def check_range(name: str, value: object, valid: bool, requirement: str) -> None:
    if not valid:
        raise RangeError(f"{name}={value}: {requirement}")


def check_positive_integer(name: str, value: float) -> None:
    check_range(name, value, value >= 1 and value % 1 == 0, "must be a positive integer")


def _check_choice(field: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise InputError(f"{field}={value!r}: choose one of {', '.join(choices)}")


def _check_milestones(recipe: Recipe) -> None:
    milestones = recipe.milestones
    increasing = list(milestones) == sorted(set(milestones)) and all(milestone >= 1 for milestone in milestones)
    check_range("milestones", milestones, increasing, "must be increasing epochs, the first at least 1")
    if bool(milestones) != (recipe.schedule == "step"):
        raise InputError(
            f'schedule={recipe.schedule!r} with milestones={milestones}: "step" needs milestones, the others take none'
        )


RECIPES: Mapping[str, Recipe] = {
    # The paper's, for a ResNet-18 and a ResNet-50; momentum and batch size are taken from the authors' code.
    "paper-cifar10": Recipe(epochs=40, batch_size=32, lr=0.01, optimizer="sgd", schedule="step", milestones=(25,)),
    "paper-food101": Recipe(
        epochs=40, batch_size=32, lr=0.01, optimizer="sgd", schedule="step", milestones=(10, 20, 30)
    ),
    # For a few thousand images and a narrow network on a CPU: minutes per model with "small", seconds with "tiny".
    "small": Recipe(epochs=12, batch_size=64, lr=3e-3, schedule="cosine"),
    "tiny": Recipe(epochs=4, batch_size=32, lr=5e-3, schedule="cosine"),
}
