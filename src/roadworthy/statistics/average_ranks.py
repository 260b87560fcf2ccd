"""Ranks image by image, averaged over images: for critical-difference diagrams."""

from collections.abc import Collection

import numpy as np
import pandas as pd
from scipy import stats

from roadworthy.statistics.curves import PointPredictions, Value
from roadworthy.statistics.scores import SCORES, blocks

COLUMNS = ["evaluator", "imputer", "model", "units", "score", "method", "average_rank", "images"]


def average_ranks(
    predictions: PointPredictions, without: Collection[str] = (), value: Value = "accuracy"
) -> pd.DataFrame:
    """One row per method and block, best first: the mean over images of its rank by the leading score of the block.

    An image ranks the methods by their scores on it, averaged over seeds; equal ones share the mean of their ranks.
    Images are the sample, so ranks are averaged over them; the fractions of one curve are not independent. `without`:
    methods that do not take part, such as copies of others.
    """
    tables = []
    for block in blocks(predictions, value):
        score = block.leading_score
        runs = {method: values for method, values in block.scores[score].items() if method not in without}
        if not runs:
            continue
        sign = -1 if SCORES[score].higher_is_better else 1
        merits = np.round([sign * values.mean(axis=0) for values in runs.values()], 12)
        table = pd.DataFrame({"method": list(runs), "average_rank": stats.rankdata(merits, axis=0).mean(axis=1)})
        table = table.assign(**block.key._asdict(), score=score, images=merits.shape[1])
        tables.append(table.sort_values("average_rank", kind="stable"))
    return pd.concat(tables, ignore_index=True)[COLUMNS] if tables else pd.DataFrame(columns=COLUMNS)
