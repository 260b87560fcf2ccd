"""A GAIN that learned from real images guesses better than the mean, even after seconds of training."""

import pytest

from roadworthy.datasets import CIFAR10, first
from roadworthy.evaluation.quality import imputation_quality
from roadworthy.imputers import DatasetMean
from roadworthy.training.gain import GainRecipe, train_gain


def test_a_narrow_gain_beats_the_mean_fill_on_images_that_it_never_saw(real_data):
    recipe = GainRecipe(epochs=2, batch_size=16, lr=2e-3, width=8, blocks=1)
    learned, test = first(CIFAR10(real_data, "train", (1,)), 600), first(CIFAR10(real_data), 60)
    gain = train_gain(recipe, learned).gain
    rows = list(imputation_quality({"gain": gain, "mean": DatasetMean.of(learned)}, test))
    mse = {(row.imputer, row.masks, row.fraction): row.mse for row in rows}
    # The mean fill errs by the variance of CIFAR-10's pixels, some .065. The worst of the six measured .83 of that.
    for masks, fraction in {(row.masks, row.fraction) for row in rows}:
        assert mse["mean", masks, fraction] == pytest.approx(0.065, rel=0.2)
        assert mse["gain", masks, fraction] < 0.95 * mse["mean", masks, fraction]
