"""The ranking: every method's scores and ranks, each with an interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from roadworthy.statistics.contest import Contest, Stopping, contests
from roadworthy.statistics.curves import PointPredictions, Value
from roadworthy.statistics.intervals import LEVEL
from roadworthy.statistics.pairs import groups, letters
from roadworthy.statistics.scores import SCORES, Block, blocks

_FIELDS = ("", "_low", "_high", "_rank", "_rank_low", "_rank_high")


def ranking(
    predictions: PointPredictions,
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    level: float = LEVEL,
    stopping: Stopping | None = None,
) -> pd.DataFrame:
    """One row per method, evaluator and imputer; per evaluator and imputer best first by the leading score.

    method, control, imputer, evaluator: who and where · images: evaluated · groups: letters; Holm's tests on the leading score
    do not separate methods that share one · then, for each score s of srg (higher is better), morf (area, lower is
    better), lerf (area, higher is better), morf_aopc (higher is better), lerf_aopc (lower is better), where its orders
    were evaluated: s, s_low, s_high: the score and its 95 % interval over images and seeds · s_rank: 1 is best ·
    s_rank_low, s_rank_high: the ranks that the simultaneous intervals of all pairs leave open.
    A method without the needed curves has gaps: NaN, or <NA> for ranks.
    """
    found = blocks(predictions, value)
    names = [name for name in SCORES if any(name in block.scores for block in found)]
    tables = [_block_table(block, names, level, stopping) for block in found]
    table = pd.concat(tables, ignore_index=True)
    table.insert(1, "control", table["method"].isin(list(controls)))
    for name in (column for column in table.columns if "_rank" in column and not table[column].isna().any()):
        table[name] = table[name].astype(np.int64)
    return table


def _block_table(block: Block, names: Sequence[str], level: float, stopping: Stopping | None) -> pd.DataFrame:
    played = contests(block, level, stopping)
    sure, tests = (stopping.level, stopping.pairs) if stopping else (level, None)
    images = next(iter(block.scores[block.lead].values())).shape[-1]
    table = pd.DataFrame(
        {"method": block.methods, "imputer": block.imputer, "evaluator": block.evaluator, "images": images}
    )
    table["groups"] = table["method"].map(letters(groups(played[block.lead], sure, tests))).fillna("")
    for name in names:
        found = dict(zip(_FIELDS, _columns(played[name]), strict=True)) if name in played else {}
        for field in _FIELDS:
            known = [found.get(field, {}).get(method) for method in block.methods]
            table[name + field] = pd.array(known, dtype=pd.Int64Dtype()) if "rank" in field else np.array(known, float)
    return table.sort_values(f"{block.lead}_rank", kind="stable", na_position="last", ignore_index=True)


def _columns(contest: Contest) -> list[dict[str, float]]:
    """Of each field, method to value."""
    columns = (contest.score, contest.low, contest.high, *contest.ranks)
    return [dict(zip(contest.methods, column.tolist(), strict=True)) for column in columns]


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """A ranking as a long table, one row per method and score, with the direction of each score said.

    method, control, imputer, evaluator, score, value, low, high, rank, rank_low, rank_high, direction.
    """
    parts = []
    for name in (name for name in SCORES if name in table):
        part = table[["method", "control", "imputer", "evaluator"]].copy()
        part["score"] = name
        for field in _FIELDS:
            part[field.removeprefix("_") or "value"] = table[name + field]
        parts.append(part.assign(direction=SCORES[name].direction))
    return pd.concat(parts, ignore_index=True)
