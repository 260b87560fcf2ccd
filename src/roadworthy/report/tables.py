"""Tables as people read them."""

import numpy as np
import pandas as pd


def short_ranking(table: pd.DataFrame) -> pd.DataFrame:
    """The ranking as people read it, narrow enough for a terminal: the leading score with its interval and rank."""
    lead = next(name for name in ("srg", "morf", "lerf") if name in table)
    titles = {"srg": "LeRF − MoRF", "morf": "MoRF ↓", "lerf": "LeRF ↑"}
    bounds = [table[f"{lead}{end}"] for end in ("", "_low", "_high")]
    ranks = [table[f"{lead}_rank{end}"] for end in ("", "_low", "_high")]
    short = pd.DataFrame(
        {
            "rank": [f"{r}" if low == high else f"{r} ({low}–{high})" for r, low, high in zip(*ranks, strict=True)],
            "method": table["method"] + np.where(table["control"], " (control)", ""),
            titles[lead]: [f"{v:.3f} [{low:.3f}, {high:.3f}]" for v, low, high in zip(*bounds, strict=True)],
        }
    )
    for score in (name for name in ("morf", "lerf") if name in table and name != lead):
        short[titles[score]] = table[score].map("{:.3f}".format).to_numpy()
    if table["imputer"].nunique() > 1:
        short.insert(0, "filled by", table["imputer"])
    return short


def short_agreement(table: pd.DataFrame) -> pd.DataFrame:
    """The agreement of settings, a name per setting; the judge is named where there are several."""
    judges = {*table["judge_a"], *table["judge_b"]}
    fields = ("order", "imputer", "judge") if len(judges) > 1 else ("order", "imputer")

    def side(end: str) -> pd.Series:
        return table[[f"{field}_{end}" for field in fields]].agg(" · ".join, axis=1)

    return pd.DataFrame(
        {
            "setting": side("a"),
            "and": side("b"),
            "compared at equal share": table["pairing"],
            "Spearman": table["spearman"].map(lambda value: "–" if np.isnan(value) else f"{value:+.2f}"),
            "fractions": table["fractions"],
        }
    )
