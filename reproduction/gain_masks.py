"""GAIN on the paper's masks: scattered pixels, a random fraction up to .5 of each image. MSE of removed pixels.

python -m reproduction.gain_masks [--root data] [--work runs/gain-masks] [--out results] [--only default search long]

`default`: the recipe of plans/gain-cifar10.toml on these masks; `search`: the grid of alpha and hint, two epochs
on 10,000 images; `long`: the pair that the paper chose, ten epochs on 50,000 images. All at a quarter of the paper's
width. Beside them Noisy Linear and the fixed color, on the same masks of the same test images. Every training resumes
after its last complete epoch; weights are kept in `--work`.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

from reproduction.collect import RESULTS, write
from roadworthy.core.masks import random_masks
from roadworthy.core.random import Key
from roadworthy.core.types import Dataset, Imputer
from roadworthy.datasets import CIFAR10, first
from roadworthy.evaluation.quality import imputation_mse
from roadworthy.imputers import DatasetMean, NoisyLinear
from roadworthy.statistics import mean_interval
from roadworthy.training.gain import GainRecipe, save_gain, train_gain
from roadworthy.training.gain_search import ALPHAS, HINTS, grid, search

LARGEST = 0.5
RECIPE = GainRecipe(epochs=6, lr=1e-3, schedule="cosine", width=16, largest=LARGEST, masks="scatter")
LONG = replace(RECIPE, epochs=10)
SEARCH = replace(RECIPE, epochs=2)
TESTED = 2000
STEPS = ("default", "search", "long")


def train_images(root: Path, batches: tuple[int, ...], images: int) -> Dataset:
    return first(CIFAR10(root, "train", train_batches=batches), images)


def hole_mse(imputer: Imputer, data: Dataset) -> tuple[float, float, float, float]:
    """Of removed pixels, the mean over images with its 95 % interval; and of all pixels, as in the paper's code: there
    kept pixels count with an error of 0."""
    errors, whole = [], []
    for batch in data.batches(250):
        removed = random_masks(batch.ids, (32, 32), LARGEST, "scatter", Key(0).fold("tested"))
        filled = imputer(batch, removed, Key(0))
        errors.append(imputation_mse(filled, batch.images, removed))
        whole.append((filled - batch.images).square().mean(dim=(1, 2, 3)))
    values = torch.cat(errors).double().numpy()
    return float(values.mean()), *mean_interval(values[None]), float(torch.cat(whole).mean())


def trained(name: str, recipe: GainRecipe, data: Dataset, work: Path) -> Imputer:
    result = train_gain(recipe, data, checkpoint=work / f"{name}.checkpoint")
    save_gain(result, recipe, work / f"{name}.safetensors")
    return result.gain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("data"), help="holds cifar-10-batches-bin")
    parser.add_argument("--work", type=Path, default=Path("runs/gain-masks"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", nargs="*", choices=STEPS, default=STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    everything = (1, 2, 3, 4, 5)
    test = first(CIFAR10(options.root, "test"), TESTED)
    imputers: dict[str, tuple[Imputer, int, int]] = {
        "fixed": (DatasetMean.of(train_images(options.root, everything, 50_000)), 0, 0),
        "linear": (NoisyLinear(), 0, 0),
        "linear without noise": (NoisyLinear(noise=0), 0, 0),
    }
    for name, recipe, images in (("default", RECIPE, 20_000), ("long", LONG, 50_000)):
        if name in options.only:
            gain = trained(name, recipe, train_images(options.root, everything, images), options.work)
            imputers[f"GAIN, {name}"] = (gain, images, recipe.epochs)
            rows = [(key, *sizes, *hole_mse(imputer, test), TESTED) for key, (imputer, *sizes) in imputers.items()]
            columns = ["imputer", "train_images", "epochs", "mse", "low", "high", "all_pixels", "images"]
            write("gain-masks", pd.DataFrame(rows, columns=columns), options.out)
    if "search" in options.only:
        data = train_images(options.root, everything, 10_000)
        cells = []
        for cell in search(grid(SEARCH, ALPHAS, HINTS), data, options.work / "search"):
            cells.append(cell)
            write("gain-masks-search", pd.DataFrame(cells), options.out)


if __name__ == "__main__":
    main()
