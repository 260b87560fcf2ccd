"""Geometric debiasing: the drop of a curve in units of what the removed pixels alone knew (`PAPER` 7)."""

import pandas as pd


def debiased(curves: pd.DataFrame, geometry: pd.DataFrame, chance: float) -> pd.DataFrame:
    """Curves with accuracy' = accuracy₀ − (accuracy₀ − accuracy)/γ, γ by method, order and fraction from `geometry`.

    Point 0 stays. Below `chance`, or without a γ, it is undefined: NaN. The intervals' ends are carried along.
    """
    point, curve = ["method", "order", "fraction"], ["method", "order", "imputer", "judge"]
    table = curves.merge(geometry[[*point, "gamma"]], on=point, how="left")
    table.loc[table["fraction"] == 0, "gamma"] = 1.0
    plain = table[table["fraction"] == 0].set_index(curve)["accuracy"]
    start = pd.Series(plain.reindex(pd.MultiIndex.from_frame(table[curve])).to_numpy(), index=table.index)
    for column in ("accuracy", "low", "high"):
        table[column] = start - (start - table[column]) / table["gamma"]
    undefined = table["accuracy"] < chance
    return table.assign(**{column: table[column].mask(undefined) for column in ("accuracy", "low", "high")})
