"""The one-call door: a model, images, methods; out comes a Comparison that answers with tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch

from roadworthy import statistics
from roadworthy.attributions.controls import blurred
from roadworthy.attributions.maps import Reduce
from roadworthy.core.errors import InputError, RangeError
from roadworthy.core.masks import FRACTIONS, checked_fractions
from roadworthy.core.progress import progress_bar
from roadworthy.core.random import Key
from roadworthy.core.results import Point, Predictions
from roadworthy.core.types import Dataset, Maps, Model
from roadworthy.datasets import as_dataset
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.inspection import Scratch, material_of
from roadworthy.experiments.registry import part
from roadworthy.experiments.study import (
    Evaluated,
    Explained,
    Study,
    as_imputers,
    as_method,
    evaluator_all,
    evaluator_study,
    evaluator_until,
    joined,
    joined_ties,
    rehearse,
)
from roadworthy.imputers import NoisyLinear
from roadworthy.models.normalized import as_model
from roadworthy.models.prediction import evaluating

CONTROLS = ("random", "edges", "center", "blurred", "inverted")
"""What methods are measured against; `blurred` and `inverted` are copies of the leading methods."""

_LEADERS = 2


def compare(
    model: Any,
    data: Any,
    methods: Mapping[str, Any],
    *,
    imputer: Any = NoisyLinear(),  # noqa: B008  a frozen value
    orders: Sequence[str] = ("morf", "lerf"),
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = (0,),
    target: Literal["label", "prediction"] = "label",
    controls: Sequence[str] = CONTROLS,
    until_ranked: float | None = None,
    margin: float = 0.02,
    reduce: Reduce = "sum",
    map_seed: int = 0,
    map_batch: int = 64,
    batch_size: int = 64,
    device: torch.device | str | None = None,
    progress: bool = True,
) -> Comparison:
    """Measure which of `methods` found what `model` uses, without retraining (ROAD).

    `model`: a torch Module or any callable images -> logits; wrap it in `Normalized` if it expects normalized input.
    `data`: (images, labels), images alone, a torch Dataset or DataLoader, or a data set of `rw.datasets`.
    `methods`: name to an attribution, a plain function (model, batch, key) -> maps, ready maps or a part's name.
    `imputer`: an imputer or a part's name, or several as {name: imputer}.
    `target`: what is explained and whose probability is reported; accuracy is always against the label.
    `batch_size`: images evaluated at once, for speed; `map_batch`: images explained at once.
    `controls`: ranked beside the methods and marked; () for none.
    `until_ranked`: take images in growing batches, in an order fixed by the first seed, and stop when every two methods
    are told apart or their combined maps surely differ by less than `margin`, at this level for all pairs together
    (docs/statistics.md). Blurred and inverted copies are evaluated afterwards, on the images that were taken.
    """
    _check_names(methods, orders, seeds, target, controls)
    shares = _above_zero(fractions)
    dataset, network = as_dataset(data), as_model(model)
    plain_controls = [name for name in controls if name not in ("blurred", "inverted")]
    study = Study(
        model=network,
        data=dataset,
        methods={
            **{name: as_method(name, method, dataset) for name, method in methods.items()},
            **{name: part("attributions", name).make() for name in plain_controls},
        },
        imputers=as_imputers(imputer, dataset),
        orders={name: part("orders", name).make() for name in orders},
        fractions=shares,
        seeds=tuple(seeds),
        explain_prediction=target == "prediction",
        reduce=reduce,
        map_key=Key(map_seed).fold("maps"),
        map_batch=map_batch,
        batch_size=batch_size,
        device=_device(device) if device else network.device,
    )
    stopping = _stopping(study, until_ranked, margin, _copies(controls, orders, len(methods)))
    scratch = Scratch()
    with (
        evaluating(network, study.device),
        progress_bar("comparing", None if stopping else _forwards(study, controls, len(methods)), progress) as advance,
    ):
        examples = rehearse(study)
        if stopping:
            done = evaluator_until(study, _ranked(stopping), scratch.path, advance)
        else:
            done = [evaluator_study(study, scratch.path, advance)]
        predictions = joined([one.predictions for one in done])
        leaders = _leaders(predictions, list(methods))
        if "blurred" in controls:
            predictions |= joined([evaluator_all(one, _blurred(one, leaders), advance) for one in done])
            copied = _blurred_copies({name: examples.maps[name] for name in leaders})
            examples = replace(examples, maps={**examples.maps, **copied})
    if "inverted" in controls and {"morf", "lerf"} <= set(orders):
        predictions |= _inverted(predictions, leaders)
    marked = tuple(sorted({point.method for point in predictions} - set(methods)))
    material = material_of(done, dataset, leaders if "blurred" in controls else (), scratch)
    return Comparison(
        predictions, marked, study.imputers, examples, dataset.classes, joined_ties(done), stopping, len(dataset),
        material, _described(network, dataset),
    )  # fmt: skip


def _described(model: Model, data: Dataset) -> dict[str, str]:
    """What was evaluated and on what, for people."""
    network = getattr(model.network, "network", model.network)
    name = getattr(network, "__name__", type(network).__name__)
    weights = sum(parameter.numel() for parameter in model.parameters())
    while isinstance(whole := getattr(data, "data", None), Dataset):  # a part of a data set is named by the whole
        data = whole
    return {"Model": f"{name}, {weights:,} weights" if weights else name, "Data": type(data).__name__}


def _copies(controls: Sequence[str], orders: Sequence[str], methods: int) -> int:
    """How many blurred and inverted copies there will be; which methods they copy is not known beforehand."""
    kinds = [name for name in ("blurred", "inverted") if name in controls]
    if not {"morf", "lerf"} <= set(orders):
        kinds = [name for name in kinds if name != "inverted"]
    return len(kinds) * min(_LEADERS, methods)


def _forwards(study: Study, controls: Sequence[str], methods: int) -> int:
    return study.forwards(len(study.methods) + _copies([name for name in controls if name == "blurred"], (), methods))


def _stopping(study: Study, level: float | None, margin: float, copies: int) -> statistics.Stopping | None:
    """The error is shared by every pair that will ever be compared, copies and imputers included."""
    if level is None:
        return None
    if not 0.5 <= level < 1:
        raise RangeError(f"until_ranked={level}: give how sure to be, from 0.5 to below 1, such as 0.95")
    if not margin >= 0:
        raise RangeError(f"margin={margin}: give a difference of maps, 0 or more, such as 0.02")
    if len(study.methods) < 2:
        raise InputError("until_ranked needs at least 2 methods: add a method or a control")
    contenders = len(study.methods) + copies
    return statistics.Stopping(level, margin, contenders * (contenders - 1) // 2 * len(study.imputers))


def _ranked(stopping: statistics.Stopping) -> Callable[[Mapping[Point, Predictions]], bool]:
    return lambda predictions: not statistics.undecided(statistics.pairs(predictions, stopping=stopping)).any()


def _device(name: torch.device | str) -> torch.device:
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device={name!r} cannot be used here ({error}): leave it out, or give 'cpu'") from error


def _check_names(
    methods: Mapping[str, Any], orders: Sequence[str], seeds: Sequence[int], target: str, controls: Sequence[str]
) -> None:
    if not isinstance(methods, Mapping):
        raise InputError(
            f"methods is a {type(methods).__name__}: give names, {{'IG': rw.attributions.IntegratedGradients()}}"
        )
    for key, value in (("orders", orders), ("controls", controls), ("seeds", seeds)):
        if isinstance(value, str | int):
            raise InputError(f"{key}={value!r}: give several, as in {key}=({value!r},)")
    if not methods or not orders or not seeds:
        raise InputError("methods, orders and seeds must each hold at least one entry")
    if target not in ("label", "prediction"):
        raise InputError(f"target={target!r}: explain the 'label' or the 'prediction'")
    if unknown := [name for name in controls if name not in CONTROLS]:
        raise InputError(f"control {unknown[0]!r}: choose from {', '.join(CONTROLS)}, or () for none")
    if clash := [name for name in methods if name in controls]:
        raise InputError(f"{clash[0]!r} names a method and a control: rename the method, or leave the control out")


def _above_zero(fractions: Sequence[float]) -> tuple[float, ...]:
    """Point 0 costs nothing and is always there: it is the plain accuracy."""
    shares = tuple(fraction for fraction in checked_fractions(fractions) if fraction > 0)
    if not shares:
        raise InputError("fractions holds only 0: add a share of pixels to remove, such as rw.FRACTIONS")
    return shares


def _leaders(predictions: Mapping[Point, Predictions], asked: Sequence[str]) -> list[str]:
    """The best of the user's methods, by the combined score where there are both orders."""
    table = statistics.ranking(predictions)
    return [name for name in table["method"].drop_duplicates() if name in asked][:_LEADERS]


def _blurred(evaluated: Evaluated, leaders: Sequence[str]) -> Explained:
    for rows, block in evaluated.study.blocks():
        yield rows, block, _blurred_copies({name: evaluated.shelf.get(name, rows) for name in leaders})


def _blurred_copies(maps: Mapping[str, Maps]) -> dict[str, Maps]:
    return {f"{name} blurred": blurred(values) for name, values in maps.items()}


def _inverted(predictions: Mapping[Point, Predictions], leaders: Sequence[str]) -> dict[Point, Predictions]:
    """Upside down, a map's MoRF is its LeRF: the PointPredictions are there already."""
    swapped = {"morf": "lerf", "lerf": "morf"}
    return {
        point._replace(method=f"{point.method} inverted", order=swapped[point.order]): one
        for point, one in predictions.items()
        if point.method in leaders
    }
