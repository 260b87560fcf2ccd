"""The Gaussian toy world (paper, older supplement): what does an ordering gain by its geometry alone?

Gray images of two classes, from Gaussian processes with the same squared-exponential covariance and sinusoidal means.
Five orderings, the same for all images, so masks carry no class information: `true` (where the means differ most),
`worst` (its inverse), and three uninformative ones: `rand` (per pixel), `semi` (4 × 4 blocks) and `gauss` (a central
bump). Every point is retrained: logistic regressions on the imputed images, each on its own training set.

Everything is Gaussian and linear, so γ is known exactly, for the linear and for the best possible imputation.
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
Waves = tuple[float, float, float, float]
"""frequency and phase down the rows, and along the columns"""
_ORDERS: dict[str, Order] = {"morf": most_relevant_first, "lerf": least_relevant_first}


@final
@dataclass(frozen=True)
class ToyWorld:
    """`width` of the covariance is a share of the image's; `grain` is the variance of white noise added to variance 1.

    Without grain, scattered pixels are restored so well that their γ is too small to divide by. With the default
    amplitude a logistic regression on unmodified images has an accuracy of about 95 %.
    """

    size: int = 28
    width: float = 0.2
    amplitude: float = 0.42
    grain: float = 0.1
    waves: tuple[Waves, Waves] = ((2, 0, 1, 0), (1, 1, 2, 1))
    """of the means of the two classes"""

    @property
    def means(self) -> Array:
        """`(2, pixels)`: products of two sinusoids, down the rows and along the columns."""
        turns = 2 * np.pi * np.arange(self.size) / self.size
        products = [np.outer(np.sin(a * turns + b), np.sin(c * turns + d)) for a, b, c, d in self.waves]
        return self.amplitude * np.stack(products).reshape(2, -1)

    @property
    def covariance(self) -> Array:
        positions = np.indices((self.size, self.size)).reshape(2, -1).T
        squared_distances = np.square(positions[:, None] - positions).sum(axis=-1)
        smooth = np.exp(-squared_distances / (2 * (self.width * self.size) ** 2))
        return np.asarray(smooth + self.grain * np.eye(len(smooth)))

    def draw(self, count: int, key: Key) -> tuple[Array, NDArray[np.int64]]:
        """Images `(count, pixels)` with alternating classes."""
        labels = np.arange(count) % 2
        noise = key.normal(range(count), (self.size**2,)).double().numpy()
        return self.means[labels] + noise @ np.linalg.cholesky(self.covariance).T, labels

    def orderings(self, key: Key) -> dict[str, Array]:
        """Maps `(size, size)`, the same for every image."""
        shape, blocks = (self.size, self.size), -(-self.size // 4)
        difference = np.abs(np.subtract(*self.means)).reshape(shape)
        pixels, coarse = (key.uniform([row], size)[0].numpy() for row, size in enumerate((shape, (blocks, blocks))))
        distance = np.square(np.arange(self.size) - (self.size - 1) / 2)
        return {
            "true": difference,
            "worst": -difference,
            "rand": pixels,
            "semi": np.kron(coarse, np.ones((4, 4)))[: self.size, : self.size],
            "gauss": -np.add.outer(distance, distance),  # has the same order as a Gaussian
        }


def imputation_operator(removed: NDArray[np.bool_]) -> Array:
    """The matrix F of noise-free linear imputation, imputed = F·image; rows of kept pixels are those of the identity.

    Its columns are the imputed unit images (one pixel is 1), all solved at once as channels.
    """
    pixels = removed.size
    units = torch.eye(pixels).reshape(1, pixels, *removed.shape)
    imputed = direct.solve(units, torch.from_numpy(removed)[None], NoisyLinear().weights)
    return imputed.reshape(pixels, pixels).double().numpy().T


def exact_gamma(covariance: Array, removed: NDArray[np.bool_]) -> float:
    """γ of the linear imputation: tr(Σuu − BΣku − ΣukBᵀ + BΣkkBᵀ) / tr Σuu; u removed, k kept, B its operator."""
    mask = removed.ravel()
    residual = (np.eye(mask.size) - imputation_operator(removed))[mask]  # x − imputed, as an operator
    return float(np.sum((residual @ covariance) * residual) / np.trace(covariance[np.ix_(mask, mask)]))


def best_gamma(covariance: Array, removed: NDArray[np.bool_]) -> float:
    """γ of the best possible imputation, the conditional mean: tr(Σuu − ΣukΣkk⁻¹Σku) / tr Σuu."""
    mask = removed.ravel()
    inner, cross = covariance[np.ix_(mask, mask)], covariance[np.ix_(~mask, mask)]
    explained = np.sum(cross * np.linalg.solve(covariance[np.ix_(~mask, ~mask)], cross))
    return float(1 - explained / np.trace(inner))


def logistic_regressions(images: Array, labels: Array, penalty: float = 1.0) -> tuple[Array, Array]:
    """Weights `(runs, pixels)` and offsets `(runs,)` from images `(runs, n, pixels)` and labels 0 or 1.

    They minimize Σ log-loss + penalty/2·|weights|² by Newton's method. With fewer images than pixels the weights lie in
    the span of the images, so the steps are taken in the n dual coefficients.
    """
    kernel = images @ images.transpose(0, 2, 1)
    dual, offset = np.zeros(labels.shape), np.zeros(len(labels))
    for _ in range(100):
        logits = (kernel @ dual[..., None])[..., 0] + offset[:, None]
        probability = 1 / (1 + np.exp(-logits))
        weight = np.maximum(probability * (1 - probability), 1e-9)
        ridge = kernel + penalty * np.eye(labels.shape[1]) / weight[:, None]
        target = logits + (labels - probability) / weight
        solution, ones = np.moveaxis(np.linalg.solve(ridge, _with_ones(target)), -1, 0)
        offset = solution.sum(axis=1) / ones.sum(axis=1)
        step = np.abs(solution - offset[:, None] * ones - dual).max()
        dual = solution - offset[:, None] * ones
        if step < 1e-6:
            break
    return (dual[:, None] @ images)[:, 0], offset


def _with_ones(values: Array) -> Array:
    """The values and a vector of ones, as two right-hand sides."""
    return np.stack([values, np.ones_like(values)], axis=-1)


@final
@dataclass(frozen=True, eq=False)
class ToyResult:
    curves: pd.DataFrame
    """method, order, imputer, evaluator, fraction, accuracy"""
    geometry: pd.DataFrame
    """columns of `gamma_table` up to `raw`, exact, with the optimum"""

    def debiased(self) -> pd.DataFrame:
        return debiased(self.curves, self.geometry, chance=0.5)


def whole_accuracy(world: ToyWorld, regressions: int = 15, train: int = 100, test: int = 1000, seed: int = 0) -> float:
    """The accuracy on unmodified images, as in `run_toy`."""
    return run_toy(world, (), regressions, train, test, seed).curves["accuracy"].iloc[0]  # type: ignore[no-any-return]


def run_toy(
    world: ToyWorld = ToyWorld(),  # noqa: B008  a frozen value
    fractions: tuple[float, ...] = FRACTIONS[1:],
    regressions: int = 15,
    train: int = 100,
    test: int = 1000,
    seed: int = 0,
) -> ToyResult:
    """All five orderings in MoRF and LeRF: accuracies after retraining with linear imputation, and the exact γ."""
    key = Key(seed).fold("toy")
    images, labels = world.draw(regressions * train, key.fold("train"))
    test_images, test_labels = world.draw(test, key.fold("test"))
    covariance = world.covariance

    def accuracy(operator: Array) -> float:
        imputed = (images @ operator.T).reshape(regressions, train, -1)
        weights, offsets = logistic_regressions(imputed, labels.reshape(regressions, train).astype(float))
        predicted = weights @ (test_images @ operator.T).T + offsets[:, None] > 0
        return float(np.mean(predicted == test_labels))

    whole = accuracy(np.eye(world.size**2))
    curves, geometry = [], []
    for method, relevance in world.orderings(key.fold("orderings")).items():
        for order, rank in _ORDERS.items():
            ranks = rank(torch.from_numpy(relevance)[None].float(), torch.zeros(1), key)
            blur = float(blurriness(ranks)[0])
            curves.append((method, order, "linear", "retrain", 0.0, whole))
            for fraction in fractions:
                removed = removed_at(ranks, fraction)[0].numpy()
                curves.append((method, order, "linear", "retrain", fraction, accuracy(imputation_operator(removed))))
                raw, best = exact_gamma(covariance, removed), best_gamma(covariance, removed)
                geometry.append((method, order, fraction, *clipped_gamma(raw), best, blur, raw))
    return ToyResult(
        pd.DataFrame(curves, columns=["method", "order", "imputer", "evaluator", "fraction", "accuracy"]),
        pd.DataFrame(geometry, columns=list(GEOMETRY_COLUMNS[:8])),
    )
