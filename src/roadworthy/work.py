"""What a worker does: build a plan's parts, compute maps, judge sweeps. It returns arrays and writes nothing."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.attributions import Blurred
from roadworthy.datasets import first
from roadworthy.errors import PlanError, RoadworthyError
from roadworthy.evaluation import FixedModel, evaluating, explain, judge_batch, labelled, predict, verdict
from roadworthy.imputers.multigrid import compile_now
from roadworthy.items import Fingerprints, fingerprint_data, fingerprint_model
from roadworthy.keys import Key
from roadworthy.models import load
from roadworthy.parts import PARTS, part
from roadworthy.plan import LOCATIONS, Plan, Spec
from roadworthy.types import UNLABELLED, Attribution, Dataset, Imputer, Normalised, Removal, Verdict


class Context(NamedTuple):
    """The parts of a plan, built."""

    data: Dataset
    model: Normalised
    methods: dict[str, Attribution]
    imputers: dict[str, Imputer]


@dataclass(frozen=True, eq=False)
class MapTask:
    """Maps that share what they are computed from."""

    plan: Plan
    methods: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SweepTask:
    """One map in one order with one imputer, judge and seed, at those fractions that are missing."""

    plan: Plan
    method: str
    order: str
    imputer: str
    judge: str
    seed: int
    fractions: tuple[float, ...]
    scores: NDArray[np.float32]


Task = MapTask | SweepTask


class Done(NamedTuple):
    """Scores per method, or a Verdict per fraction, and the seconds that it took."""

    results: Mapping[Any, Any]
    seconds: float


def perform(task: Task) -> Done:
    with _threads(task.plan.threads):
        context = built(task.plan)
        compile_now()  # once per machine; its time belongs to no item
        started = time.perf_counter()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        with evaluating(context.model, device):
            results = _maps(task, context) if isinstance(task, MapTask) else _sweep(task, context, device)
    return Done(results, time.perf_counter() - started)


def _maps(task: MapTask, context: Context) -> dict[str, NDArray[np.float32]]:
    wanted = {name: context.methods[name] for name in task.methods}
    key = Key(task.plan.map_seed).fold("maps")
    pieces: list[Mapping[str, Any]] = []
    for batch in context.data.batches(task.plan.map_batch):
        known = labelled(batch, predict(context.model, batch.images, context.model.device))
        pieces.append(explain(wanted, context.model, known, key))
    return {name: np.concatenate([piece[name].numpy() for piece in pieces]) for name in wanted}


def _sweep(task: SweepTask, context: Context, device: torch.device) -> dict[float, Verdict]:
    removal = Removal(part("orders", task.order).make(), context.imputers[task.imputer])
    judge, key = FixedModel(context.model), Key(task.seed)
    above = [fraction for fraction in task.fractions if fraction > 0]
    pieces: dict[float, list[Verdict]] = {fraction: [] for fraction in task.fractions}
    start = 0
    for batch in context.data.batches(task.plan.batch):
        known = batch
        if 0 in pieces or (batch.labels == UNLABELLED).any():
            plain = predict(context.model, batch.images, device)
            known = labelled(batch, plain)
            if 0 in pieces:
                pieces[0].append(verdict(known, known.labels, plain))
        scores = torch.from_numpy(task.scores[start : start + len(batch)])
        judged = judge_batch(judge, removal, scores, known, known.labels, above, key, device)
        for fraction, one in zip(above, judged, strict=True):
            pieces[fraction].append(one)
        start += len(batch)
    return {fraction: Verdict.join(verdicts) for fraction, verdicts in pieces.items()}


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def built(plan: Plan) -> Context:
    """The parts of a plan; one plan is kept, because a worker does many tasks of the same."""
    return _built(_Hashable(plan))


class _Hashable:
    """A plan by its content."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.text = repr(plan)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashable) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=1)
def _built(hashable: _Hashable) -> Context:
    plan = hashable.plan
    data = build_data(plan)
    return Context(
        data,
        build_model(plan),
        {name: _named(f"methods.{name}", build_method, spec) for name, spec in plan.maps.items()},
        {
            name: _named(f"evaluation.imputers: {name}", build_imputer, spec, data)
            for name, spec in plan.imputers.items()
        },
    )


def fingerprints(plan: Plan) -> Fingerprints:
    context = built(plan)
    return Fingerprints(fingerprint_data(context.data), fingerprint_model(context.model))


def build_data(plan: Plan) -> Dataset:
    options = {**_placed(plan.data, plan.folder)}
    images = options.pop("images", None)
    data: Dataset = _named("data", _make, "datasets", options)
    return data if images is None else first(data, images)


def build_model(plan: Plan) -> Normalised:
    options = dict(_placed(plan.model, plan.folder))
    norm = {key: options.pop(key) for key in ("mean", "std") if key in options}
    name, weights, factory = options.pop("name"), options.pop("weights", None), options.pop("factory", None)
    maker = factory or PARTS["models"][name].make
    with _importable(plan.folder):
        network = _named("model", lambda: load(maker, weights, **options))
    return network if isinstance(network, Normalised) and not norm else Normalised(network, **norm)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """A factory in a file beside the plan is found, wherever the worker runs."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def build_method(spec: Spec) -> Attribution:
    if spec["name"] == "blurred":
        options = {key: value for key, value in spec.items() if key not in ("name", "of")}
        return Blurred(build_method(spec["of"]), **options)
    method: Attribution = _make("attributions", spec)
    return method


def build_imputer(spec: Spec, data: Dataset) -> Imputer:
    named = part("imputers", spec["name"])
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in spec.items() if key != "name"}
    imputer: Imputer = named.make(data, **options) if named.needs_data else named.make(**options)
    return imputer


def _make(family: str, spec: Spec) -> Any:
    return part(family, spec["name"]).make(**{key: value for key, value in spec.items() if key != "name"})


def _placed(spec: Spec, folder: Path) -> Spec:
    """Paths relative to the plan's folder, made usable from here."""
    return {key: folder / value if key in LOCATIONS else value for key, value in spec.items()}


def _named(key: str, make: Any, *arguments: Any) -> Any:
    """Whatever goes wrong while building a part is told with the plan's key."""
    try:
        return make(*arguments)
    except RoadworthyError as error:
        raise PlanError(f"{key}: {error}") from error
    except TypeError as error:
        raise PlanError(f"{key}: {error}; see `roadworthy parts` and the docstring of the part") from error


def groups(plan: Plan, methods: Sequence[str]) -> list[tuple[str, ...]]:
    """Methods that share a source (one stream of samples) are computed together."""
    context = built(plan)
    found: dict[Any, list[str]] = {}
    for name in methods:
        method = context.methods[name]
        while (source := getattr(method, "source", None)) is not None:
            method = source
        found.setdefault(method, []).append(name)
    return [tuple(names) for names in found.values()]
