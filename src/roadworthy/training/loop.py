"""The training loop shared by classifiers, GAIN and mask detectors.

The same network, batches, recipe and key give the same weights, and torch's global generator is left unchanged. The
caller initializes the network: `with key.fold("init").torch_rng(): network = small_cnn()`. Randomness in an epoch
depends only on key and epoch, so training resumed from a `Checkpoint` ends with the weights of an uninterrupted run.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from roadworthy.core.errors import ModelError, ShapeError
from roadworthy.core.random import Key
from roadworthy.training.recipe import OPTIMIZERS, Recipe, check_positive_integer

EpochBatches = Callable[[int], Iterable[tuple[Tensor, Tensor]]]
"""epoch -> the (inputs, targets) of that epoch"""
Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs, targets) -> the mean loss of a batch, a scalar"""
_USUAL = torch.contiguous_format
Checkpoint = Mapping[str, Tensor]
"""State after an epoch: current weights, those of the best epoch, optimizer state and training curve."""


@dataclass(frozen=True)
class EpochRecord:
    epoch: int
    loss: float
    """mean over the images, each under the weights of its own step"""
    lr: float
    images: int
    measure: float = math.nan
    """value of `measure` after the epoch"""


def best_epoch(records: Iterable[EpochRecord]) -> int:
    """The epoch whose weights are kept: the one with the highest measure, or the later one of equals."""
    return max(
        records, key=lambda record: (record.measure if record.measure == record.measure else 0, record.epoch)
    ).epoch


def curve(records: Iterable[EpochRecord]) -> Tensor:
    """float64, one row per epoch: epoch, loss, lr, images, measure."""
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
    """Train `network` in place, on the device of its parameters; the mode of each module is restored.

    Randomness inside an epoch (dropout, batches drawn with torch) depends only on `key` and the epoch. `on_epoch` may
    run the network, also in eval mode, and draw random numbers without affecting training. `measure` is called after
    each epoch, higher is better, and the weights of the `best_epoch` are kept. `on_checkpoint` receives the state after
    each epoch; training started from it with `start` continues exactly as an uninterrupted run.
    """
    parameters, usual = _trainable(network), _corrupts_memory(network)
    with _modes_restored(network), _memory_format(network, recipe.channels_last and not usual):
        if usual:
            network.to(memory_format=_USUAL)  # type: ignore[call-overload]
        optimizer = OPTIMIZERS[recipe.optimizer](parameters, recipe)
        records = _restore(start, network, optimizer) if start else []
        best = _tensors("best.", start) if start else {}
        for epoch in range(len(records), recipe.epochs):
            if _out_of_patience(records, recipe):
                break
            network.train()
            _set_lr(optimizer, recipe.lr_at(epoch))
            with key.fold("epoch", epoch).torch_rng():
                batches = _on_device_of(parameters[0], epoch_batches(epoch), usual)
                reduced = torch.bfloat16 if recipe.autocast else None
                mean, images = _train_epoch(network, batches, optimizer, loss, epoch, reduced)
            value = math.nan if measure is None else measure()
            records.append(EpochRecord(epoch, mean, recipe.lr_at(epoch), images, value))
            if measure is not None and best_epoch(records) == epoch:
                best = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
            if on_epoch is not None:
                on_epoch(records[-1])
            if on_checkpoint is not None:
                on_checkpoint(_checkpoint(network, optimizer, best, records))
    if best:
        network.load_state_dict(best)
    return records


def shuffled(images: Tensor, labels: Tensor, batch_size: int, key: Key) -> EpochBatches:
    """Every image once per epoch, in an order that depends only on `key` and epoch; the last batch may be smaller."""
    if len(images) != len(labels) or not len(images):
        raise ShapeError(f"{len(images)} images and {len(labels)} labels: give at least one image and a label for each")
    check_positive_integer("batch_size", batch_size)

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.from_numpy(key.fold("shuffle", epoch).permutation(0, len(images)))
        for rows in torch.split(order, batch_size):
            yield images[rows], labels[rows]

    return batches


def _out_of_patience(records: list[EpochRecord], recipe: Recipe) -> bool:
    """A tie is not an improvement: patience counts from the first epoch with the highest measure."""
    if not recipe.patience or not records:
        return False
    first = max(records, key=lambda record: record.measure)  # max returns the first of equals
    return records[-1].epoch - first.epoch >= recipe.patience


def _checkpoint(
    network: nn.Module, optimizer: torch.optim.Optimizer, best: Checkpoint, records: list[EpochRecord]
) -> Checkpoint:
    """Copies, so that training may continue while they are written."""
    state = optimizer.state_dict()["state"]
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    tensors |= {
        f"optimizer.{index}.{name}": value
        for index, values in state.items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }
    copies = {name: tensor.detach().cpu().clone(memory_format=_USUAL) for name, tensor in tensors.items()}
    return copies | {"curve": curve(records)}


def _restore(start: Checkpoint, network: nn.Module, optimizer: torch.optim.Optimizer) -> list[EpochRecord]:
    network.load_state_dict(_tensors("network.", start))
    parameters = optimizer.param_groups[0]["params"]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in _tensors("optimizer.", start).items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = _like(parameters[int(index)], tensor)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return [EpochRecord(int(row[0]), row[1], row[2], int(row[3]), row[4]) for row in start["curve"].tolist()]


def _like(parameter: Tensor, state: Tensor) -> Tensor:
    """A copy with the strides of the parameter, as the optimizer made it: other strides may round differently."""
    return (
        torch.empty_like(parameter, dtype=state.dtype, device=state.device).copy_(state)
        if state.shape == parameter.shape
        else state.clone()
    )


def _tensors(prefix: str, checkpoint: Checkpoint) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in checkpoint.items() if name.startswith(prefix)}


def _train_epoch(
    network: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    optimizer: torch.optim.Optimizer,
    loss: Loss,
    epoch: int,
    reduced: torch.dtype | None,
) -> tuple[float, int]:
    """The mean loss and the number of images."""
    total, images = 0.0, 0
    for step, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        with torch.autocast(inputs.device.type, reduced, enabled=reduced is not None):
            value = loss(network(inputs), targets)
        total += _finite(value, epoch, step) * len(inputs)
        images += len(inputs)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    optimizer.zero_grad()
    if not images:
        raise ShapeError(f"epoch {epoch} has no batch: epoch_batches({epoch}) must yield (inputs, targets) every time")
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


def _on_device_of(
    parameter: Tensor, batches: Iterable[tuple[Tensor, Tensor]], usual: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """`usual`: in the usual memory format, whatever that of the inputs: an augmentation may return another."""
    for inputs, targets in batches:
        placed = inputs.to(parameter.device)
        yield placed.contiguous() if usual else placed, targets.to(parameter.device)


def _set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr


@contextmanager
def _memory_format(network: nn.Module, channels_last: bool) -> Iterator[None]:
    """Convolutions follow the format of their weights, whatever that of their input."""
    if not channels_last:
        yield
        return
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    try:
        yield
    finally:
        network.to(memory_format=_USUAL)  # type: ignore[call-overload]


def _corrupts_memory(network: nn.Module) -> bool:
    """Whether training it in channels_last could write past a buffer (https://github.com/uxlfoundation/oneDNN/issues/6035).

    On CPUs the weights' gradient of a strided 1 × 1 convolution does if it has fewer input channels than a register
    holds: 8 or 16 by processor. We take 16 for all, so that the format does not depend on the machine.
    """
    return any(
        isinstance(module, nn.Conv2d)
        and module.weight.device.type == "cpu"
        and set(module.kernel_size) == {1}
        and max(module.stride) > 1
        and module.weight.shape[1] < 16
        for module in network.modules()
    )


@contextmanager
def _modes_restored(network: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in network.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
