"""γ beside the smoothness shift: how much of it is geometry?"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from roadworthy.audit.debiasing import clipped_gamma
from roadworthy.core.results import Degraded
from roadworthy.experiments.items import Arrays
from roadworthy.experiments.self_test.record import SelfTestRecord

_ORDERS = ("morf", "lerf")


def with_gamma(changes: pd.DataFrame, record: SelfTestRecord) -> pd.DataFrame:
    """`changes` with γ of the original and of the copy in each order; NaN for imputers that are not linear.

    Debiased accuracies are not among the columns: they are derived for models that are retrained on linearly imputed
    images, which a self-test leaves out.
    """
    found = {name: mean_gamma(arrays) for name, arrays in record.gamma.items()}
    rows = zip(changes["imputer"], changes["method"], changes["how"], changes["amount"], strict=True)
    values = [
        (found.get(method, {}), found.get(Degraded(method, how, amount).name, {}))
        if imputer in record.linear
        else ({}, {})
        for imputer, method, how, amount in rows
    ]
    columns = {
        f"gamma_{order}{end}": [pair[place].get(order, np.nan) for pair in values]
        for order in _ORDERS
        for place, end in enumerate(("_original", ""))
    }
    return changes.assign(**columns)


def mean_gamma(arrays: Arrays) -> Mapping[str, float]:
    """Order to γ, the mean over fractions; without an order whose removed pixels do not vary.

    >>> half, whole = np.array([1.0, 1.0]), np.array([2.0, 2.0])
    >>> mean_gamma({"residual morf 0.1": half, "total morf 0.1": whole, "residual morf 0.5": whole,
    ...             "total morf 0.5": whole, "residual lerf 0.1": 0 * half, "total lerf 0.1": 0 * whole})
    {'morf': 0.75}
    """
    found: dict[str, list[float]] = {}
    for name, total in arrays.items():
        kind, _, point = name.partition(" ")
        if kind == "total" and total.sum() > 0:
            ratio = float(arrays[f"residual {point}"].sum() / total.sum())
            found.setdefault(point.split(" ")[0], []).append(clipped_gamma(ratio)[0])
    return {order: float(np.mean(values)) for order, values in found.items()}
