"""Training a GAIN: a generator paints holes, a discriminator tries to find them, both learn in every step.

Their losses touch different weights, so their sum goes through the one optimizer loop. Masks, noise and hints are
fresh in every epoch and keyed: a training that was stopped goes on from its checkpoint with the same curve.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from roadworthy.core.errors import ModelError, RangeError, TrainingError
from roadworthy.core.files import write_atomically
from roadworthy.core.masks import of_either_kind
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Images
from roadworthy.datasets.subsets import spans
from roadworthy.imputers import Gain
from roadworthy.imputers.gain_networks import Discriminator, Generator, plain, spectrally_normalized
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.loop import Checkpoint, Recipe, chosen, fit
from roadworthy.training.trainer import Readable, readable, split


@final
@dataclass(frozen=True, kw_only=True)
class GainRecipe:
    """How to train a GAIN; the defaults are the paper's for CIFAR-10, on one GPU.

    `alpha` weighs the reconstruction of kept pixels against fooling the discriminator, which is told of a share `hint`
    of the pixels whether they were removed. Each image loses a random share of its pixels, up to `largest`, scattered
    or in blobs. `schedule` "cosine" lets `lr` fall to 0 over the epochs, so that a short training comes to rest; the
    paper's is "constant". `width` is that of the first layer, `blocks` the number of residual blocks, `noise` the
    deviation of what the generator sees in the holes. A share `validation` of the images is held out: the weights of
    the epoch with the lowest imputation MSE on them are taken.
    """

    epochs: int = 100
    batch_size: int = 64
    lr: float = 5e-4
    schedule: Literal["constant", "cosine"] = "constant"
    alpha: float = 100.0
    hint: float = 0.01
    width: int = 64
    blocks: int = 4
    largest: float = 0.9
    noise: float = 0.01
    validation: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        _ = self.optimization  # complains of its own fields
        _check("alpha", self.alpha, 0 < self.alpha < math.inf, "the weight of reconstruction is above 0 and finite")
        _check("hint", self.hint, 0 <= self.hint < 1, "a share of pixels in [0, 1); with 1 nothing is left to find")
        _check("largest", self.largest, 0 < self.largest <= 1, "the largest share to remove lies in (0, 1]")
        _check("noise", self.noise, 0 <= self.noise < math.inf, "a standard deviation is at least 0")
        for name in ("width", "blocks"):
            value = getattr(self, name)
            _check(name, value, value >= 1 and value % 1 == 0, "give a whole number of at least 1")

    @property
    def optimization(self) -> Recipe:
        """Adam with β₁ = 0.5, as is usual where two networks play against each other."""
        return Recipe(
            epochs=self.epochs, batch_size=self.batch_size, lr=self.lr, schedule=self.schedule, momentum=0.5,
            validation=self.validation,
        )  # fmt: skip


class GainRecord(NamedTuple):
    """How the networks stood after an epoch, on the held-out images."""

    epoch: int
    discriminator: float
    """cross-entropy of what it says of each pixel; ln 2 is guessing at one half"""
    adversarial: float
    """how sure it is of the painted pixels: the generator's loss"""
    reconstruction: float
    """mean squared error of the painting in **kept** pixels: what the generator is trained on, never used as a fill"""
    imputation: float
    """mean squared error in **removed** pixels: what counts, and what no loss sees"""


class Trained(NamedTuple):
    gain: Gain
    records: tuple[GainRecord, ...]
    epoch: int
    """whose weights were taken"""

    def tensors(self) -> dict[str, Tensor]:
        """The imputer's, and its training: a row per epoch, in the columns of GainRecord."""
        curve = torch.tensor(self.records, dtype=torch.float64)
        return {**self.gain.tensors(), "curve": curve, "epoch": torch.tensor([self.epoch])}


def save_gain(trained: Trained, recipe: GainRecipe, path: Path) -> None:
    """A file for `Gain.load`, with the recipe in its header."""
    header = {"recipe": asdict(recipe), "epoch": trained.epoch, "curve": GainRecord._fields}
    write_atomically(path, save(trained.tensors(), {"gain": json.dumps(header, sort_keys=True)}))


def train_gain(
    recipe: GainRecipe,
    data: Dataset,
    *,
    checkpoint: Path | None = None,
    device: torch.device | str = "cpu",
    on_epoch: Callable[[GainRecord], object] = lambda record: None,
) -> Trained:
    """Train on `data`, the imputer's own split; with `checkpoint` an interrupted training goes on after its last epoch.

    On GPUs the networks compute in bfloat16. A training that becomes non-finite is an error; its last good checkpoint
    is kept.
    """
    images, key = readable(data), Key(recipe.seed).fold("gain")
    learned, held = split(len(images), recipe.optimization, key)
    mean = _mean_image(images, learned)
    with key.fold("init").torch_rng():
        networks = Adversaries(mean, recipe).to(device)
    file = CheckpointFile(checkpoint, _tag(recipe, mean)) if checkpoint else None
    start = _start(file, recipe)
    records = [GainRecord(int(row[0]), *row[1:]) for row in start["gain"].tolist()] if start else []
    play = _Play(images, recipe, key)

    def measure() -> float:
        record = GainRecord(len(records), *_held_out(networks, play.steps(held, key.fold("held out"))))
        if not all(map(math.isfinite, record)):
            raise ModelError(f"after epoch {record.epoch} the held-out losses are not finite: {record}")
        records.append(record)
        on_epoch(record)
        return -record.imputation

    def write(state: Checkpoint) -> None:
        if file:
            file.write({**state, "gain": torch.tensor(records, dtype=torch.float64)})

    try:
        epochs = fit(
            networks, play.epoch(learned), recipe.optimization, key=key, start=start, measure=measure,
            loss=lambda outputs, targets: losses(outputs, targets).total(recipe.alpha), on_checkpoint=write,
        )  # fmt: skip
    except ModelError as error:
        kept = f"; the last good epoch is kept in {checkpoint}" if records and checkpoint else ""
        raise TrainingError(
            f"the training of the GAIN (alpha {recipe.alpha:g}, hint {recipe.hint:g}, lr {recipe.lr:g}) failed: "
            f"{error}{kept}"
        ) from error
    return Trained(Gain(plain(networks.generator).cpu()), tuple(records), chosen(epochs))


# ── one step ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Losses(NamedTuple):
    discriminator: Tensor
    adversarial: Tensor
    reconstruction: Tensor
    imputation: Tensor
    """no loss: it is only looked at"""

    def total(self, alpha: float) -> Tensor:
        """The generator's weights feel the second and third term, the discriminator's the first."""
        return self.discriminator + self.adversarial + alpha * self.reconstruction


@final
class Adversaries(nn.Module):
    """Both networks as one, so that one optimizer serves them: inputs packed by `packed`, outputs read by `losses`."""

    def __init__(self, mean: Tensor, recipe: GainRecipe):
        super().__init__()
        self.generator = spectrally_normalized(Generator(mean, recipe.width, recipe.blocks, recipe.noise))
        self.discriminator = spectrally_normalized(Discriminator(len(mean), recipe.width, recipe.blocks))

    def forward(self, inputs: Tensor) -> Tensor:
        """Channels: the painting; what the discriminator says of it, to learn finding; the same, to learn fooling."""
        channels = len(self.generator.mean)
        images, field, removed, hint = torch.split(inputs, [channels, channels, 1, 1], dim=1)
        with torch.autocast("cuda", torch.bfloat16, enabled=inputs.is_cuda):
            painted = self.generator(images, removed.bool(), field)
            filled = torch.where(removed.bool(), painted, images) - self.generator.mean
            finding = self.discriminator(filled.detach(), hint)
            with _frozen(self.discriminator):
                fooling = self.discriminator(filled, hint)
        return torch.cat([painted, finding, fooling], dim=1).float()


def packed(batch: Batch, recipe: GainRecipe, key: Key) -> tuple[Tensor, Tensor]:
    """Inputs for `Adversaries` and targets for `losses`: images with masks, noise and hints drawn for them."""
    ids, images = batch.ids, batch.images
    height, width = images.shape[-2:]
    removed = of_either_kind(ids, (height, width), recipe.largest, key.fold("masks"))[:, None].float()
    told = key.fold("hint").uniform(ids, (1, height, width)) < recipe.hint
    field = key.fold("noise").normal(ids, tuple(images.shape[1:]))
    hint = torch.where(told, removed, 0.5)
    return torch.cat([images, field, removed, hint], dim=1), torch.cat([images, removed], dim=1)


def losses(outputs: Tensor, targets: Tensor) -> Losses:
    """Of what `Adversaries` says, given the true images and what was removed of them."""
    images, removed = targets[:, :-1], targets[:, -1:]
    painted, finding, fooling = outputs[:, :-2], outputs[:, -2:-1], outputs[:, -1:]
    squares = (painted - images).square().mean(dim=1, keepdim=True)
    return Losses(
        binary_cross_entropy_with_logits(finding, removed),
        _mean(softplus(fooling), removed),  # −log of the probability that it gives to "was kept"
        _mean(squares, 1 - removed),
        _mean(squares.detach(), removed),
    )


def _mean(values: Tensor, where: Tensor) -> Tensor:
    return (values * where).sum() / where.sum().clamp(min=1)


@contextmanager
def _frozen(network: nn.Module) -> Iterator[None]:
    """What is computed inside passes gradients through the network, and none to its weights."""
    network.requires_grad_(False)
    try:
        yield
    finally:
        network.requires_grad_(True)


# ── around the loop ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Play:
    """The steps of an epoch, from rows of the data."""

    data: Readable
    recipe: GainRecipe
    key: Key

    def epoch(self, rows: NDArray[np.int64]) -> Callable[[int], Iterator[tuple[Tensor, Tensor]]]:
        def steps(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
            order = self.key.fold("shuffle", epoch).permutation(0, len(rows))
            return self.steps(rows[order], self.key.fold("step", epoch))

        return steps

    def steps(self, rows: NDArray[np.int64], key: Key) -> Iterator[tuple[Tensor, Tensor]]:
        for span in spans(len(rows), self.recipe.batch_size):
            yield packed(self.data.at(rows[span].tolist()), self.recipe, key)


def _held_out(networks: Adversaries, steps: Iterator[tuple[Tensor, Tensor]]) -> list[float]:
    """Mean losses over the images, in eval mode: nothing is learned, no power iteration is done."""
    networks.eval()
    device = networks.generator.mean.device
    totals, images = torch.zeros(len(Losses._fields), dtype=torch.float64), 0
    with torch.no_grad():
        for inputs, targets in steps:
            values = losses(networks(inputs.to(device)), targets.to(device))
            totals += torch.stack(values).double().cpu() * len(inputs)
            images += len(inputs)
    return (totals / images).tolist()


def _mean_image(data: Readable, rows: NDArray[np.int64]) -> Images:
    total = sum(data.at(rows[span].tolist()).images.sum(dim=0, dtype=torch.float64) for span in spans(len(rows), 256))
    return (torch.as_tensor(total) / len(rows)).float()


def _tag(recipe: GainRecipe, mean: Images) -> str:
    """What makes an epoch what it is. Under a constant rate their number does not, so a longer training goes on where a
    shorter one ended."""
    same = replace(recipe, epochs=1) if recipe.schedule == "constant" else recipe
    return f"{same} {hashlib.sha256(mean.numpy().tobytes()).hexdigest()}"


def _start(file: CheckpointFile | None, recipe: GainRecipe) -> Checkpoint | None:
    start = file.read() if file else None
    return start if start and len(start["gain"]) <= recipe.epochs else None


def _check(name: str, value: object, fits: bool, cure: str) -> None:
    if not fits:
        raise RangeError(f"{name}={value}: {cure}")
