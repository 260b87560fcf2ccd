"""The Gaussian toy world (paper, older supplement): what does an ordering gain by its shape alone?

Gray images of two classes from Gaussian processes of the same squared-exponential covariance, whose means are
sinusoids. Five orderings, the same for all images, so that no mask can tell a class: `true` (where the means differ
most), `worst` (its inverse), and three that know nothing: `rand` (per pixel), `semi` (4 × 4 blocks), `gauss` (a bump in
the middle). Every point is retrained: logistic regressions on the filled images, each on images of its own.

All of it is Gaussian and linear, so γ is known exactly, and so is that of the best possible fill.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from roadworthy.audit.debiasing import GEOMETRY_COLUMNS, clipped_gamma, debiased
from roadworthy.audit.geometry import blurriness
from roadworthy.core.masks import FRACTIONS, removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Order
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first
from roadworthy.imputers import NoisyLinear
from roadworthy.imputers.solvers import direct

Array = NDArray[np.float64]
_ORDERS: dict[str, Order] = {"morf": most_relevant_first, "lerf": least_relevant_first}


@final
@dataclass(frozen=True)
class ToyWorld:
    """`width` of the covariance is a share of the image's; `grain` the variance of the white noise on unit variance.

    Without grain scatter is restored so well that its γ falls below what can be divided by.

    With the default amplitude a logistic regression is right on about 95 % of the whole images.
    """

    size: int = 28
    width: float = 0.2
    amplitude: float = 0.42
    grain: float = 0.1

    @property
    def means(self) -> Array:
        """`(2, pixels)`: sinusoids of different frequency and phase."""
        turns = 2 * np.pi * np.arange(self.size) / self.size
        waves = [np.outer(np.sin(2 * turns), np.sin(turns)), np.outer(np.sin(turns + 1), np.sin(2 * turns + 1))]
        return self.amplitude * np.stack(waves).reshape(2, -1)

    @property
    def covariance(self) -> Array:
        places = np.indices((self.size, self.size)).reshape(2, -1).T
        squares = np.square(places[:, None] - places).sum(axis=-1)
        smooth = np.exp(-squares / (2 * (self.width * self.size) ** 2))
        return np.asarray(smooth + self.grain * np.eye(len(smooth)))

    def draw(self, count: int, key: Key) -> tuple[Array, NDArray[np.int64]]:
        """Images `(count, pixels)`, the classes taking turns."""
        labels = np.arange(count) % 2
        noise = key.normal(range(count), (self.size**2,)).double().numpy()
        return self.means[labels] + noise @ np.linalg.cholesky(self.covariance).T, labels

    def orderings(self, key: Key) -> dict[str, Array]:
        """Maps `(size, size)`, the same for every image."""
        shape, blocks = (self.size, self.size), -(-self.size // 4)
        differ = np.abs(np.subtract(*self.means)).reshape(shape)
        pixels, coarse = (key.uniform([row], one)[0].numpy() for row, one in enumerate((shape, (blocks, blocks))))
        away = np.square(np.arange(self.size) - (self.size - 1) / 2)
        return {
            "true": differ,
            "worst": -differ,
            "rand": pixels,
            "semi": np.kron(coarse, np.ones((4, 4)))[: self.size, : self.size],
            "gauss": -np.add.outer(away, away),  # only the order of a bump counts
        }


def fill_operator(removed: NDArray[np.bool_]) -> Array:
    """The matrix F of the noise-free linear fill, filled image = F·image; its rows of kept pixels are the identity.

    The columns are the fills of the images that have one pixel of 1, all solved at once as channels.
    """
    pixels = removed.size
    units = torch.eye(pixels).reshape(1, pixels, *removed.shape)
    filled = direct.solve(units, torch.from_numpy(removed)[None], NoisyLinear().weights)
    return filled.reshape(pixels, pixels).double().numpy().T


def exact_gamma(covariance: Array, removed: NDArray[np.bool_]) -> float:
    """γ of the linear fill: tr(Σuu − BΣku − ΣukBᵀ + BΣkkBᵀ) / tr Σuu, with u removed, k kept, B the fill's operator."""
    gone = removed.ravel()
    missed = (np.eye(gone.size) - fill_operator(removed))[gone]  # x − fill, as an operator
    return float(np.sum((missed @ covariance) * missed) / np.trace(covariance[np.ix_(gone, gone)]))


def best_gamma(covariance: Array, removed: NDArray[np.bool_]) -> float:
    """γ of the best possible fill, the conditional mean: tr(Σuu − ΣukΣkk⁻¹Σku) / tr Σuu."""
    gone = removed.ravel()
    inner, cross = covariance[np.ix_(gone, gone)], covariance[np.ix_(~gone, gone)]
    told = np.sum(cross * np.linalg.solve(covariance[np.ix_(~gone, ~gone)], cross))
    return float(1 - told / np.trace(inner))


def logistic_regressions(images: Array, labels: Array, penalty: float = 1.0) -> tuple[Array, Array]:
    """Weights `(runs, pixels)` and offsets `(runs,)` from images `(runs, n, pixels)` and labels 0 or 1, by Newton.

    They minimize Σ log-loss + penalty/2·|weights|². There are fewer images than pixels, and the weights lie in their
    span: the steps are taken in the n coefficients of the images instead.
    """
    kernel = images @ images.transpose(0, 2, 1)
    part, offset = np.zeros(labels.shape), np.zeros(len(labels))
    for _ in range(100):
        logits = (kernel @ part[..., None])[..., 0] + offset[:, None]
        chance = 1 / (1 + np.exp(-logits))
        weight = np.maximum(chance * (1 - chance), 1e-9)
        ridge = kernel + penalty * np.eye(labels.shape[1]) / weight[:, None]
        aim, ones = np.moveaxis(np.linalg.solve(ridge, _pairs(logits + (labels - chance) / weight)), -1, 0)
        offset = aim.sum(axis=1) / ones.sum(axis=1)
        step = np.abs(aim - offset[:, None] * ones - part).max()
        part = aim - offset[:, None] * ones
        if step < 1e-6:
            break
    return (part[:, None] @ images)[:, 0], offset


def _pairs(values: Array) -> Array:
    """Each value beside a 1: two right-hand sides."""
    return np.stack([values, np.ones_like(values)], axis=-1)


@final
@dataclass(frozen=True, eq=False)
class ToyResult:
    curves: pd.DataFrame
    """method, order, imputer, evaluator, fraction, accuracy"""
    geometry: pd.DataFrame
    """the table of γ, exact, with the optimum beside it"""

    def debiased(self) -> pd.DataFrame:
        return debiased(self.curves, self.geometry, chance=0.5)


def run_toy(
    world: ToyWorld = ToyWorld(),  # noqa: B008  a frozen value
    fractions: tuple[float, ...] = FRACTIONS[1:],
    regressions: int = 15,
    train: int = 100,
    test: int = 1000,
    seed: int = 0,
) -> ToyResult:
    """Both orders of all five orderings: accuracies after retraining with the linear fill, and the exact γ."""
    key = Key(seed).fold("toy")
    images, labels = world.draw(regressions * train, key.fold("train"))
    tests, answers = world.draw(test, key.fold("test"))
    covariance = world.covariance

    def accuracy(operator: Array) -> float:
        learned = (images @ operator.T).reshape(regressions, train, -1)
        weights, offsets = logistic_regressions(learned, labels.reshape(regressions, train).astype(float))
        said = weights @ (tests @ operator.T).T + offsets[:, None] > 0
        return float(np.mean(said == answers))

    whole = accuracy(np.eye(world.size**2))
    curves, geometry = [], []
    for method, scores in world.orderings(key.fold("orderings")).items():
        for order, ranked in _ORDERS.items():
            ranks = ranked(torch.from_numpy(scores)[None].float(), torch.zeros(1), key)
            blur = float(blurriness(ranks)[0])
            curves.append((method, order, "linear", "retrain", 0.0, whole))
            for fraction in fractions:
                removed = removed_at(ranks, fraction)[0].numpy()
                curves.append((method, order, "linear", "retrain", fraction, accuracy(fill_operator(removed))))
                raw, best = exact_gamma(covariance, removed), best_gamma(covariance, removed)
                geometry.append((method, order, fraction, *clipped_gamma(raw), best, blur, raw))
    return ToyResult(
        pd.DataFrame(curves, columns=["method", "order", "imputer", "evaluator", "fraction", "accuracy"]),
        pd.DataFrame(geometry, columns=list(GEOMETRY_COLUMNS[:8])),
    )
