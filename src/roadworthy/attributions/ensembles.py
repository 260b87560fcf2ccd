"""SmoothGrad, SmoothGrad² and VarGrad from one stream of noisy samples: all three at the cost of one.

Their `source` is an equal `NoisySamples`, which is therefore computed once per batch.

With `converged`, a rank correlation such as .95, the maps of an image's even and odd samples are compared after 4, 8,
16, … of them. Once all three statistics rank pixels that reliably (`convergence.reliability`), the image gets no more
samples. No other image has a part in that decision.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, final, get_args

import numpy as np
import torch
from torch import Tensor

from roadworthy.attributions.convergence import check_converged, reliability, rounds
from roadworthy.attributions.gradients import GradientBased, batched, copies_per_pass, maps_on, takes_baseline
from roadworthy.attributions.maps import ChannelReduction, reduced
from roadworthy.core.errors import InputError, RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Maps, Model

Units = Literal["model", "pixels"]
"""Of sigma: "model", the normalized space, as in the paper's code; "pixels", the space of images in [0, 1]."""


class Moments(NamedTuple):
    """Mean and mean square over the samples, per pixel and channel `(n, c, h, w)`."""

    mean: Tensor
    mean_square: Tensor


@final
@dataclass(frozen=True)
class NoisySamples:
    """The maps of `base` on `samples` copies of each image with Gaussian noise of `sigma`, in these units."""

    base: GradientBased
    samples: int
    sigma: float
    units: Units = "model"
    converged: float | None = None
    """how reliable the ranks of an image must be for it to get no further samples"""

    def __post_init__(self) -> None:
        if not hasattr(self.base, "maps"):
            raise InputError(
                f"base {self.base!r} cannot explain noisy inputs: use IntegratedGradients(), GuidedBackprop(), "
                "Gradient() or an object with maps(network, inputs, targets)"
            )
        if self.samples < 1 or self.sigma < 0:
            raise RangeError(f"samples={self.samples}, sigma={self.sigma}: give at least 1 sample and a sigma >= 0")
        if self.units not in get_args(Units):
            raise InputError(f"units={self.units!r}: sigma is in units of the 'model' (normalized) or in 'pixels'")
        check_converged(self.converged)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Moments:
        if self.converged is None:
            return Moments(*self._sums(range(self.samples), 1, model, batch, key)[0] / self.samples)
        halves = torch.zeros(2, 2, *batch.images.shape).to(batch.images)
        counts, rows = torch.zeros(len(batch), 1, 1, 1).to(batch.images), torch.arange(len(batch))
        for samples in rounds(self.samples):
            halves[:, :, rows] += self._sums(samples, 2, model, batch[rows], key)
            counts[rows] += len(samples)
            even, odd = (Moments(*half[:, rows] / (counts[rows] / 2)) for half in halves)
            alike = [reliability(statistic(even), statistic(odd)) for statistic in (_mean, _mean_square, _variance)]
            rows = rows[torch.from_numpy(np.min(alike, axis=0) < self.converged)]
            if not len(rows):
                break
        return Moments(*halves.sum(dim=0) / counts)

    def _sums(self, samples: Sequence[int], parts: int, model: Model, batch: Batch, key: Key) -> Tensor:
        """Of maps and of their squares over these samples, which go to the parts in turn: `(parts, 2, n, c, h, w)`."""
        explained = maps_on(self.base, model, batch.images)
        sums = torch.zeros(parts, 2, *batch.images.shape).to(batch.images)
        # A base with a baseline, such as IG, fills its passes with steps.
        copies = 1 if takes_baseline(self.base) else copies_per_pass(batch.images)
        for together in batched(samples, copies):
            noisy = torch.cat([self._sample(sample, model, batch, key) for sample in together])
            pieces = torch.split(explained(noisy, batch.labels.repeat(len(together))), len(batch))
            for sample, maps in zip(together, pieces, strict=True):
                sums[sample % parts, 0] += maps
                sums[sample % parts, 1] += maps * maps
        return sums

    def _sample(self, sample: int, model: Model, batch: Batch, key: Key) -> Tensor:
        noise = key.fold("sample", sample).normal(batch.ids, tuple(batch.images.shape[1:]))
        return self._noisy(model, batch.images, self.sigma * noise.to(batch.images.device))

    def _noisy(self, model: Model, images: Images, noise: Tensor) -> Tensor:
        return model.normalize(images + noise) if self.units == "pixels" else model.normalize(images) + noise


@final
@dataclass(frozen=True)
class Ensemble:
    """One statistic of the maps of noisy samples."""

    source: NoisySamples
    statistic: Callable[[Moments], Tensor]
    channel_reduction: ChannelReduction = "sum"

    def finish(self, computed: Moments, batch: Batch) -> Maps:
        return reduced(self.statistic(computed), self.channel_reduction)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return self.finish(self.source(model, batch, key), batch)


def smoothgrad(
    base: GradientBased,
    samples: int,
    sigma: float,
    channel_reduction: ChannelReduction = "sum",
    units: Units = "model",
    converged: float | None = None,
) -> Ensemble:
    """SG (Smilkov 2017): the mean over the noisy samples.

    `sigma`: of the noise, in the model's normalized space as in the paper's code, or with `units="pixels"` in [0, 1].
    `converged`: a rank correlation, such as .95, at which an image gets no further samples; by default it gets all.
    """
    return Ensemble(NoisySamples(base, samples, sigma, units, converged), _mean, channel_reduction)


def smoothgrad_squared(
    base: GradientBased,
    samples: int,
    sigma: float,
    channel_reduction: ChannelReduction = "sum",
    units: Units = "model",
    converged: float | None = None,
) -> Ensemble:
    """SQ (Hooker 2019): the mean of the squared maps.

    `sigma`: of the noise, in the model's normalized space as in the paper's code, or with `units="pixels"` in [0, 1].
    `converged`: a rank correlation, such as .95, at which an image gets no further samples; by default it gets all.
    """
    return Ensemble(NoisySamples(base, samples, sigma, units, converged), _mean_square, channel_reduction)


def vargrad(
    base: GradientBased,
    samples: int,
    sigma: float,
    channel_reduction: ChannelReduction = "sum",
    units: Units = "model",
    converged: float | None = None,
) -> Ensemble:
    """Var (Adebayo 2018): the variance over the samples.

    `sigma`: of the noise, in the model's normalized space as in the paper's code, or with `units="pixels"` in [0, 1].
    `converged`: a rank correlation, such as .95, at which an image gets no further samples; by default it gets all.
    """
    return Ensemble(NoisySamples(base, samples, sigma, units, converged), _variance, channel_reduction)


def _mean(moments: Moments) -> Tensor:
    return moments.mean


def _mean_square(moments: Moments) -> Tensor:
    return moments.mean_square


def _variance(moments: Moments) -> Tensor:
    return (moments.mean_square - moments.mean**2).clamp(min=0)
