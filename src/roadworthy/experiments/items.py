"""Items of work: what is recorded in a store, each named by the hash of what it means.

An item's spec holds strings, numbers, lists and tables only, with the fingerprints of data and weights in place of
their paths: changed data or weights are new work, another folder is not.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import torch

from roadworthy.core.results import Point
from roadworthy.core.types import Dataset
from roadworthy.experiments.plans.plan import LOCATIONS, Plan, Spec
from roadworthy.models.normalized import Normalized

Kind = Literal["map", "trial", "model", "audit"]


class Fingerprints(NamedTuple):
    """Hashes of the images with their labels and ids, of the model's weights, and of the train images if any."""

    data: str
    model: str
    train: str = ""
    imputers: Mapping[str, str] = {}
    """of the weights of each imputer that has some"""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One point, as strings and numbers: what a Predictions is an answer to."""

    dataset: Spec
    model: Spec
    attribution: Spec
    order: str
    imputer: Spec
    evaluator: str | Spec
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


def train_map_items(plan: Plan, prints: Fingerprints) -> dict[str, Item]:
    """method to the item of its map of the train split, where models are retrained on it"""
    if not plan.retrains or plan.train is None:
        return {}
    items = map_items(replace(plan, data=plan.train), prints._replace(data=prints.train))
    return {name: replace(item, label={**item.label, "split": "train"}) for name, item in items.items()}


def model_items(plan: Plan, prints: Fingerprints) -> dict[tuple[str, int], Item]:
    """(imputer, seed) to the item of the model that is tuned with random masks"""
    common = {"model": _subject(plan, prints)["model"], "threads": plan.threads, **_training(plan, prints)}
    return {
        (imputer, seed): Item(
            "model",
            {**common, "imputer": imputer_spec(plan, prints, imputer), "seed": seed},
            {"evaluator": "fine-tuned", "imputer": imputer, "seed": seed},
        )
        for imputer, seed in plan.tunings()
    }


def imputer_items(plan: Plan, prints: Fingerprints) -> dict[str, Item]:
    """imputer to the item of its training"""
    return {
        name: Item("model", {"imputer": imputer_spec(plan, prints, name), "threads": plan.threads}, {"imputer": name})
        for name in plan.trained_imputers
    }


def imputer_spec(plan: Plan, prints: Fingerprints, name: str) -> Spec:
    """What it was trained with, or the fingerprint of its weights, tells one trained imputer from another."""
    spec = plan.imputers[name]
    if name in plan.trained_imputers and plan.train is not None and plan.gain is not None:
        train = {**_placeless(plan.train), "fingerprint": prints.train}
        return {**spec, "train": train, "recipe": asdict(plan.gain)}
    return {**_placeless(spec), "fingerprint": prints.imputers[name]} if name in plan.imputer_files else spec


def trial_items(plan: Plan, prints: Fingerprints) -> Iterator[tuple[Point, Item]]:
    """Without removal a retrained model depends on no method, order or imputer: those points share one item."""
    subject, maps, evaluators = _subject(plan, prints), plan.maps, _evaluators(plan, prints)
    imputers = {name: imputer_spec(plan, prints, name) for name in plan.imputers}
    map_setting = {"map_seed": plan.map_seed, "map_batch": plan.map_batch}
    for method, order, imputer, evaluator, seed in plan.sweeps():
        for fraction in plan.fractions:
            trial = Trial(
                **subject, attribution={**maps[method], **map_setting}, order=order, imputer=imputers[imputer],
                evaluator=evaluators[evaluator], fraction=fraction, seed=seed, batch=plan.batch, threads=plan.threads,
            )  # fmt: skip
            if evaluator == "retrain" and fraction == 0:
                trial = replace(trial, attribution={}, order="", imputer={})
            point = Point(method, order, imputer, evaluator, fraction, seed)
            yield point, Item("trial", asdict(trial), point._asdict())


def _evaluators(plan: Plan, prints: Fingerprints) -> dict[str, str | Spec]:
    """A evaluator that trains is told by all it trains with."""
    training = _training(plan, prints)
    return {
        "no-retrain": "no-retrain",
        "retrain": {"name": "retrain", **training, "network": _placeless(plan.network or {})},
        "fine-tuned": {"name": "fine-tuned", **training},
    }


def _training(plan: Plan, prints: Fingerprints) -> dict[str, Any]:
    if plan.train is None or plan.recipe is None:
        return {}
    functions = {key: value for key, value in (("loss", plan.loss), ("augment", plan.augment)) if value}
    train = {**_placeless(plan.train), "fingerprint": prints.train}
    return {"train": train, "recipe": asdict(plan.recipe), **functions}


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


def fingerprint_model(model: Normalized) -> str:
    """Of every weight and buffer, and of the normalization."""
    digest = hashlib.sha256()
    tensors = {**model.state_dict(), "mean": model.mean, "std": model.std}
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()
