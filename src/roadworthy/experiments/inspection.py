"""The leakage audit of a comparison, in memory: its own images and maps, the measures of the lab book."""

import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import torch

from roadworthy.attributions.controls import blurred
from roadworthy.audit.geometry import Geometry, geometry_of
from roadworthy.audit.mask_detection import recover, train_predictor
from roadworthy.audit.mask_information import check_classes
from roadworthy.audit.tables import Hole, audit_tables, most_relevant_share
from roadworthy.core.masks import removed_at
from roadworthy.core.progress import progress_bar
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions, Recovered
from roadworthy.core.types import Dataset, Imputer, Labels, Maps, Order
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.orders import rank
from roadworthy.experiments.auditing import Settings, apart, method_holes, read_share, recovered_patterns
from roadworthy.experiments.study import Evaluated


class Scratch:
    """A folder that goes when nobody holds it any more."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="roadworthy-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class Material:
    """What an audit of a comparison looks at."""

    data: Dataset
    labels: Labels
    maps: Mapping[str, Callable[[], Maps]]
    orders: Mapping[str, Order]
    imputers: Mapping[str, Imputer]
    seed: int
    scratch: Scratch
    """where the maps lie"""


def material_of(evaluated: Sequence[Evaluated], data: Dataset, copied: Sequence[str], scratch: Scratch) -> Material:
    """The images that were evaluated, in the order of `data`, with the maps on the shelf and blurred copies of some."""
    study = evaluated[0].study
    place = {int(sample): row for row, sample in enumerate(data.ids)}
    rows = np.array([place[int(sample)] for one in evaluated for sample in one.plain.ids])
    order = torch.from_numpy(np.argsort(rows))

    def loaded(name: str) -> Maps:
        return torch.cat([one.shelf.get(name, slice(None)) for one in evaluated])[order]

    def copy(name: str) -> Maps:
        return blurred(loaded(name))

    maps = {name: partial(loaded, name) for name in study.methods}
    labels = torch.from_numpy(np.concatenate([one.plain.labels for one in evaluated]))[order]
    return Material(
        picked(data, np.sort(rows).tolist()),
        labels,
        {**maps, **{f"{name} blurred": partial(copy, name) for name in copied}},
        study.orders,
        study.imputers,
        study.seeds[0],
        scratch,
    )


def inspect(material: Material, settings: Settings, progress: bool = True) -> dict[str, pd.DataFrame]:
    """masks, recovery, geometry and predictions as tables (docs/audit.md)."""
    check_classes(material.labels.numpy(), len(material.data.classes))
    orders, key = list(material.orders), Key(material.seed)
    shares = sorted({most_relevant_share(*one) for one in product(orders, settings.fractions)})
    steps = len(material.maps) * (len(shares) + len(material.imputers) + 1) + len(material.imputers)
    recovered: dict[Hole, Recovered] = {}
    read: dict[tuple[str, float], Predictions] = {}
    shapes: list[Geometry] = []
    with progress_bar("auditing", steps, progress) as advance:
        learned, tested, rows = apart(material.data, key)
        networks = {}
        for name, imputer in material.imputers.items():
            networks[name] = train_predictor(imputer, learned, key.fold("predictor"))
            recovered |= dict(recovered_patterns(networks[name], name, imputer, tested, settings.fractions, key))
            advance(1)
        for method, load in material.maps.items():
            maps = load()
            ranks = rank(material.orders, maps, material.data.ids, key)
            one = {method: partial(_same, maps)}
            shapes.append(geometry_of(material.data, material.labels, one, material.orders, settings.fractions, key))
            advance(1)
            for name, imputer in material.imputers.items():
                for hole in method_holes(name, method, orders, settings.fractions):
                    removed = removed_at(ranks[hole.order][rows], hole.fraction)
                    recovered[hole] = recover(networks[name], imputer, tested, removed, key)
                advance(1)
            for share in shares:
                read[method, share] = read_share(maps, share, material.labels, material.data.ids, key, settings)
                advance(1)
    return audit_tables(read, recovered, shapes, orders, settings.fractions)


def _same(maps: Maps) -> Maps:
    return maps
