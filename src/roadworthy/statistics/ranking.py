"""The ranking: every method's scores and ranks, each with an interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from roadworthy.statistics.curves import PointPredictions, Value
from roadworthy.statistics.early_stopping import StoppingRule
from roadworthy.statistics.intervals import CONFIDENCE
from roadworthy.statistics.paired_differences import PairedComparisons, paired_comparisons
from roadworthy.statistics.pairwise import groups, letters
from roadworthy.statistics.scores import SCORES, Block, blocks

_FIELDS = ("", "_low", "_high", "_rank", "_rank_low", "_rank_high")


def ranking(
    predictions: PointPredictions,
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    confidence: float = CONFIDENCE,
    stopping: StoppingRule | None = None,
) -> pd.DataFrame:
    """One row per method and block, best first by the leading score of the block.

    method, control: the method, and whether it is a control · imputer, evaluator, model, units: the block · images:
    evaluated · groups: letters; Holm's tests on the leading score do not separate methods that share one · then, for
    each score s of srg (higher is better), morf (area, lower is better), lerf (area, higher is better), morf_aopc
    (higher is better), lerf_aopc (lower is better), where its orders were evaluated: s, s_low, s_high: the score and
    its interval over images and seeds · s_rank: 1 is best · s_rank_low, s_rank_high: the ranks that the
    simultaneous intervals of all pairs allow. Where a method lacks the required curves: NaN, or <NA> for ranks.
    """
    ranked = blocks(predictions, value)
    names = [name for name in SCORES if any(name in block.scores for block in ranked)]
    table = pd.concat([_block_table(block, names, confidence, stopping) for block in ranked], ignore_index=True)
    table.insert(1, "control", table["method"].isin(list(controls)))
    for name in (column for column in table.columns if "_rank" in column and not table[column].isna().any()):
        table[name] = table[name].astype(np.int64)
    return table


def methods_by_score(predictions: PointPredictions) -> list[str]:
    """All methods, best first by the leading score, block by block: the order of `ranking` without its intervals."""
    names: list[str] = []
    for block in blocks(predictions):
        score, runs = SCORES[block.leading_score], block.scores[block.leading_score]
        merit = {
            name: round(float(run.mean()), 12) * (1 if score.higher_is_better else -1) for name, run in runs.items()
        }
        names += [*sorted(merit, key=lambda name: -merit[name]), *(name for name in block.methods if name not in merit)]
    return list(dict.fromkeys(names))


def _block_table(block: Block, names: Sequence[str], confidence: float, stopping: StoppingRule | None) -> pd.DataFrame:
    comparisons = paired_comparisons(block, confidence, stopping, intervals=False)
    lead = block.leading_score
    tested, tests = (stopping.confidence, stopping.comparisons) if stopping else (confidence, None)
    table = pd.DataFrame(
        {
            "method": block.methods,
            "imputer": block.key.imputer,
            "evaluator": block.key.evaluator,
            "model": block.key.model,
            "units": block.key.units,
            "images": comparisons[lead].images,
        }
    )
    table["groups"] = table["method"].map(letters(groups(comparisons[lead], tested, tests))).fillna("")
    for name in names:
        columns = dict(zip(_FIELDS, _columns(comparisons[name]), strict=True)) if name in comparisons else {}
        for field in _FIELDS:
            values = [columns.get(field, {}).get(method) for method in block.methods]
            table[name + field] = (
                pd.array(values, dtype=pd.Int64Dtype()) if "rank" in field else np.array(values, float)
            )
    return table.sort_values(f"{lead}_rank", kind="stable", na_position="last", ignore_index=True)


def _columns(comparisons: PairedComparisons) -> list[dict[str, float]]:
    """For each field of `_FIELDS`, method to value."""
    columns = (comparisons.score, comparisons.low, comparisons.high, *comparisons.ranks)
    return [dict(zip(comparisons.methods, column.tolist(), strict=True)) for column in columns]


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """A ranking in long format: one row per method, block and score, with the direction of the score.

    method, control, imputer, evaluator, model, units, score, value, low, high, rank, rank_low, rank_high, direction.
    """
    parts = []
    for name in (name for name in SCORES if name in table):
        part = table[["method", "control", "imputer", "evaluator", "model", "units"]].copy()
        part["score"] = name
        for field in _FIELDS:
            part[field.removeprefix("_") or "value"] = table[name + field]
        parts.append(part.assign(direction=SCORES[name].direction))
    return pd.concat(parts, ignore_index=True)
