"""Images for the report with the recorded answers of the model: as they are, and as two methods leave them.

The answers are those that were measured: no model is run.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.core.random import Key
from roadworthy.core.results import Point, Predictions
from roadworthy.core.types import Batch
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import imputed
from roadworthy.experiments.examples import class_name
from roadworthy.experiments.source import Source
from roadworthy.report.examples import Answer, AnsweredImage, Gallery, Removal
from roadworthy.statistics import leading_score

CORRECT, WRONG = 8, 4
"""images that the model gets right and wrong"""
SHOWN_FRACTIONS = {"morf": 0.2, "lerf": 0.5}
"""the nearest evaluated fraction is shown"""


class Setting(NamedTuple):
    """Where the answers come from: the setting of the conclusion."""

    evaluator: str
    imputer: str
    seed: int
    fractions: Mapping[str, float]
    """by order, MoRF first"""
    units: str = Point._field_defaults["units"]


def setting_of(predictions: Mapping[Point, Predictions], evaluator: str, imputer: str) -> Setting:
    points = [point for point in predictions if (point.evaluator, point.imputer) == (evaluator, imputer)]
    evaluated = {order: sorted({p.fraction for p in points if p.order == order and p.fraction > 0})
                 for order in SHOWN_FRACTIONS}  # fmt: skip
    nearest = {
        order: min(fractions, key=lambda fraction: abs(fraction - SHOWN_FRACTIONS[order]))
        for order, fractions in evaluated.items()
        if fractions
    }
    return Setting(evaluator, imputer, min(point.seed for point in points), nearest, points[0].units)


def roles_of(block: pd.DataFrame, copies: Collection[str]) -> dict[str, str]:
    """The methods to show of a block of the ranking, and what each stands for: the best, and one to compare it with."""
    ranked = block[block[leading_score(block)].notna()]
    methods = ranked.loc[~ranked["control"], "method"].tolist()
    controls = [name for name in ranked.loc[ranked["control"], "method"] if name not in copies]
    if len(methods) > 1:
        score = ranked.set_index("method")[leading_score(block)].round(12)
        return {
            methods[0]: "best score",
            methods[-1]: "worst score" if score[methods[0]] != score[methods[-1]] else "same score",
        }
    blind = "random" if "random" in controls else next(iter(controls), None)
    roles = dict.fromkeys(methods, "the only method")
    return roles | ({blind: "a control that does not use the model"} if blind else {})


def gallery(
    source: Source,
    predictions: Mapping[Point, Predictions],
    setting: Setting,
    roles: Mapping[str, str],
    classes: Sequence[str],
    target: str,
    unlabeled: bool = False,
) -> Gallery:
    """`roles`: the methods to show, the best first, and what each stands for. `target`: the class that was explained.

    `unlabeled`: no image has a label, so that an answer is right if it is the one before removal.
    """
    source.check_images()
    answers = _Answers(predictions, setting, classes, target, unlabeled)
    correct = answers.before(next(iter(roles))).correct
    lead, why_lead = _lead(answers, list(roles))
    spread = [*_spread(np.flatnonzero(correct), CORRECT), *_spread(np.flatnonzero(~correct), WRONG)]
    places = sorted({lead, *spread})
    evaluated = [row for block in source.state.blocks for row in block.rows]  # the order of the predictions
    rows = [evaluated[place] for place in places]
    batch, predicted = source.images(rows)
    shown = {method: _removals(source, rows, batch, method, setting) for method in roles}
    images = {
        place: AnsweredImage(
            f"Image {int(batch.ids[k])}, {class_name(int(batch.labels[k]), classes, predicted[k])}",
            class_name(int(batch.labels[k]), classes, predicted[k]),
            batch.images[k].numpy(),
            answers.of(next(iter(roles)), None, 0.0, place),
            setting.imputer,
            {
                method: [
                    Removal(
                        order,
                        left.fraction,
                        left.removed[k],
                        left.imputed[k],
                        answers.of(method, order, left.fraction, place),
                    )
                    for order, left in series.items()
                ]
                for method, series in shown.items()
            },
        )
        for k, place in enumerate(places)
    }
    return Gallery(
        [images[place] for place in sorted(spread)], dict(roles), images[lead], why_lead, _why(correct, unlabeled)
    )


class _Answers(NamedTuple):
    predictions: Mapping[Point, Predictions]
    setting: Setting
    classes: Sequence[str]
    target: str
    unlabeled: bool

    def at(self, method: str, order: str, fraction: float) -> Predictions:
        evaluator, imputer, seed, _, units = self.setting
        return self.predictions[Point(method, order, imputer, evaluator, fraction, seed, units=units)]

    def before(self, method: str) -> Predictions:
        return self.at(method, next(iter(self.setting.fractions)), 0.0)

    def of(self, method: str, order: str | None, fraction: float, place: int) -> Answer:
        made = self.before(method) if order is None else self.at(method, order, fraction)
        target = made.labels if self.target == "label" else self.before(method).predicted
        return Answer(
            self._name(int(made.predicted[place])),
            bool(made.correct[place]),
            self._name(int(target[place])),
            float(made.probability[place]),
        )

    def _name(self, label: int) -> str:
        return class_name(label, self.classes).removeprefix("class ") if self.classes else f"class {label}"


class _Shown(NamedTuple):
    """What one method leaves of all images, in one order."""

    fraction: float
    removed: NDArray[np.bool_]
    imputed: NDArray[np.float32]


def _removals(source: Source, rows: Sequence[int], batch: Batch, method: str, setting: Setting) -> dict[str, _Shown]:
    key, imputer = Key(setting.seed), source.imputers()[setting.imputer]
    orders = {order: source.parts.orders[order] for order in setting.fractions}
    ranks = rank(orders, source.maps(method, rows), batch.ids, key, batch.units)
    shown = {}
    for order, fraction in setting.fractions.items():
        ((removed, pictures),) = imputed(imputer, batch, ranks[order], [fraction], key)
        shown[order] = _Shown(fraction, removed.numpy(), pictures.numpy())
    return shown


def _spread(places: NDArray[np.int64], most: int) -> list[int]:
    """Evenly spaced over the places, because data may be sorted by class."""
    chosen = np.unique(np.linspace(0, len(places) - 1, min(most, len(places))).round().astype(int))
    return places[chosen].tolist() if len(places) else []


def _why(correct: NDArray[np.bool_], unlabeled: bool) -> str:
    start = "Images at equal distances in the data, whatever the methods do to them"
    if unlabeled:
        return f"{start}: {min(CORRECT, len(correct))} of {len(correct):,}."
    groups = ((CORRECT, int(correct.sum()), "right"), (WRONG, int((~correct).sum()), "wrong"))
    parts = [
        f"{min(most, number)} of {number:,} that the model gets {word} before removal"
        for most, number, word in groups
        if number
    ]
    return f"{start}: {' and '.join(parts)}."


def _lead(answers: _Answers, methods: Sequence[str]) -> tuple[int, str]:
    """An image on which the first method does well and the second does not, and how typical that is."""
    correct = answers.before(methods[0]).correct
    if not correct.any():
        return 0, "This is the first image; the model gets none of them right."
    first = int(np.argmax(correct))
    plain = f"This is the first image{'' if answers.unlabeled else ' that the model gets right'}."
    if len(methods) < 2:
        return first, plain
    best, other = (_success(answers, method) for method in methods[:2])
    fits = correct & (best == best.max()) & (best > other)
    number = int(correct.sum())
    images = f"{number:,} image{'' if number == 1 else 's'}{'' if answers.unlabeled else ' that the model gets right'}"
    text = (
        f"A method does well if {_doing_well(answers)}. So counted, {methods[0]} does better than {methods[1]} on "
        f"{(correct & (best > other)).sum():,} and worse on {(correct & (best < other)).sum():,} of {images}."
    )
    if fits.any():
        return int(np.argmax(fits)), f"Selected because the two differ here. {text}"
    return first, f"{plain} {text}"


def _success(answers: _Answers, method: str) -> NDArray[np.int64]:
    """Per image: 1 for a wrong answer in MoRF, 1 for a right one in LeRF."""
    hits = {order: answers.at(method, order, fraction).correct for order, fraction in answers.setting.fractions.items()}
    return np.asarray(np.sum([hit if order == "lerf" else ~hit for order, hit in hits.items()], axis=0), dtype=np.int64)


def _doing_well(answers: _Answers) -> str:
    fractions = answers.setting.fractions
    shares = {order: f"{100 * fraction:.0f}\N{NO-BREAK SPACE}%" for order, fraction in fractions.items()}
    changes = "changes the answer" if answers.unlabeled else "makes the answer wrong"
    stays = "keeps it" if "morf" in shares else "keeps the answer"
    stays = stays if answers.unlabeled else f"{stays} right"
    parts = {"morf": f"removing its top {{}} {changes}", "lerf": f"removing its least relevant {{}} {stays}"}
    return " and ".join(parts[order].format(share) for order, share in shares.items())
