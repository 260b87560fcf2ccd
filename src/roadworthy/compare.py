"""The one-call door: a model, images, methods; out comes a Comparison that answers with tables."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from roadworthy import statistics
from roadworthy.attributions.controls import blurred
from roadworthy.attributions.maps import Reduce
from roadworthy.datasets import as_dataset
from roadworthy.errors import InputError
from roadworthy.evaluation import evaluating
from roadworthy.imputers import NoisyLinear
from roadworthy.keys import Key
from roadworthy.parts import part
from roadworthy.progress import progress_bar
from roadworthy.removal import FRACTIONS, checked_fractions, removed_at
from roadworthy.report.page import Picture, Strip, write_page
from roadworthy.report.tables import short_agreement, short_ranking
from roadworthy.study import (
    Examples,
    Explained,
    Shelf,
    Study,
    as_imputers,
    as_method,
    explained,
    judge_all,
    judge_plain,
    rehearse,
)
from roadworthy.types import Dot, Imputer, Scores, Verdict, as_model

CONTROLS = ("random", "edges", "centre", "blurred", "inverted")
"""What methods are measured against; `blurred` and `inverted` are copies of the leading methods."""

_LEADERS = 2


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every Verdict of a comparison, and the tables that follow from them."""

    verdicts: Mapping[Dot, Verdict]
    controls: tuple[str, ...]
    imputers: Mapping[str, Imputer]
    examples: Examples
    classes: tuple[str, ...] = ()

    def ranking(self, value: statistics.Value = "accuracy") -> pd.DataFrame:
        """Method, scores and ranks per order and combined, each with a 95 % interval; best first."""
        return statistics.ranking(self.verdicts, self.controls, value)

    def curves(self) -> pd.DataFrame:
        """Method, order, imputer, judge, fraction, accuracy, probability, low, high."""
        return statistics.curves(self.verdicts)

    def consistency(self, value: statistics.Value = "accuracy") -> pd.DataFrame:
        """How far the settings (orders, imputers) agree on the ranking of the methods."""
        return statistics.consistency(self.verdicts, self.controls, value)

    def per_image(self) -> pd.DataFrame:
        """Every judgement: one row per dot and image."""
        return statistics.per_image(self.verdicts)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page with ranking, curves and pictures."""
        settings = {(dot.judge, dot.order, dot.imputer) for dot in self.verdicts}
        several = len(self._methods) > 1 and len(settings) > 1
        return write_page(
            Path(path),
            verdict=self.summary(),
            ranking=short_ranking(self.ranking()),
            curves=self.curves(),
            agreement=short_agreement(self.consistency()) if several else None,
            controls=self.controls,
            strips=self._strips(),
        )

    def summary(self) -> str:
        """Who won, in a sentence or two."""
        return statistics.summary(self.verdicts, self.controls)

    @property
    def _methods(self) -> list[str]:
        return [name for name in dict.fromkeys(dot.method for dot in self.verdicts) if name not in self.controls]

    def _strips(self, images: int = 4, fractions: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)) -> list[Strip]:
        """A few images, the leading map, and what is left of them when its most relevant pixels go."""
        table = self.ranking()
        leader = table.loc[~table["control"], "method"].iloc[0]
        scores = self.examples.scores[leader][:images]
        few = self.examples.batch[:images]
        ranks = part("orders", "morf").make()(scores, few.ids, Key(0))
        shown = [fraction for fraction in fractions if any(fraction == dot.fraction for dot in self.verdicts)]
        filled = {
            (name, fraction): imputer(few, removed_at(ranks, fraction), Key(0))
            for name, imputer in self.imputers.items()
            for fraction in shown
        }
        return [
            Strip(
                f"image {int(few.ids[row])}, {self._class_name(int(few.labels[row]))}, filled by: {name}",
                [
                    Picture("original", few.images[row].numpy()),
                    Picture(leader, _heat(scores[row])),
                    *(Picture(f"{fraction:.0%} removed", filled[name, fraction][row].numpy()) for fraction in shown),
                ],
            )
            for row in range(len(few))
            for name in self.imputers
        ]

    def _class_name(self, label: int) -> str:
        return self.classes[label] if label < len(self.classes) else f"class {label}"

    def __str__(self) -> str:
        return f"{short_ranking(self.ranking()).to_string(index=False)}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        return short_ranking(self.ranking()).to_html(index=False, escape=True, border=0)


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
    reduce: Reduce = "sum",
    map_seed: int = 0,
    map_batch: int = 64,
    batch_size: int = 64,
    device: torch.device | str | None = None,
    progress: bool = True,
) -> Comparison:
    """Measure which of `methods` found what `model` uses, without retraining (ROAD).

    `model`: a torch Module or any callable images -> logits; wrap it in `Normalised` if it expects normalised input.
    `data`: (images, labels), images alone, a torch Dataset or DataLoader, or a data set of `rw.datasets`.
    `methods`: name to an attribution, a plain function (model, batch, key) -> scores, ready maps or a part's name.
    `imputer`: an imputer or a part's name, or several as {name: imputer}.
    `target`: what is explained and whose probability is reported; accuracy is always against the label.
    `batch_size`: images judged at once, for speed; `map_batch`: images explained at once.
    `controls`: ranked beside the methods and marked; () for none.
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
        device=torch.device(device) if device else network.device,
    )
    copies = min(_LEADERS, len(methods)) if "blurred" in controls else 0
    with (
        evaluating(network, study.device),
        tempfile.TemporaryDirectory(prefix="roadworthy-") as folder,
        progress_bar("comparing", study.forwards(len(study.methods) + copies), progress) as advance,
    ):
        examples = rehearse(study)
        plain, targets = judge_plain(study, advance)
        shelf = Shelf(Path(folder), len(dataset))
        verdicts = judge_all(study, explained(study, targets, shelf), plain, targets, advance)
        leaders = _leaders(verdicts, list(methods))
        if "blurred" in controls:
            verdicts |= judge_all(study, _blurred(study, leaders, shelf), plain, targets, advance)
            copied = _blurred_copies({name: examples.scores[name] for name in leaders})
            examples = replace(examples, scores={**examples.scores, **copied})
    if "inverted" in controls and {"morf", "lerf"} <= set(orders):
        verdicts |= _inverted(verdicts, leaders)
    marked = sorted({dot.method for dot in verdicts} - set(methods))
    return Comparison(verdicts, tuple(marked), study.imputers, examples, dataset.classes)


def _check_names(
    methods: Mapping[str, Any], orders: Sequence[str], seeds: Sequence[int], target: str, controls: Sequence[str]
) -> None:
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


def _leaders(verdicts: Mapping[Dot, Verdict], asked: Sequence[str]) -> list[str]:
    """The best of the user's methods, by the combined score where there are both orders."""
    table = statistics.ranking(verdicts)
    return [name for name in table["method"].drop_duplicates() if name in asked][:_LEADERS]


def _blurred(study: Study, leaders: Sequence[str], shelf: Shelf) -> Explained:
    for rows, block in study.blocks():
        yield rows, block, _blurred_copies({name: shelf.get(name, rows) for name in leaders})


def _blurred_copies(scores: Mapping[str, Scores]) -> dict[str, Scores]:
    return {f"{name} blurred": blurred(values) for name, values in scores.items()}


def _inverted(verdicts: Mapping[Dot, Verdict], leaders: Sequence[str]) -> dict[Dot, Verdict]:
    """Upside down, a map's MoRF is its LeRF: the Verdicts are there already."""
    swapped = {"morf": "lerf", "lerf": "morf"}
    return {
        dot._replace(method=f"{dot.method} inverted", order=swapped[dot.order]): one
        for dot, one in verdicts.items()
        if dot.method in leaders
    }


def _heat(scores: Scores) -> NDArray[np.float32]:
    """Ranks as grey levels: scores differ too much in scale to be shown as they are. White is most relevant."""
    order = scores.flatten().argsort().argsort().reshape(1, *scores.shape)
    return (order / max(1, scores.numel() - 1)).numpy().astype(np.float32)
