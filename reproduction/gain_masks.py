"""GAIN on the paper's masks: scattered pixels, a random fraction up to .5 of each image. MSE of removed pixels.

python -m reproduction.gain_masks [--root data] [--work runs/gain-masks] [--out results] [--only default search long]

`default`: the recipe of plans/gain-cifar10.toml on these masks; `search`: the grid of alpha and hint, two epochs
on 10,000 images; `long`: the pair that the paper chose, ten epochs on 50,000 images. All at a quarter of the paper's
width. Beside them Noisy Linear and the fixed color, on the same masks of the same test images. Every training resumes
after its last complete epoch; weights are kept in `--work`.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from reproduction.ids import settings_id
from reproduction.tables import RESULTS, Results
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
RECIPE = GainRecipe(
    epochs=6, lr=1e-3, schedule="cosine", width=16, largest=LARGEST, masks="scatter",
    channels_last=True, autocast="bfloat16",
)  # fmt: skip
STEPS = ("default", "search", "long")
PLAIN = ("fixed", "linear", "linear without noise")
COLUMNS = ["imputer", "train_images", "epochs", "mse", "low", "high", "all_pixels", "images"]


class Size(NamedTuple):
    """Recipe and train images of each step, and the test images."""

    recipes: Mapping[str, GainRecipe]
    images: Mapping[str, int]
    tested: int
    alphas: tuple[float, ...] = ALPHAS
    hints: tuple[float, ...] = HINTS


_TINY = replace(RECIPE, epochs=1, batch_size=8, width=2, blocks=1, validation=0.25)
SIZES = {
    "full": Size(
        {"default": RECIPE, "search": replace(RECIPE, epochs=2), "long": replace(RECIPE, epochs=10)},
        {"default": 20_000, "search": 10_000, "long": 50_000},
        2000,
    ),
    "tiny": Size(dict.fromkeys(STEPS, _TINY), dict.fromkeys(STEPS, 16), 8, (100.0,), (0.01,)),
}


def tested_settings(size: Size) -> dict[str, Any]:
    return {"data": "cifar10 test", "images": size.tested, "largest": LARGEST, "masks": "scatter", "key": "tested"}


def settings(imputer: str, size: Size) -> dict[str, Any]:
    """Everything that a row of `gain-masks` depends on, beside the data."""
    step = imputer.removeprefix("GAIN, ")
    trained = {"recipe": asdict(size.recipes[step]), "train": size.images[step]} if step in STEPS else {}
    return {"imputer": imputer, **trained, **tested_settings(size)}


def search_settings(alpha: float, hint: float, size: Size) -> dict[str, Any]:
    """Everything that a row of `gain-masks-search` depends on; measured on the held-out images of its training."""
    recipe = replace(size.recipes["search"], alpha=alpha, hint=hint)
    return {"recipe": asdict(recipe), "train": size.images["search"], "data": "cifar10 train"}


def with_ids(table: pd.DataFrame, size: Size = SIZES["full"]) -> pd.DataFrame:
    """The table `gain-masks` or `gain-masks-search`, each row with its id."""
    if "alpha" in table:
        ids = [settings_id(search_settings(row.alpha, row.hint, size)) for row in table.itertuples()]
    else:
        ids = [settings_id(settings(name, size)) for name in table["imputer"]]
    return table.assign(item=ids)


def with_kept(old: pd.DataFrame, new: pd.DataFrame, size: Size = SIZES["full"]) -> pd.DataFrame:
    """The new rows, each in place of the one it replaces, and those of earlier runs whose settings are still these."""
    if not len(old):
        return new
    both = pd.concat([old[old["item"] == with_ids(old, size)["item"]], new])
    return both.groupby("item", sort=False).last().reset_index()[list(new)]


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


def trained(step: str, size: Size, root: Path, work: Path) -> Imputer:
    recipe = size.recipes[step]
    result = train_gain(
        recipe, first(CIFAR10(root, "train"), size.images[step]), checkpoint=work / f"{step}.checkpoint"
    )
    save_gain(result, recipe, work / f"{step}.safetensors")
    return result.gain


def done(step: str, results: Results, size: Size, work: Path) -> bool:
    """Whether its rows are in the results, and the weights in `work` that a plan needs."""
    if step == "search":
        return len(results.table("gain-masks-search")) == len(size.alphas) * len(size.hints)
    table = results.table("gain-masks")
    in_results = len(table) > 0 and f"GAIN, {step}" in set(table["imputer"])
    return in_results and (step != "long" or (work / "long.safetensors").exists())


def measured(steps: list[str], size: Size, root: Path, work: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables by name; longer ones follow as more is trained."""
    if not steps:
        return
    test = first(CIFAR10(root, "test"), size.tested)
    train = first(CIFAR10(root, "train"), size.images["long"])
    plain = (DatasetMean.of(train), NoisyLinear(), NoisyLinear(noise=0))
    rows = [(name, 0, 0, *hole_mse(one, test), size.tested) for name, one in zip(PLAIN, plain, strict=True)]
    for step in (step for step in ("default", "long") if step in steps):
        gain = trained(step, size, root, work)
        sizes = (size.images[step], size.recipes[step].epochs)
        rows.append((f"GAIN, {step}", *sizes, *hole_mse(gain, test), size.tested))
        yield "gain-masks", pd.DataFrame(rows, columns=COLUMNS)
    if "search" in steps:
        data = first(CIFAR10(root, "train"), size.images["search"])
        cells = []
        for cell in search(grid(size.recipes["search"], size.alphas, size.hints), data, work / "search"):
            cells.append(cell)
            yield "gain-masks-search", pd.DataFrame(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("data"), help="holds cifar-10-batches-bin")
    parser.add_argument("--work", type=Path, default=Path("runs/gain-masks"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", nargs="*", choices=STEPS, default=list(STEPS))
    parser.add_argument("--size", choices=list(SIZES), default="full")
    parser.add_argument("--left", action="store_true", help="leave out steps that are in the results already")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    size, results = SIZES[options.size], Results(options.out)
    steps = [step for step in options.only if not (options.left and done(step, results, size, options.work))]
    for name, table in measured(steps, size, options.root, options.work):
        results.write(name, with_kept(results.table(name), with_ids(table, size), size))


if __name__ == "__main__":
    main()
