"""What can be told of a study that is not finished: curves are whole, or they wait."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from roadworthy.core.results import Dot, Verdict
from roadworthy.statistics.curves import Verdicts

_COLUMNS = ["method", "order", "imputer", "judge", "there", "asked"]


def whole_curves(verdicts: Verdicts, asked: Iterable[Dot]) -> tuple[dict[Dot, Verdict], pd.DataFrame]:
    """The Verdicts of those curves of which every asked dot is there, and a table of the others.

    method, order, imputer, judge: the curve · there, asked: how many of its dots (fractions × seeds).
    """
    wanted = list(asked)
    counts, found = Counter(map(_curve, wanted)), Counter(_curve(dot) for dot in wanted if dot in verdicts)
    gaps = {curve: count for curve, count in counts.items() if found[curve] < count}
    whole = {dot: verdicts[dot] for dot in wanted if _curve(dot) not in gaps}
    rows = [(*curve, found[curve], count) for curve, count in gaps.items()]
    return whole, pd.DataFrame(rows, columns=_COLUMNS)


def _curve(dot: Dot) -> tuple[str, str, str, str]:
    return dot[:4]
