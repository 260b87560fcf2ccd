"""The conclusion of a comparison: one of four states, one plain sentence, then details. The same in every output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from roadworthy import statistics
from roadworthy.core.results import Copy, Point
from roadworthy.experiments.wording import (
    SCORE_NAMES,
    at_most,
    block_name,
    bounds,
    controls_described,
    controls_named,
    count,
    listed,
    settling,
    settling_pairs,
    share_of_resamples,
    varying_fields,
)
from roadworthy.report.tables import accuracy_text
from roadworthy.statistics import Standing, State, StoppingRule
from roadworthy.statistics.scores import table_blocks
from roadworthy.statistics.standing import CLEAR_WINNER, NO_METHOD, NOT_YET, TIE


@dataclass(frozen=True)
class Conclusion:
    """Which method to trust, if any: a state, a plain sentence, and the numbers behind them (docs/statistics.md)."""

    state: State
    """NO METHOD BEATS THE CONTROLS, CLEAR WINNER, TIE or NOT YET"""
    sentence: str
    """one or two sentences about the setting to look at first"""
    details: tuple[str, ...] = ()
    """scores, differences and accuracies with intervals; other settings; early stopping"""

    def __str__(self) -> str:
        return "\n".join([f"{self.state}: {self.sentence}", *(f"- {line}" for line in self.details)])


@dataclass(frozen=True, eq=False, kw_only=True)
class Basis:
    """What a conclusion rests on."""

    ranking: pd.DataFrame
    pairwise: pd.DataFrame
    accuracy: pd.DataFrame
    """the table of `plain_accuracy`"""
    copies: Mapping[str, Copy]
    """controls made from a method's maps; the other controls are blind and are the ones to beat"""
    preferred: tuple[str, str] | None
    confidence: float
    margin: float
    stopping: StoppingRule | None
    available: int
    """images of the data set, where early stopping did not take all"""
    unlabeled: bool
    warnings: pd.DataFrame
    """the table of `warnings`: some of them overrule the ranking"""


def conclude(basis: Basis) -> Conclusion:
    """State and sentence of the preferred block; details of all blocks, that one first."""
    standings = statistics.standings(basis.ranking, basis.pairwise, basis.copies, basis.margin)
    main = statistics.preferred_block(basis.ranking, basis.preferred)
    ordered = sorted(standings.values(), key=lambda standing: (standing.key.evaluator, standing.key.imputer) != main)
    first, varying = ordered[0], varying_fields(basis.ranking)
    name, text = block_name(first.key, varying), sentence(first, basis)
    text += f" (Setting: {name[:1].lower()}{name[1:]}.)" if name else ""
    details = tuple(_details(ordered, basis, varying))
    if near_chance := _texts(basis.warnings, "near chance", first.key.evaluator):
        return Conclusion(NOT_YET, f"No ranking can be trusted here. {near_chance[0]}", details)
    raised = _texts(basis.warnings, "removal raises accuracy", first.key.evaluator)
    return Conclusion(first.state, text, (*details, *raised))


def _texts(warnings: pd.DataFrame, kind: str, evaluator: str) -> list[str]:
    """The warnings of that kind about the evaluator of the conclusion."""
    return warnings.loc[(warnings["kind"] == kind) & (warnings["evaluator"] == evaluator), "text"].tolist()


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────────────────────────


def sentence(standing: Standing, basis: Basis) -> str:
    if not standing.methods:
        return "No method can be ranked: only controls were evaluated in all orders."
    if len(standing.methods) + len(standing.controls) < 2:
        return f"{standing.best} is the only method and no control was evaluated: there is nothing to compare it with."
    describe = {CLEAR_WINNER: _clear_winner, TIE: _tie, NO_METHOD: _no_method, NOT_YET: _not_yet}[standing.state]
    text = describe(standing, basis)
    if basis.stopping and basis.stopping.finite:
        text += f" This is about these {basis.available:,} images, not about others like them."
    return text if standing.controls else f"{text} No control was evaluated."


def _on_images(standing: Standing, basis: Basis) -> str:
    if basis.stopping and basis.available > standing.images:
        return f"on {standing.images:,} of {basis.available:,} images"
    return f"on {count(standing.images, 'image')}"


def _clear_winner(standing: Standing, basis: Basis) -> str:
    best, others = standing.best, standing.methods[1:]
    rivals = [_others(others)] if others else []
    rivals += [controls_named(standing.controls)] if standing.controls else []
    name = best if others else f"{best}, the only method,"
    text = f"{name} is clearly better than {' and '.join(rivals)}, {_on_images(standing, basis)}."
    nearest = min((*others, *standing.controls), key=lambda other: standing.difference(best, other).high)
    lead = standing.difference(best, nearest).high
    return f"{text} Its lead over {nearest} is small: {at_most(lead)}." if lead < standing.margin else text


def _others(others: Sequence[str]) -> str:
    return f"the other method ({others[0]})" if len(others) == 1 else f"the other {len(others)} methods"


def _tie(standing: Standing, basis: Basis) -> str:
    leaders, controls = standing.leaders, standing.controls
    most = max(standing.difference(a, b).most for a in leaders for b in leaders if a != b)
    text = f"{listed(leaders)} are tied {_on_images(standing, basis)}: their scores differ by {at_most(most)}."
    if controls:
        text += f" {'Both' if len(leaders) == 2 else 'All of them'} are clearly better than {controls_named(controls)}."
    if behind := [name for name in standing.methods if name not in leaders]:
        text += f" {listed(behind)} {'is' if len(behind) == 1 else 'are'} clearly worse than {standing.best}."
    return text


def _no_method(standing: Standing, basis: Basis) -> str:
    best, control, methods = standing.best, standing.controls[0], standing.methods
    images, several = _on_images(standing, basis), len(methods) > 1
    if all(standing.clear(control, method) for method in methods):
        number = "both" if len(methods) == 2 else f"all {len(methods)}"
        beaten = f"{number} methods" if several else f"{best}, the only method,"
        against = f"the best of them, {best}," if several else best
        return (
            f"The control {control}, which does not use the model, is clearly better than {beaten} {images}: "
            f"it scores {_value(standing, control)}, {against} {_value(standing, best)}{_lower(standing)}."
        )
    refuting = standing.refuting_controls(best)
    limit = control if control in refuting else refuting[0]
    gain = standing.difference(best, limit).high
    result = f"gains {at_most(gain)} over" if gain > 0 else "is clearly worse than"
    result += f" the control {limit}"
    text = f"{best}, the only method, {result} {images}"
    if several:
        text = f"None of the {len(methods)} methods beats the controls {images}: the best of them, {best}, {result}"
    if limit != control:
        text += f"; the best control is {control}"
    return f"{text} ({_scores(standing, dict.fromkeys((best, limit, control)))})."


def _not_yet(standing: Standing, basis: Basis) -> str:
    best, images = standing.best, _on_images(standing, basis)
    several, equal = len(standing.methods) > 1, _equal_to_the_best(standing)
    subject = (
        f"{best} has the best score of {len(standing.methods)} methods, but" if several else f"{best}, the only method,"
    )
    subject = f"{best}, with the same score as {listed(equal)}," if equal else subject
    it = "it is" if several and not equal else "is"
    better = [control for control in standing.controls if standing.clear(control, best)]
    if better:
        still_open = [name for name in standing.methods if not standing.refuting_controls(name)]
        text = f"{subject} {images} {it} clearly worse than {controls_described(better)}; "
        text += f"{listed(still_open)} may yet beat {'it' if len(better) == 1 else 'them'}."
        return f"{text} {settling(standing, [(name, better[0]) for name in still_open], basis.confidence)}".rstrip()
    if unbeaten := standing.unbeaten_controls(best):
        text = f"{subject} {images} {it} not clearly better than {controls_described(unbeaten)}"
        text += _scoring_better(standing, unbeaten)
        return f"{text}. {settling(standing, [(best, name) for name in unbeaten], basis.confidence)}".rstrip()
    rivals = [name for name in standing.leaders if name != best]
    beats = f" and is clearly better than {controls_named(standing.controls)}" if standing.controls else ""
    text = f"{best} has the best score of {len(standing.methods)} methods {images}{beats}, "
    text += f"but is not clearly better than {listed(rivals)}."
    if equal:
        text = f"{listed([best, *equal])} share the best score of {len(standing.methods)} methods {images}."
    return f"{text} {settling(standing, settling_pairs(standing, rivals), basis.confidence)}".rstrip()


def _equal_to_the_best(standing: Standing) -> list[str]:
    return [name for name in standing.methods[1:] if standing.difference(standing.best, name).value == 0]


def _scoring_better(standing: Standing, controls: Sequence[str]) -> str:
    """Of these controls, those that score better than the best method, if not clearly."""
    better = [name for name in controls if standing.difference(standing.best, name).value < 0]
    if not better:
        return ""
    verb = "scores" if len(better) == 1 else "score"
    return f", which {verb} better" if len(better) == len(controls) else f"; {listed(better)} {verb} better"


# ── details ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _details(ordered: Sequence[Standing], basis: Basis, varying: Sequence[str]) -> list[str]:
    lines = []
    for row, standing in enumerate(ordered):
        if not standing.methods:
            continue
        name = f"{block_name(standing.key, varying)}: " if len(ordered) > 1 else ""
        if row:
            lines.append(f"{name}{standing.state}. {sentence(standing, basis)}")
        lines.append(f"{name}{_numbers(standing, basis)}")
        if not row:
            lines += [f"{name}{line}" for line in (_nearest(standing), *_better_copies(standing, basis.copies)) if line]
    return [*lines, *_disagreement(ordered, varying), *_stopped(basis), _meaning(basis)]


def _numbers(standing: Standing, basis: Basis) -> str:
    shown = [standing.best, *standing.methods[1:2], *standing.controls[:1]]
    accuracy = accuracy_text(table_blocks(basis.accuracy)[standing.key], basis.unlabeled)
    units = "" if standing.key.units == Point._field_defaults["units"] else f"; units: {standing.key.units}"
    return f"{_scores(standing, shown)}; {count(standing.images, 'image')}{units}; accuracy before removal {accuracy}."


def _scores(standing: Standing, names: Sequence[str] | Mapping[str, None]) -> str:
    """`LeRF − MoRF: IG 0.263 [0.200, 0.327], control center 0.010 [−0.020, 0.040]`"""
    texts = []
    for name in names:
        control = "control " if name in standing.controls else ""
        interval = bounds(_number(standing, name, "_low"), _number(standing, name, "_high"))
        texts.append(f"{control}{name} {_value(standing, name)} {interval}")
    return f"{SCORE_NAMES[standing.score]}: {', '.join(texts)}"


def _number(standing: Standing, name: str, end: str = "") -> float:
    return float(standing.rows[f"{standing.score}{end}"].loc[name])


def _value(standing: Standing, name: str) -> str:
    return f"{_number(standing, name):.3f}".replace("-", "−")


def _lower(standing: Standing) -> str:
    return "" if statistics.SCORES[standing.score].higher_is_better else f" ({SCORE_NAMES[standing.score]})"


def _nearest(standing: Standing) -> str:
    """The best method against the strongest other one: the control that it does not beat, or the next method."""
    best, unbeaten = standing.best, standing.unbeaten_controls(standing.best)
    others = unbeaten or standing.methods[1:] or standing.controls
    if not others:
        return ""
    other = others[0]
    difference = standing.difference(best, other)
    if difference.value == 0:
        return (
            f"{best} and {_named(other, standing)} score the same; their difference is in {bounds(*difference[1:3])}."
        )
    side = "ahead of" if difference.value > 0 else "behind"
    shown = difference if difference.value >= 0 else difference.reversed
    text = f"{best} is {side} {_named(other, standing)} by {shown.value:.3f} {bounds(shown.low, shown.high)}"
    return f"{text}{share_of_resamples(shown.share)}."


def _named(name: str, standing: Standing) -> str:
    return f"the control {name}" if name in standing.controls else name


def _better_copies(standing: Standing, copies: Mapping[str, Copy]) -> list[str]:
    """Copies of a method's maps may stand above it in the table: say what that means."""
    better = [name for name in standing.copies if standing.difference(name, standing.best).value > 0]
    if not better:
        return []
    copied = ", ".join(f"{name} ({_value(standing, name)})" for name in better)
    one = len(better) == 1
    return [
        f"{copied} {'scores' if one else 'score'} better than {standing.best} ({_value(standing, standing.best)}): "
        f"{'a copy' if one else 'copies'} of the maps of {listed(sorted({copies[name].of for name in better}))}, which "
        f"{'adds' if one else 'add'} no information, so this says something about the benchmark, not about a method."
    ]


def _disagreement(ordered: Sequence[Standing], varying: Sequence[str]) -> list[str]:
    ranked = [standing for standing in ordered if standing.methods]
    others = [standing for standing in ranked if standing.best != ranked[0].best]
    if not others:
        return []
    names = [f"{standing.best} ({block_name(standing.key, varying).lower()})" for standing in others]
    settings = f"{len(others)} of {len(ranked)} settings"
    return [f"In {settings} another method has the best score: {listed(names)}."]


def _stopped(basis: Basis) -> list[str]:
    if not basis.stopping:
        return []
    pairs = basis.pairwise
    # The rule is about pairs that contain a user's method; copies were evaluated after the stop.
    pairs = pairs[~(pairs["control_a"] & pairs["control_b"]).astype(bool)]
    pairs = pairs[~pairs[["method_a", "method_b"]].isin(list(basis.copies)).any(axis=1)]
    left = int(statistics.undecided(pairs).sum())
    images = int(basis.accuracy["images"].iloc[0])
    text = f"Early stopping took {images:,} of {basis.available:,} images; its intervals hold at any number of images"
    if basis.stopping.finite:
        text += f" and contain what all {basis.available:,} would give"
    return [f"{text}. Still open: {left} of {len(pairs)} pairs." if left else f"{text}."]


def _meaning(basis: Basis) -> str:
    confidence = basis.stopping.confidence if basis.stopping else basis.confidence
    scope = "all pairs" if basis.stopping else "all pairs of a setting"
    return (
        f"“Clearly” refers to paired intervals of the difference that hold for {scope} simultaneously with "
        f"{100 * confidence:g} % confidence; methods that surely lie within ±{basis.margin:g} are tied."
    )
