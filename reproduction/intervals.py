"""Compute the intervals of agreement and of its changes again, from the committed points and correctness alone.

python -m reproduction.intervals      then: python -m reproduction.document

Needed when the computation of an interval has changed. Agreement of settings that were not kept has no interval.
"""

import numpy as np
import pandas as pd

from reproduction.changes import change_table
from reproduction.collect import agreement_table, write
from reproduction.kept import predictions_of, read_bits
from reproduction.tables import ours, where

KEY = ["experiment", *(f"{field}_{side}" for side in "ab" for field in ("evaluator", "order", "imputer")), "pairing"]


def recomputed() -> dict[str, pd.DataFrame]:
    """The tables `agreement` and `changes`."""
    points, bits = ours("points"), read_bits()
    agreements, changes = [], []
    for experiment in dict.fromkeys(points["experiment"]):
        predictions, ids = predictions_of(where(points, experiment=experiment), bits)
        if predictions:
            agreements.append(agreement_table(predictions).assign(experiment=experiment))
            table = change_table(predictions, ids)
            changes.append(table.assign(experiment=experiment)[["experiment", *table]])
    ends = pd.concat(agreements).set_index(KEY)[["low", "high"]]
    table = ours("agreement").assign(low=np.nan, high=np.nan).set_index(KEY)
    table.update(ends)
    return {"agreement": table.reset_index()[list(ours("agreement"))], "changes": pd.concat(changes, ignore_index=True)}


def main() -> None:
    for name, table in recomputed().items():
        write(name, table)
        print(f"{name}: {int(table['low'].notna().sum())} intervals")


if __name__ == "__main__":
    main()
