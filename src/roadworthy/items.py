"""Items of work: what is recorded in a store, each named by the hash of what it means.

An item's spec holds strings, numbers, lists and tables only, with the fingerprints of data and weights in place of
their paths: changed data or weights are new work, another folder is not.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import torch

from roadworthy.plan import LOCATIONS, Plan, Spec
from roadworthy.types import Dataset, Dot, Normalised

Kind = Literal["map", "trial"]


class Fingerprints(NamedTuple):
    """Hashes of the images with their labels and ids, and of the model's weights."""

    data: str
    model: str


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One dot, as strings and numbers: what a Verdict is an answer to."""

    dataset: Spec
    model: Spec
    attribution: Spec
    order: str
    imputer: Spec
    judge: str
    fraction: float
    seed: int
    batch: int
    threads: int


@dataclass(frozen=True, eq=False)
class Item:
    kind: Kind
    spec: Mapping[str, Any]
    label: Mapping[str, Any]
    """how the plan calls it (method and imputer by name): shown to people, no part of the id"""

    @property
    def id(self) -> str:
        text = canonical({"kind": self.kind, "spec": self.spec})
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def canonical(value: Any) -> str:
    """
    >>> canonical({"b": 1, "a": [0.5, "é"]})
    '{"a":[0.5,"é"],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def map_items(plan: Plan, prints: Fingerprints) -> dict[str, Item]:
    """method to the item of its map"""
    common = {**_subject(plan, prints), "seed": plan.map_seed, "batch": plan.map_batch, "threads": plan.threads}
    return {name: Item("map", {**common, "attribution": spec}, {"method": name}) for name, spec in plan.maps.items()}


def trial_items(plan: Plan, prints: Fingerprints) -> Iterator[tuple[Dot, Item]]:
    subject, maps = _subject(plan, prints), plan.maps
    map_setting = {"map_seed": plan.map_seed, "map_batch": plan.map_batch}
    for method, order, imputer, judge, seed in plan.sweeps():
        for fraction in plan.fractions:
            trial = Trial(
                **subject, attribution={**maps[method], **map_setting}, order=order, imputer=plan.imputers[imputer],
                judge=judge, fraction=fraction, seed=seed, batch=plan.batch, threads=plan.threads,
            )  # fmt: skip
            dot = Dot(method, order, imputer, judge, fraction, seed)
            yield dot, Item("trial", asdict(trial), dot._asdict())


def _subject(plan: Plan, prints: Fingerprints) -> dict[str, Spec]:
    return {
        "dataset": {**_placeless(plan.data), "fingerprint": prints.data},
        "model": {**_placeless(plan.model), "fingerprint": prints.model},
    }


def _placeless(spec: Spec) -> Spec:
    return {key: value for key, value in spec.items() if key not in LOCATIONS}


def fingerprint_data(data: Dataset) -> str:
    digest = hashlib.sha256()
    for batch in data.batches(256):
        for tensor in (batch.ids, batch.labels, batch.images):
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def fingerprint_model(model: Normalised) -> str:
    """Of every weight and buffer, and of the normalisation."""
    digest = hashlib.sha256()
    tensors = {**model.state_dict(), "mean": model.mean, "std": model.std}
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()
