"""From per-image Verdicts to curves, scores, ranks and agreement, with intervals. Numbers only: no torch here.

A score is linear in the images (`PAPER` 5): area and srg of a method are means of per-image areas. So an interval of a
score is a Student interval of a mean, and two methods are compared on the same images, pair by pair.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from roadworthy.errors import InputError
from roadworthy.types import Dot, Verdict

Array = NDArray[np.float64]
Value = Literal["accuracy", "probability"]
Verdicts = Mapping[Dot, Verdict]

_VALUES: dict[str, Callable[[Verdict], NDArray[Any]]] = {
    "accuracy": lambda verdict: verdict.correct,
    "probability": lambda verdict: verdict.probability,
}


class Setting(NamedTuple):
    """Everything about a curve but the method."""

    judge: str
    order: str
    imputer: str


def values(verdicts: Verdicts, value: Value = "accuracy") -> dict[Setting, dict[str, Array]]:
    """Per setting and method, the per-image values `(fractions, images)`, averaged over seeds."""
    fractions, seeds = fractions_of(verdicts), sorted({dot.seed for dot in verdicts})
    table: dict[Setting, dict[str, Array]] = {}
    for dot in verdicts:
        rows = table.setdefault(Setting(dot.judge, dot.order, dot.imputer), {})
        if dot.method not in rows:
            runs = [
                [_VALUES[value](verdicts[dot._replace(fraction=fraction, seed=seed)]) for fraction in fractions]
                for seed in seeds
            ]
            rows[dot.method] = np.mean(runs, axis=0, dtype=np.float64)
    return table


def fractions_of(verdicts: Verdicts) -> tuple[float, ...]:
    return tuple(sorted({dot.fraction for dot in verdicts}))


def area(curve: Array, fractions: Sequence[float]) -> Array:
    """Trapezoid over [0, f_max] ÷ f_max, of values `(fractions, ...)`. MoRF: lower is better; LeRF: higher.

    >>> float(area(np.array([1.0, 0.5, 0.0]), (0, 0.2, 0.4)))
    0.5
    """
    _need_zero(fractions)
    return np.asarray(np.trapezoid(curve, fractions, axis=0) / fractions[-1])


def aopc(curve: Array, fractions: Sequence[float]) -> Array:
    """Mean over fractions above 0 of (value at 0 − value there). MoRF: higher is better; LeRF: lower.

    >>> float(aopc(np.array([1.0, 0.5, 0.0]), (0, 0.2, 0.4)))
    0.75
    """
    _need_zero(fractions)
    return np.asarray((curve[0] - curve[1:]).mean(axis=0))


def _need_zero(fractions: Sequence[float]) -> None:
    if fractions[0] != 0 or len(fractions) < 2:
        raise InputError(f"fractions {tuple(fractions)}: scores need the point 0 and at least one more")


def mean_interval(per_image: Array, level: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean over images."""
    mean, count = float(per_image.mean()), len(per_image)
    if count < 2:
        return float("nan"), float("nan")
    half = stats.t.ppf((1 + level) / 2, count - 1) * per_image.std(ddof=1) / np.sqrt(count)
    return mean - float(half), mean + float(half)


def share_interval(share: float, count: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of an accuracy: it has a width at 0 and 100 % too."""
    z2 = float(stats.norm.ppf((1 + level) / 2)) ** 2
    centre, half = share + z2 / (2 * count), np.sqrt(z2 * (share * (1 - share) / count + z2 / (4 * count**2)))
    return float((centre - half) / (1 + z2 / count)), float((centre + half) / (1 + z2 / count))


def curves(verdicts: Verdicts) -> pd.DataFrame:
    """One row per dot (seeds averaged); `low` and `high` are the 95 % interval of the accuracy."""
    accuracy, probability = values(verdicts, "accuracy"), values(verdicts, "probability")
    rows = [
        (
            method,
            *setting[1:],
            setting.judge,
            fraction,
            hits.mean(),
            chance.mean(),
            *share_interval(hits.mean(), len(hits)),
        )
        for setting, methods in accuracy.items()
        for method in methods
        for fraction, hits, chance in zip(
            fractions_of(verdicts), methods[method], probability[setting][method], strict=True
        )
    ]
    names = ["method", "order", "imputer", "judge", "fraction", "accuracy", "probability", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def per_image_scores(
    verdicts: Verdicts, value: Value = "accuracy"
) -> dict[tuple[str, str], dict[str, dict[str, Array]]]:
    """Per (judge, imputer): score name (`morf`, `lerf`, `srg`) to method to the score of each image.

    `morf` and `lerf` are areas; `srg` = area(LeRF) − area(MoRF), where both orders are there.
    """
    fractions, table = fractions_of(verdicts), values(verdicts, value)
    found: dict[tuple[str, str], dict[str, dict[str, Array]]] = {}
    for setting, methods in table.items():
        areas = {method: area(curve, fractions) for method, curve in methods.items()}
        found.setdefault((setting.judge, setting.imputer), {})[setting.order] = areas
    for scores in found.values():
        if {"morf", "lerf"} <= scores.keys():
            both = [method for method in scores["morf"] if method in scores["lerf"]]
            scores["srg"] = {method: scores["lerf"][method] - scores["morf"][method] for method in both}
    return found


HIGHER_IS_BETTER = {"morf": False, "lerf": True, "srg": True}


def ranks(scores: Mapping[str, Array], higher_is_better: bool, level: float = 0.95) -> pd.DataFrame:
    """Rank 1 is best; the interval follows from the paired differences to every other method, all at once.

    A method's rank is at least 1 + those clearly better, and at most k − those clearly worse; "clearly" is a paired
    Student test at a level that Bonferroni shares among all pairs.
    """
    names = list(scores)
    sign = 1.0 if higher_is_better else -1.0
    means = np.array([sign * scores[name].mean() for name in names])
    better = _clearly_better(sign * np.stack([scores[name] for name in names]), level)
    return pd.DataFrame(
        {
            "rank": stats.rankdata(-means, method="min").astype(int),
            "rank_low": 1 + better.sum(axis=0),
            "rank_high": len(names) - better.sum(axis=1),
        },
        index=names,
    )


def _clearly_better(per_image: Array, level: float) -> NDArray[np.bool_]:
    """[a, b]: a is better than b beyond doubt, from values `(methods, images)`, higher = better."""
    methods, images = per_image.shape
    pairs = max(1, methods * (methods - 1) // 2)
    critical = stats.t.ppf(1 - (1 - level) / (2 * pairs), max(images - 1, 1))
    better = np.zeros((methods, methods), dtype=bool)
    for row in range(methods):
        differences = per_image[row] - per_image
        error = differences.std(axis=1, ddof=1) / np.sqrt(images) if images > 1 else np.full(methods, np.inf)
        better[row] = differences.mean(axis=1) > critical * error
    return better


def ranking(verdicts: Verdicts, controls: Sequence[str] = (), value: Value = "accuracy") -> pd.DataFrame:
    """Every method's scores and ranks per order and combined, each with a 95 % interval; best first.

    Columns: method, control, imputer, judge; for each score s of `morf`, `lerf` (areas) and `srg`:
    s, s_low, s_high, s_rank, s_rank_low, s_rank_high.
    """
    blocks = [
        _ranking_block(scores).assign(judge=judge, imputer=imputer)
        for (judge, imputer), scores in per_image_scores(verdicts, value).items()
    ]
    table = pd.concat(blocks, ignore_index=True)
    table["control"] = table["method"].isin(list(controls))
    first = ["method", "control", "imputer", "judge"]
    return table[first + [name for name in table.columns if name not in first]]


def _ranking_block(scores: Mapping[str, Mapping[str, Array]]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for score in (name for name in ("srg", "morf", "lerf") if name in scores):
        per_image = scores[score]
        intervals = {method: mean_interval(per_image[method]) for method in per_image}
        columns[score] = pd.Series({method: float(per_image[method].mean()) for method in per_image})
        columns[f"{score}_low"] = pd.Series({method: low for method, (low, _) in intervals.items()})
        columns[f"{score}_high"] = pd.Series({method: high for method, (_, high) in intervals.items()})
        for name, series in ranks(per_image, HIGHER_IS_BETTER[score]).items():
            columns[f"{score}_{name}"] = series
    lead = next(iter(columns))
    return pd.DataFrame(columns).sort_values(f"{lead}_rank", kind="stable").rename_axis("method").reset_index()


def consistency(verdicts: Verdicts, controls: Sequence[str] = (), value: Value = "accuracy") -> pd.DataFrame:
    """Spearman agreement of the settings' rankings of the methods (controls left out), averaged over fractions > 0.

    Two pairings where the orders differ: `removed` compares equal shares removed, `kept` the share removed in one with
    the share kept in the other. `fractions` counts the points averaged; where all methods tie, a point has no ranking
    and is left out. Seeds are averaged first.
    """
    fractions, table = fractions_of(verdicts), values(verdicts, value)
    methods = sorted({dot.method for dot in verdicts} - set(controls))
    if len(methods) < 2:
        raise InputError(
            f"consistency needs at least 2 methods that are no controls, here: {', '.join(methods) or 'none'}"
        )
    merit = {  # higher is better, whatever the order
        setting: np.array([(-1 if setting.order == "morf" else 1) * rows[method].mean(axis=1) for method in methods])
        for setting, rows in table.items()
    }
    rows = [
        (*first, *second, pairing, *_agreement(merit[first], merit[second], fractions, pairing))
        for first, second in combinations_with_replacement(merit, 2)
        if first != second
        for pairing in (("removed", "kept") if first.order != second.order else ("removed",))
    ]
    names = ["judge_a", "order_a", "imputer_a", "judge_b", "order_b", "imputer_b", "pairing", "spearman", "fractions"]
    return pd.DataFrame(rows, columns=names)


def _agreement(first: Array, second: Array, fractions: Sequence[float], pairing: str) -> tuple[float, int]:
    column = {round(fraction, 9): index for index, fraction in enumerate(fractions)}
    partner = {f: (round(1 - f, 9) if pairing == "kept" else f) for f in column}
    found = [
        spearman(first[:, column[f]], second[:, column[other]])
        for f, other in partner.items()
        if 0 < f < 1 and other in column and other > 0
    ]
    known = [value for value in found if not np.isnan(value)]
    return (float(np.mean(known)) if known else float("nan")), len(known)


def spearman(first: Array, second: Array) -> float:
    """Correlation of ranks, ties sharing their mean rank; NaN where one side does not rank at all.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.5
    """
    a, b = stats.rankdata(first), stats.rankdata(second)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(round(np.corrcoef(a, b)[0, 1], 12))


def per_image(verdicts: Verdicts) -> pd.DataFrame:
    """Every judgement: one row per dot and image."""
    frames = [
        pd.DataFrame(
            {
                **dot._asdict(),
                "id": verdict.ids,
                "label": verdict.labels,
                "predicted": verdict.predicted,
                "probability": verdict.probability,
            }
        )
        for dot, verdict in verdicts.items()
    ]
    return pd.concat(frames, ignore_index=True)


def summary(verdicts: Verdicts, controls: Sequence[str] = ()) -> str:
    """Who won and how sure, one sentence per judge and imputer."""
    sentences = []
    for (_, imputer), scores in per_image_scores(verdicts).items():
        lead = next(name for name in ("srg", "morf", "lerf") if name in scores)
        sign = 1.0 if HIGHER_IS_BETTER[lead] else -1.0
        names, values = list(scores[lead]), sign * np.stack(list(scores[lead].values()))
        best = max((name for name in names if name not in controls), key=lambda name: values[names.index(name)].mean())
        behind = dict(zip(names, _clearly_better(values, level=0.95)[names.index(best)], strict=True))
        rivals = [name for name in names if name not in controls and name != best and not behind[name]]
        ahead = [
            name
            for name in names
            if name in controls and values[names.index(name)].mean() > values[names.index(best)].mean()
        ]
        text = f"Filled by {imputer}: {best} comes first on {values.shape[1]} images"
        text += f"; not clearly behind it: {', '.join(rivals)}." if rivals else ", clearly ahead of every other method."
        if ahead:
            text += f" Beware: of the controls, {', '.join(ahead)} score higher than any method."
        sentences.append(text)
    return "\n".join(sentences)
