"""Masks alone: how well is the class read off the masks, as their number grows?

python -m reproduction.mask_curve [--root data] [--work runs/mask-curve] [--out results]

Masks are those of the model that plans/cifar10-tables.toml explains: the most relevant half of the pixels, of up to
50,000 train images. The accuracy is measured on the masks of the 5,000 test images of that plan. Masks and finished
rows are kept: interrupt it and run it again to resume.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from reproduction.ids import settings_id, with_root
from reproduction.tables import PLANS, RESULTS, Results
from roadworthy.audit.mask_information import MASK_CLASSIFIERS, MaskClassifier
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Dataset
from roadworthy.datasets import CIFAR10, first
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.experiment import Experiment
from roadworthy.evaluation.orders import most_relevant_first
from roadworthy.evaluation.sweep import explain
from roadworthy.experiments.build import build
from roadworthy.experiments.plans import read_plan
from roadworthy.models import resnet18
from roadworthy.models.prediction import eval_mode
from roadworthy.statistics import share_interval
from roadworthy.training.loop import fit, shuffled
from roadworthy.training.recipe import Recipe

METHODS = ("IG-SG", "GB-SQ", "GB-Var")
"""the paper's example, and the two that reveal most in the first reproduction"""
FRACTION = 0.5
CHUNK = 5_000
"""images whose masks are kept in one file"""
READERS = {
    "small": replace(MASK_CLASSIFIERS["small"], recipe=replace(MASK_CLASSIFIERS["small"].recipe, select="last")),
    "resnet18": MaskClassifier(  # the paper's network, for 12 epochs instead of 40
        partial(resnet18, stem="imagenet", channels=1),
        Recipe(epochs=12, batch_size=128, lr=2e-3, schedule="cosine", select="last", channels_last=True),
        224,
    ),
}


class Size(NamedTuple):
    """Test masks, numbers of train masks for the small reader and the paper's network, epochs if not the recipe's."""

    tested: int
    small: tuple[int, ...]
    resnet18: tuple[int, ...]
    epochs: int = 0

    def reader(self, name: str) -> MaskClassifier:
        reader = READERS[name]
        return replace(reader, recipe=replace(reader.recipe, epochs=self.epochs)) if self.epochs else reader

    def trials(self) -> list[tuple[str, str, int]]:
        small = [("small", method, count) for method in METHODS for count in self.small]
        return small + [("resnet18", "IG-SG", count) for count in self.resnet18]


SIZES = {
    "full": Size(5_000, (2_500, 5_000, 10_000, 20_000, 50_000), (10_000, 50_000)),
    "tiny": Size(8, (8, 16), (8,), epochs=1),
}
COLUMNS = ["reader", "method", "masks", "accuracy", "low", "high", "images"]


def settings(reader: str, method: str, masks: int, size: Size) -> dict[str, Any]:
    """Everything that a row depends on, beside the plan's model and data."""
    recipe = size.reader(reader).recipe.spec
    return {
        "reader": reader,
        "recipe": recipe,
        "method": method,
        "masks": masks,
        "fraction": FRACTION,
        "tested": size.tested,
    }


def with_ids(table: pd.DataFrame, size: Size = SIZES["full"]) -> pd.DataFrame:
    ids = [settings_id(settings(row.reader, row.method, int(row.masks), size)) for row in table.itertuples()]
    return table.assign(item=ids)


def masks(experiment: Experiment, data: Dataset) -> dict[str, NDArray[np.uint8]]:
    """Packed bits `(n, 128)` per method, and the labels."""
    parts: dict[str, list[Tensor]] = {method: [] for method in METHODS}
    labels = []
    methods = {method: experiment.methods[method] for method in METHODS}
    with eval_mode(experiment.model, experiment.device):
        for batch in data.batches(experiment.map_batch_size):
            maps = explain(methods, experiment.model, batch, experiment.map_key)
            labels.append(batch.labels)
            for method in METHODS:
                ranks = most_relevant_first(maps[method], batch.ids, Key(0))
                parts[method].append(removed_at(ranks, FRACTION))
    packed = {method: np.packbits(torch.cat(part).flatten(1).numpy(), axis=1) for method, part in parts.items()}
    return {**packed, "labels": torch.cat(labels).numpy().astype(np.uint8)}


def kept_masks(experiment: Experiment, name: str, data: Dataset, work: Path) -> Iterator[dict[str, NDArray[np.uint8]]]:
    """Of all images, chunk by chunk; those that exist are read."""
    for start in range(0, len(data), CHUNK):
        path = work / f"{name}-{start}.npz"
        if not path.exists():
            rows = list(range(start, min(start + CHUNK, len(data))))
            part = path.with_suffix(".part.npz")
            np.savez_compressed(part, **masks(experiment, picked(data, rows)))
            part.rename(path)
        with np.load(path) as file:
            yield {key: file[key] for key in file.files}


def inputs(packed: NDArray[np.uint8]) -> Tensor:
    """−1 and 1, so that a mask and its complement carry the same information."""
    return torch.from_numpy(np.unpackbits(packed, axis=1)).reshape(-1, 1, 32, 32).float() * 2 - 1


def accuracy(reader: MaskClassifier, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> NDArray[np.bool_]:
    """Which test masks a reader of the train masks classifies correctly."""
    key = Key(0).fold("mask curve")
    with key.fold("init").torch_rng():
        network = reader.make(10)
    fit(network, shuffled(*train, reader.recipe.batch_size, key), reader.recipe, key=key)
    network.eval()
    with torch.no_grad():
        predicted = torch.cat([network(piece).argmax(dim=1) for piece in torch.split(test[0], 250)])
    return (predicted == test[1]).numpy()  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("data"), help="holds cifar-10-batches-bin and weights")
    parser.add_argument("--work", type=Path, default=Path("runs/mask-curve"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--plan", type=Path, default=PLANS / "cifar10-tables.toml")
    parser.add_argument("--size", choices=list(SIZES), default="full")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    size = SIZES[options.size]
    plan = with_root(read_plan(options.plan), options.root)
    weights = options.root / "weights" / Path(plan.model["weights"]).name
    experiment = build(replace(plan, model={**plan.model, "weights": str(weights.resolve())}))
    largest = max(*size.small, *size.resnet18)
    splits = {"test": CIFAR10(options.root, "test"), "train": CIFAR10(options.root, "train")}
    packed = {}
    for name, count in (("test", size.tested), ("train", largest)):
        chunks = list(kept_masks(experiment, name, first(splits[name], count), options.work))
        packed[name] = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
    labels = {name: torch.from_numpy(arrays["labels"]).long() for name, arrays in packed.items()}
    results = Results(options.out)
    table = results.table("mask-curve")
    done = set(zip(*(table[name] for name in COLUMNS[:3]), strict=True)) if len(table) else set()
    for reader, method, count in (trial for trial in size.trials() if trial not in done):
        train = inputs(packed["train"][method][:count]), labels["train"][:count]
        correct = accuracy(size.reader(reader), train, (inputs(packed["test"][method]), labels["test"]))
        low, high = share_interval(correct[None].astype(float))
        row = pd.DataFrame([(reader, method, count, correct.mean(), low, high, len(correct))], columns=COLUMNS)
        table = pd.concat([table, with_ids(row, size)]) if len(table) else with_ids(row, size)
        results.write("mask-curve", table)


if __name__ == "__main__":
    main()
