"""The one optimizer loop: a `Recipe` says how, a function of the epoch gives the batches, a `Key` the randomness.

The same network, batches, recipe and key give the same weights; torch's global generator is left as it was found.
A network is initialized by whoever makes it: `with key.fold("init").torch_rng(): network = small_cnn()`.
What is random in an epoch depends on key and epoch alone, so a training that was stopped goes on from its `Checkpoint`
and ends with the weights of an unbroken one.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from roadworthy.core.errors import InputError, ModelError, RangeError, ShapeError
from roadworthy.core.random import Key

EpochBatches = Callable[[int], Iterable[tuple[Tensor, Tensor]]]
"""epoch -> the (inputs, targets) of that epoch"""
Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs, targets) -> the mean loss of a batch, a scalar"""
Checkpoint = Mapping[str, Tensor]
"""A training in hand after some epochs: weights, those of the best epoch, state of the optimizer, the curve so far."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train. Epochs count from 0.

    "constant" keeps `lr`; "cosine" lets it fall to 0 over the epochs (arXiv:1608.03983, without restarts); "step"
    multiplies it by `gamma` from each of the `milestones` on. `momentum` is that of "sgd", and the β₁ of "adam"
    (arXiv:1412.6980). `batch_size` is for whoever makes the batches.

    `select` says which epoch's weights are taken: the one that is best on a share `validation` of the train images,
    which is then not learned from, or the "last"; "best-on-test" is a leak that the paper's code has, for comparison
    with it. `select` and `validation` are for whoever gives `fit` a `measure`. After `patience` epochs without a new
    best the training stops; 0 means never.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "milestones", tuple(self.milestones))
        _check_range("epochs", self.epochs, _counts(self.epochs), "train for 1, 2, 3 …")
        _check_range("batch_size", self.batch_size, _counts(self.batch_size), "a batch holds 1, 2, 3 … images")
        _check_range("lr", self.lr, 0 < self.lr < math.inf, "the learning rate must be above 0 and finite")
        _check_range("momentum", self.momentum, 0 <= self.momentum < 1, "it must lie in [0, 1)")
        _check_range("weight_decay", self.weight_decay, 0 <= self.weight_decay < math.inf, "it must be 0 or above")
        _check_range("gamma", self.gamma, 0 < self.gamma <= 1, "it must lie in (0, 1]")
        _check_name("optimizer", self.optimizer, OPTIMIZERS)
        _check_name("schedule", self.schedule, SCHEDULES)
        _check_milestones(self)
        _check_name("select", self.select, ("validation", "last", "best-on-test"))
        _check_range("validation", self.validation, 0 < self.validation < 1, "a share of the images, such as 0.1")
        _check_range("patience", self.patience, _counts(self.patience + 1), "wait 1, 2, 3 … epochs, or 0 for no end")
        if self.patience and self.select == "last":
            raise InputError(
                f'patience={self.patience} with select="last": waiting for a best needs one to be selected'
            )

    def lr_at(self, epoch: int) -> float:
        """The learning rate of all steps of `epoch`."""
        return self.lr * SCHEDULES[self.schedule](self, epoch)


SCHEDULES: dict[str, Callable[[Recipe, int], float]] = {
    "constant": lambda recipe, epoch: 1.0,
    "cosine": lambda recipe, epoch: (1 + math.cos(math.pi * epoch / recipe.epochs)) / 2,
    "step": lambda recipe, epoch: recipe.gamma ** sum(epoch >= milestone for milestone in recipe.milestones),
}

OPTIMIZERS: dict[str, Callable[[list[nn.Parameter], Recipe], torch.optim.Optimizer]] = {
    "adam": lambda parameters, recipe: torch.optim.Adam(
        parameters, lr=recipe.lr, betas=(recipe.momentum, 0.999), weight_decay=recipe.weight_decay
    ),
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
    measure: float = math.nan
    """what `measure` said after the epoch"""


def chosen(records: Iterable[EpochRecord]) -> int:
    """The epoch whose weights are taken: the one with the highest measure, the last of equals."""
    return max(
        records, key=lambda record: (record.measure if record.measure == record.measure else 0, record.epoch)
    ).epoch


def curve(records: Iterable[EpochRecord]) -> Tensor:
    """float64, a row per epoch: epoch, loss, lr, images, measure."""
    return torch.tensor([astuple(record) for record in records], dtype=torch.float64)


def fit(
    network: nn.Module,
    epoch_batches: EpochBatches,
    recipe: Recipe,
    *,
    key: Key,
    loss: Loss = cross_entropy,
    on_epoch: Callable[[EpochRecord], object] | None = None,
    measure: Callable[[], float] | None = None,
    start: Checkpoint | None = None,
    on_checkpoint: Callable[[Checkpoint], object] | None = None,
) -> list[EpochRecord]:
    """Train `network` in place, on the device of its parameters; the mode (train or eval) of each module is put back.

    What is random inside an epoch (dropout, batches drawn with torch) depends on `key` and the epoch alone.
    `on_epoch` may look at the network, also in eval mode, and draw random numbers: training does not notice.
    `measure` looks at the network after each epoch, higher is better: the weights of the `chosen` epoch are taken.
    `on_checkpoint` is given all it takes to go on after the epoch; from there on `start` repeats an unbroken training.
    """
    parameters = _trainable(network)
    optimizer = OPTIMIZERS[recipe.optimizer](parameters, recipe)
    records = _restore(start, network, optimizer) if start else []
    best = _tensors("best.", start) if start else {}
    with _modes_kept(network):
        for epoch in range(len(records), recipe.epochs):
            if _waited_long_enough(records, recipe):
                break
            network.train()
            _set_lr(optimizer, recipe.lr_at(epoch))
            with key.fold("epoch", epoch).torch_rng():
                mean, images = _train_epoch(
                    network, _placed(epoch_batches(epoch), parameters[0]), optimizer, loss, epoch
                )
            value = math.nan if measure is None else measure()
            records.append(EpochRecord(epoch, mean, recipe.lr_at(epoch), images, value))
            if measure is not None and chosen(records) == epoch:
                best = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
            if on_epoch is not None:
                on_epoch(records[-1])
            if on_checkpoint is not None:
                on_checkpoint(_checkpoint(network, optimizer, best, records))
    if best:
        network.load_state_dict(best)
    return records


def _waited_long_enough(records: list[EpochRecord], recipe: Recipe) -> bool:
    """Equals are no improvement: what counts is when the highest measure was first seen."""
    if not recipe.patience or not records:
        return False
    first = max(records, key=lambda record: record.measure)  # of equals, max takes the first
    return records[-1].epoch - first.epoch >= recipe.patience


def _checkpoint(
    network: nn.Module, optimizer: torch.optim.Optimizer, best: Checkpoint, records: list[EpochRecord]
) -> Checkpoint:
    """Copies, so that training may go on while they are written."""
    state = optimizer.state_dict()["state"]
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    tensors |= {
        f"optimizer.{place}.{name}": value
        for place, values in state.items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()} | {"curve": curve(records)}


def _restore(start: Checkpoint, network: nn.Module, optimizer: torch.optim.Optimizer) -> list[EpochRecord]:
    network.load_state_dict(_tensors("network.", start))
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _tensors("optimizer.", start).items():
        place, _, word = name.partition(".")
        state.setdefault(int(place), {})[word] = tensor.clone()
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return [EpochRecord(int(row[0]), row[1], row[2], int(row[3]), row[4]) for row in start["curve"].tolist()]


def _tensors(prefix: str, checkpoint: Checkpoint) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in checkpoint.items() if name.startswith(prefix)}


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
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    epoch: int,
) -> tuple[float, int]:
    total, images = 0.0, 0
    for step, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        value = loss(network(inputs), targets)
        total += _finite(value, epoch, step) * len(inputs)
        images += len(inputs)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    optimizer.zero_grad()
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


def _set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
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
