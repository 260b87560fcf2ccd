"""The one optimiser loop: a `Recipe` says how, a function of the epoch gives the batches, a `Key` the randomness.

The same network, batches, recipe and key give the same weights; torch's global generator is left as it was found.
A network is initialised by whoever makes it: `with key.fold("init").torch_rng(): network = small_cnn()`.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from roadworthy.errors import InputError, ModelError, RangeError, ShapeError
from roadworthy.keys import Key

EpochBatches = Callable[[int], Iterable[tuple[Tensor, Tensor]]]
"""epoch -> the (inputs, targets) of that epoch"""
Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs, targets) -> the mean loss of a batch, a scalar"""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train. Epochs count from 0.

    "constant" keeps `lr`; "cosine" lets it fall to 0 over the epochs (arXiv:1608.03983, without restarts); "step"
    multiplies it by `gamma` from each of the `milestones` on. `momentum` is that of "sgd"; "adam" (arXiv:1412.6980)
    has its own. `batch_size` is for whoever makes the batches.
    """

    epochs: int
    batch_size: int = 64
    lr: float = 1e-3
    optimiser: Literal["adam", "sgd"] = "adam"
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine", "step"] = "constant"
    milestones: tuple[int, ...] = ()
    gamma: float = 0.1

    def __post_init__(self) -> None:
        _check_range("epochs", self.epochs, _counts(self.epochs), "train for 1, 2, 3 …")
        _check_range("batch_size", self.batch_size, _counts(self.batch_size), "a batch holds 1, 2, 3 … images")
        _check_range("lr", self.lr, 0 < self.lr < math.inf, "the learning rate must be above 0 and finite")
        _check_range("momentum", self.momentum, 0 <= self.momentum < 1, "it must lie in [0, 1)")
        _check_range("weight_decay", self.weight_decay, 0 <= self.weight_decay < math.inf, "it must be 0 or above")
        _check_range("gamma", self.gamma, 0 < self.gamma <= 1, "it must lie in (0, 1]")
        _check_name("optimiser", self.optimiser, OPTIMISERS)
        _check_name("schedule", self.schedule, SCHEDULES)
        _check_milestones(self)

    def lr_at(self, epoch: int) -> float:
        """The learning rate of all steps of `epoch`."""
        return self.lr * SCHEDULES[self.schedule](self, epoch)


SCHEDULES: dict[str, Callable[[Recipe, int], float]] = {
    "constant": lambda recipe, epoch: 1.0,
    "cosine": lambda recipe, epoch: (1 + math.cos(math.pi * epoch / recipe.epochs)) / 2,
    "step": lambda recipe, epoch: recipe.gamma ** sum(epoch >= milestone for milestone in recipe.milestones),
}

OPTIMISERS: dict[str, Callable[[list[nn.Parameter], Recipe], torch.optim.Optimizer]] = {
    "adam": lambda parameters, recipe: torch.optim.Adam(parameters, lr=recipe.lr, weight_decay=recipe.weight_decay),
    "sgd": lambda parameters, recipe: torch.optim.SGD(
        parameters, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    ),
}


@dataclass(frozen=True)
class EpochRecord:
    epoch: int
    loss: float
    """mean over the images, each under the weights of its own step"""
    lr: float
    images: int


def fit(
    network: nn.Module,
    epoch_batches: EpochBatches,
    recipe: Recipe,
    *,
    key: Key,
    loss: Loss = cross_entropy,
    on_epoch: Callable[[EpochRecord], object] | None = None,
) -> list[EpochRecord]:
    """Train `network` in place, on the device of its parameters; the mode (train or eval) of each module is put back.

    What is random inside an epoch (dropout, batches drawn with torch) depends on `key` and the epoch alone.
    `on_epoch` may look at the network, also in eval mode, and draw random numbers: training does not notice.
    """
    parameters = _trainable(network)
    optimiser = OPTIMISERS[recipe.optimiser](parameters, recipe)
    records = []
    with _modes_kept(network):
        for epoch in range(recipe.epochs):
            network.train()
            _set_lr(optimiser, recipe.lr_at(epoch))
            with key.fold("epoch", epoch).torch_rng():
                mean, images = _train_epoch(
                    network, _placed(epoch_batches(epoch), parameters[0]), optimiser, loss, epoch
                )
            records.append(EpochRecord(epoch, mean, recipe.lr_at(epoch), images))
            if on_epoch is not None:
                on_epoch(records[-1])
    return records


def shuffled(images: Tensor, labels: Tensor, batch_size: int, key: Key) -> EpochBatches:
    """Every image once per epoch, in an order that depends on `key` and the epoch only; the last batch may be small."""
    if len(images) != len(labels) or not len(images):
        raise ShapeError(f"{len(images)} images and {len(labels)} labels: training needs one label per image, and some")
    _check_range("batch_size", batch_size, _counts(batch_size), "a batch holds 1, 2, 3 … images")

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.from_numpy(key.fold("shuffle", epoch).permutation(0, len(images)))
        for chosen in torch.split(order, batch_size):
            yield images[chosen], labels[chosen]

    return batches


def _train_epoch(
    network: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    optimiser: torch.optim.Optimizer,
    loss: Loss,
    epoch: int,
) -> tuple[float, int]:
    total, images = 0.0, 0
    for step, (inputs, targets) in enumerate(batches):
        optimiser.zero_grad()
        value = loss(network(inputs), targets)
        total += _finite(value, epoch, step) * len(inputs)
        images += len(inputs)
        value.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    optimiser.zero_grad()
    if not images:
        raise ShapeError(f"epoch {epoch} has no batch: epoch_batches({epoch}) must give (inputs, targets) each time")
    return total / images, images


def _finite(value: Tensor, epoch: int, step: int) -> float:
    number = value.item()
    if not math.isfinite(number):
        raise ModelError(
            f"the loss became {number} in epoch {epoch}, step {step}: lower the learning rate, "
            "and check that inputs and targets are finite"
        )
    return number


def _trainable(network: nn.Module) -> list[nn.Parameter]:
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    if not parameters:
        raise ModelError(f"{type(network).__name__} has no parameter to train: set requires_grad on some")
    return parameters


def _placed(batches: Iterable[tuple[Tensor, Tensor]], like: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    for inputs, targets in batches:
        yield inputs.to(like.device), targets.to(like.device)


def _set_lr(optimiser: torch.optim.Optimizer, lr: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = lr


@contextmanager
def _modes_kept(network: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in network.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _counts(value: float) -> bool:
    return value >= 1 and value % 1 == 0


def _check_range(name: str, value: object, fits: bool, cure: str) -> None:
    if not fits:
        raise RangeError(f"{name}={value}: {cure}")


def _check_name(field: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise InputError(f"{field}={name!r}: choose one of {', '.join(known)}")


def _check_milestones(recipe: Recipe) -> None:
    milestones = recipe.milestones
    rising = list(milestones) == sorted(set(milestones)) and all(milestone >= 1 for milestone in milestones)
    _check_range("milestones", milestones, rising, "give rising epochs from 1 on")
    if bool(milestones) != (recipe.schedule == "step"):
        raise InputError(
            f'schedule={recipe.schedule!r} with milestones={milestones}: "step" needs milestones, the others take none'
        )
