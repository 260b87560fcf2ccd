"""Scenes from a store: its maps, and the plan's images and imputers if they can be reached from here."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from roadworthy.core.errors import DataError
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions
from roadworthy.core.types import UNLABELED, Batch, Dataset, Imputer, Maps, Ranks
from roadworthy.experiments.build import build_data
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.registry import part
from roadworthy.experiments.runner import Work, imputers_at_hand
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.report.figures.pictures import Pixels, Scene


def scenes(
    plan: Plan, work: Work, store: Store, methods: Sequence[str], method: str, evaluated: Predictions, images: int = 3
) -> list[Scene]:
    """The first images with the pixels of `methods` removed as the first seed did, by the plan's first imputer."""
    data = build_data(plan)
    batch = next(data.batches(images))
    _check_same(batch, evaluated)
    maps = {name: torch.from_numpy(np.array(store.read_maps(work.maps[name].id)[: len(batch)])) for name in methods}
    imputers = imputers_at_hand(replace(work, plan=plan), store, data)
    return _scenes(batch, maps, imputers, plan, method, _titles(data, batch))


def _check_same(batch: Batch, evaluated: Predictions) -> None:
    known = batch.labels.numpy() != UNLABELED
    labels = evaluated.labels[: len(batch)]
    if (
        not np.array_equal(batch.ids.numpy(), evaluated.ids[: len(batch)])
        or (batch.labels.numpy() != labels)[known].any()
    ):
        raise DataError(
            "the images found here are not those that were evaluated: ids or labels differ; give their plan"
        )


def _scenes(
    batch: Batch,
    maps: dict[str, Maps],
    imputers: dict[str, Imputer],
    plan: Plan,
    method: str,
    titles: Sequence[str],
) -> list[Scene]:
    key = Key(plan.seeds[0])
    above = [fraction for fraction in plan.fractions if 0 < fraction < 1]
    shown = tuple(above[round(k)] for k in np.linspace(0, len(above) - 1, min(5, len(above))))
    ranks = {
        (name, order): part("orders", order).make()(maps, batch.ids, key)
        for name, maps in maps.items()
        for order in ("morf", "lerf")
    }
    first = next(iter(imputers))

    def filled(imputer: str, left: Ranks) -> list[list[Pixels]]:
        """Per image, fraction by fraction."""
        made = [imputers[imputer](batch, removed_at(left, fraction), key).numpy() for fraction in shown]
        return [list(pictures) for pictures in zip(*made, strict=True)]

    modified = {(name, order): filled(first, ranks[name, order]) for name, order in ranks if order in plan.orders}
    overview = {name: filled(name, ranks[method, "morf"]) for name in imputers}
    return [
        Scene(
            titles[row],
            batch.images[row].numpy(),
            shown,
            {name: _gray(ranks[name, "morf"][row]) for name in maps},
            first,
            {what: pictures[row] for what, pictures in modified.items()},
            method,
            {name: pictures[row] for name, pictures in overview.items()},
        )
        for row in range(len(batch))
    ]


def _gray(ranks: Ranks) -> Pixels:
    """The pixel that leaves first is white."""
    return (1 - ranks[None] / max(1, ranks.numel() - 1)).numpy().astype(np.float32)


def _titles(data: Dataset, batch: Batch) -> list[str]:
    names = [data.classes[label] if 0 <= label < len(data.classes) else f"class {label}" for label in batch.labels]
    return [f"image {int(id)}, {name}" for id, name in zip(batch.ids, names, strict=True)]
