"""Training GAIN: a generator imputes removed pixels, a discriminator detects them; both learn in every step.

Their losses act on different weights, so their sum goes through the shared training loop. Masks, noise and hints are
drawn anew in every epoch, by key: training that was interrupted resumes from its checkpoint with the same curve.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from roadworthy.core.errors import InputError, ModelError, TrainingError
from roadworthy.core.files import write_atomically
from roadworthy.core.masks import random_masks
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Images
from roadworthy.datasets.subsets import spans
from roadworthy.imputers import Gain
from roadworthy.imputers.gain_networks import Discriminator, Generator, plain, spectrally_normalized
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.loop import Checkpoint, best_epoch, fit
from roadworthy.training.recipe import Recipe, check_positive_integer, check_range
from roadworthy.training.trainer import Readable, readable, split


@final
@dataclass(frozen=True, kw_only=True)
class GainRecipe:
    """How to train a GAIN; the defaults are the paper's for CIFAR-10, on one GPU.

    `alpha` weighs the reconstruction of kept pixels against fooling the discriminator. `hint` is the fraction of
    pixels whose true mask value the discriminator sees. Each image loses a random fraction of its pixels, up to
    `largest`; with `masks` "either" they are scattered or in blobs, with "scatter" always scattered, as in the paper.
    `schedule` "cosine" anneals `lr` to 0, so that a short training converges; the paper uses "constant". `width` is
    the width of the first layer, `blocks` the number of residual blocks, `noise` the standard deviation of the
    generator's input at removed pixels. A fraction `validation` of the images is held out: the weights of the epoch
    with the lowest imputation MSE on them are kept. `channels_last` and `autocast` are those of `Recipe`.
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
    masks: Literal["either", "scatter"] = "either"
    noise: float = 0.01
    validation: float = 0.05
    seed: int = 0
    channels_last: bool = False
    autocast: Literal["bfloat16"] | None = None

    def __post_init__(self) -> None:
        _ = self.optimization  # checks its own fields
        check_range("alpha", self.alpha, 0 < self.alpha < math.inf, "the weight of reconstruction must be above 0")
        check_range("hint", self.hint, 0 <= self.hint < 1, "must be a fraction of pixels in [0, 1)")
        check_range("largest", self.largest, 0 < self.largest <= 1, "the largest fraction to remove must be in (0, 1]")
        check_range("noise", self.noise, 0 <= self.noise < math.inf, "a standard deviation must be 0 or more")
        if self.masks not in ("either", "scatter"):
            raise InputError(f"masks={self.masks!r}: choose either or scatter")
        check_positive_integer("width", self.width)
        check_positive_integer("blocks", self.blocks)

    @property
    def spec(self) -> dict[str, Any]:
        """The fields, for ids. Those of LATER only where they are set: ids from before they were fields stay valid."""
        fields = asdict(self).items()
        return {name: value for name, value in fields if name not in LATER or value != LATER[name]}

    @property
    def optimization(self) -> Recipe:
        """Adam with β₁ = 0.5, as is usual for adversarial training."""
        return Recipe(
            epochs=self.epochs, batch_size=self.batch_size, lr=self.lr, schedule=self.schedule, momentum=0.5,
            validation=self.validation, channels_last=self.channels_last, autocast=self.autocast,
        )  # fmt: skip


LATER = {"masks": "either", "channels_last": False, "autocast": None}
"""fields of a GainRecipe that came later, with their defaults"""


class GainRecord(NamedTuple):
    """Losses on the held-out images after an epoch."""

    epoch: int
    discriminator: float
    """cross-entropy per pixel; ln 2 for constant ½"""
    adversarial: float
    """the generator's loss: −log of the probability "kept" that the discriminator gives to imputed pixels"""
    reconstruction: float
    """MSE of the generated image in **kept** pixels: what the generator is trained on; these pixels are never used"""
    imputation: float
    """MSE in **removed** pixels: the quality of the imputer, part of no loss"""


class TrainedGain(NamedTuple):
    """A GAIN with the record of its training."""

    gain: Gain
    records: tuple[GainRecord, ...]
    epoch: int
    """the epoch whose weights were kept"""

    def tensors(self) -> dict[str, Tensor]:
        """The imputer's tensors and the training curve: one row per epoch, with the columns of GainRecord."""
        curve = torch.tensor(self.records, dtype=torch.float64)
        return {**self.gain.tensors(), "curve": curve, "epoch": torch.tensor([self.epoch])}


def save_gain(trained: TrainedGain, recipe: GainRecipe, path: Path) -> None:
    """Write a file for `Gain.load`, with the recipe in its header."""
    header = {"recipe": asdict(recipe), "epoch": trained.epoch, "curve": GainRecord._fields}
    write_atomically(path, save(trained.tensors(), {"gain": json.dumps(header, sort_keys=True)}))


def train_gain(
    recipe: GainRecipe,
    data: Dataset,
    *,
    checkpoint: Path | None = None,
    device: torch.device | str = "cpu",
    on_epoch: Callable[[GainRecord], object] = lambda record: None,
) -> TrainedGain:
    """Train on `data`, a split that is not evaluated; with `checkpoint`, resume after the last completed epoch.

    On a GPU the networks compute in bfloat16. Non-finite losses raise a TrainingError; the last good checkpoint is
    kept.
    """
    images, key = readable(data), Key(recipe.seed).fold("gain")
    train_rows, held_out = split(len(images), recipe.optimization, key)
    mean = _mean_image(images, train_rows)
    with key.fold("init").torch_rng():
        networks = Adversaries(mean, recipe).to(device)
    file = CheckpointFile(checkpoint, _tag(recipe, mean)) if checkpoint else None
    start = _start(file, recipe)
    records = [GainRecord(int(row[0]), *row[1:]) for row in start["gain"].tolist()] if start else []
    sampler = _Sampler(images, recipe, key)

    def measure() -> float:
        record = GainRecord(len(records), *_held_out(networks, sampler.steps(held_out, key.fold("held out"))))
        if not all(map(math.isfinite, record)):
            raise ModelError(f"the held-out losses after epoch {record.epoch} are not finite: {record}")
        records.append(record)
        on_epoch(record)
        return -record.imputation

    def write(state: Checkpoint) -> None:
        if file:
            file.write({**state, "gain": torch.tensor(records, dtype=torch.float64)})

    try:
        epochs = fit(
            networks, sampler.epoch(train_rows), recipe.optimization, key=key, start=start, measure=measure,
            loss=lambda outputs, targets: losses(outputs, targets).total(recipe.alpha), on_checkpoint=write,
        )  # fmt: skip
    except ModelError as error:
        kept = f"; the last good epoch is kept in {checkpoint}" if records and checkpoint else ""
        raise TrainingError(
            f"training GAIN with alpha {recipe.alpha:g}, hint {recipe.hint:g}, lr {recipe.lr:g} failed: {error}{kept}"
        ) from error
    return TrainedGain(Gain(plain(networks.generator).cpu()), tuple(records), best_epoch(epochs))


# ── one step ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Losses(NamedTuple):
    discriminator: Tensor
    adversarial: Tensor
    reconstruction: Tensor
    imputation: Tensor
    """monitored only; not part of the total"""

    def total(self, alpha: float) -> Tensor:
        """The first term trains the discriminator alone, the other two the generator alone."""
        return self.discriminator + self.adversarial + alpha * self.reconstruction


@final
class Adversaries(nn.Module):
    """Both networks as one module for one optimizer. Inputs come from `packed`, outputs go to `losses`."""

    def __init__(self, mean: Tensor, recipe: GainRecipe):
        super().__init__()
        self.generator = spectrally_normalized(Generator(mean, recipe.width, recipe.blocks, recipe.noise))
        self.discriminator = spectrally_normalized(Discriminator(len(mean), recipe.width, recipe.blocks))

    def forward(self, inputs: Tensor) -> Tensor:
        """Channels: the generated image, the discriminator's logits for its own loss, and those for the generator's."""
        channels = len(self.generator.mean)
        images, field, removed, hint = torch.split(inputs, [channels, channels, 1, 1], dim=1)
        with torch.autocast("cuda", torch.bfloat16, enabled=inputs.is_cuda):
            generated = self.generator(images, removed.bool(), field)
            imputed = torch.where(removed.bool(), generated, images) - self.generator.mean
            detecting = self.discriminator(imputed.detach(), hint)
            with _frozen(self.discriminator):
                fooling = self.discriminator(imputed, hint)
        return torch.cat([generated, detecting, fooling], dim=1).float()


def packed(batch: Batch, recipe: GainRecipe, key: Key) -> tuple[Tensor, Tensor]:
    """Inputs for `Adversaries` and targets for `losses`; masks, noise and hints are drawn by key."""
    ids, images = batch.ids, batch.images
    height, width = images.shape[-2:]
    removed = random_masks(ids, (height, width), recipe.largest, recipe.masks, key.fold("masks"))[:, None].float()
    hinted = key.fold("hint").uniform(ids, (1, height, width)) < recipe.hint
    field = key.fold("noise").normal(ids, tuple(images.shape[1:]))
    hint = torch.where(hinted, removed, 0.5)
    return torch.cat([images, field, removed, hint], dim=1), torch.cat([images, removed], dim=1)


def losses(outputs: Tensor, targets: Tensor) -> Losses:
    """From the outputs of `Adversaries`, the true images and their masks."""
    images, removed = targets[:, :-1], targets[:, -1:]
    generated, detecting, fooling = outputs[:, :-2], outputs[:, -2:-1], outputs[:, -1:]
    squares = (generated - images).square().mean(dim=1, keepdim=True)
    return Losses(
        binary_cross_entropy_with_logits(detecting, removed),
        _mean(softplus(fooling), removed),  # −log of the probability of "kept"
        _mean(squares, 1 - removed),
        _mean(squares.detach(), removed),
    )


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return (values * mask).sum() / mask.sum().clamp(min=1)


@contextmanager
def _frozen(network: nn.Module) -> Iterator[None]:
    """Gradients flow through the network, but not to its weights."""
    network.requires_grad_(False)
    try:
        yield
    finally:
        network.requires_grad_(True)


# ── around the loop ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Inputs and targets for rows of the data, batch by batch."""

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
    """Mean losses over the images, in eval mode: neither weights nor power iterations are updated."""
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
    """Everything that determines an epoch. With a constant rate the number of epochs does not, so a longer training
    may resume a shorter one."""
    settings = replace(recipe, epochs=1) if recipe.schedule == "constant" else recipe
    return f"{settings} {hashlib.sha256(mean.numpy().tobytes()).hexdigest()}"


def _start(file: CheckpointFile | None, recipe: GainRecipe) -> Checkpoint | None:
    start = file.read() if file else None
    return start if start and len(start["gain"]) <= recipe.epochs else None
