"""Who won, how sure that is, and what to beware of: the tables in a paragraph."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from roadworthy.statistics.warnings import lead_of

TITLES = {"srg": "LeRF − MoRF", "morf": "MoRF area", "lerf": "LeRF area"}


def summary(
    ranking: pd.DataFrame, pairs: pd.DataFrame, cautions: Sequence[str] = (), stopped: str = "", level: float = 0.95
) -> str:
    """One paragraph from the tables of the same predictions; `stopped` says how an early stop came about."""
    sentences = winners(ranking, pairs, level) + ([stopped] if stopped else [])
    return " ".join(sentences + ([f"Beware: {' '.join(cautions)}"] if cautions else []))


def winners(ranking: pd.DataFrame, pairs: pd.DataFrame, level: float = 0.95) -> list[str]:
    """A sentence or two per evaluator and imputer."""
    several = ranking["evaluator"].nunique() > 1
    found = []
    for (evaluator, imputer), block in ranking.groupby(["evaluator", "imputer"], sort=False):
        asked = block[~block["control"] & block[lead_of(block)].notna()]
        if len(asked):
            met = pairs[(pairs["evaluator"] == evaluator) & (pairs["imputer"] == imputer)]
            place = f"Filled by {imputer}, evaluated by {evaluator}" if several else f"Filled by {imputer}"
            found.append(f"{place}: {_winner(asked, met, level)}")
    return found


def main_block(ranking: pd.DataFrame) -> tuple[str, str]:
    """The evaluator and the imputer that speak first: ROAD as its paper advises, or else those that come first."""
    blocks = list(dict.fromkeys(zip(ranking["evaluator"], ranking["imputer"], strict=True)))
    return next((block for block in blocks if block == ("no-retrain", "linear")), blocks[0])


def headline(ranking: pd.DataFrame, pairs: pd.DataFrame, level: float = 0.95) -> str:
    """The prediction in two sentences: who comes first and how sure that is, then what speaks for or against it."""
    evaluator, imputer = main_block(ranking)
    block = ranking[(ranking["evaluator"] == evaluator) & (ranking["imputer"] == imputer)]
    asked = block[~block["control"] & block[lead_of(block)].notna()]
    if asked.empty:
        return "No method can be ranked. Only controls were evaluated in all orders."
    best, met = asked["method"].iloc[0], pairs[(pairs["evaluator"] == evaluator) & (pairs["imputer"] == imputer)]
    won = set(met.loc[(met["method_a"] == best) & (met["low"] > 0), "method_b"])
    rivals = [name for name in asked["method"] if name != best and name not in won]
    count = f"{asked['images'].iloc[0]:,} images"
    first = f"{_place(ranking, evaluator, imputer)}{best} comes first on {count}"
    if len(asked) == 1:
        first = f"{best} is the only method evaluated on {count}"
    elif rivals:
        first += f", but not clearly ahead of {_listed(rivals)}"
    else:
        first += f", clearly ahead of every other method ({level:.0%} sure of all pairs at once)"
    controls = [name for name in block.loc[block["control"], "method"] if not name.endswith((" blurred", " inverted"))]
    return f"{first}. {_support(best, [name for name in controls if name not in won], controls, ranking)}"


def _place(ranking: pd.DataFrame, evaluator: str, imputer: str) -> str:
    """Which setting is spoken of, where there are several."""
    parts = [f"filled by {imputer}"] if ranking["imputer"].nunique() > 1 else []
    parts += [f"evaluated by {evaluator}"] if ranking["evaluator"].nunique() > 1 else []
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}: " if text else ""


def _support(best: str, unbeaten: Sequence[str], controls: Sequence[str], ranking: pd.DataFrame) -> str:
    if unbeaten:
        plural = "controls" if len(unbeaten) > 1 else "control"
        return f"It does not clearly beat the {plural} {_listed(unbeaten)}: do not trust it yet."
    firsts = ranking[~ranking["control"]].groupby(["evaluator", "imputer"], sort=False)["method"].first()
    others = {str(name) for name in firsts if name != best}
    beats = "It clearly beats every control" if controls else "No control was evaluated beside it"
    if others:
        count = int((firsts != best).sum())
        return (
            f"{beats} there, yet in {count} of {len(firsts)} settings another comes first: {_listed(sorted(others))}."
        )
    every = "both settings" if len(firsts) == 2 else f"all {len(firsts)} settings"
    return f"{beats} there, and it comes first in {every}." if len(firsts) > 1 else f"{beats}."


def _listed(names: Sequence[str], most: int = 3) -> str:
    """
    >>> _listed(["a"]), _listed(["a", "b"]), _listed(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _winner(asked: pd.DataFrame, pairs: pd.DataFrame, level: float) -> str:
    best, lead = asked.iloc[0], lead_of(asked)
    name, images = best["method"], f" on {best['images']:,} images"
    score = f"{TITLES[lead]} {best[lead]:.3f} [{best[f'{lead}_low']:.3f}, {best[f'{lead}_high']:.3f}]"
    if len(asked) == 1:
        return f"{name} is the only method{images} ({score})."
    own = pairs[pairs["method_a"].eq(name) | pairs["method_b"].eq(name)]
    others = np.where(own["method_a"] == name, own["method_b"], own["method_a"])
    duels = own.set_index(others).reindex([method for method in asked["method"] if method != name])
    rivals = duels[~(duels["low"] > 0)]
    text = f"{name} comes first{images} ({score})"
    if rivals.empty:
        return f"{text}, clearly ahead of every other method ({level:.0%} sure of all pairs at once)."
    return f"{text}; not clearly behind it: {', '.join(rivals.index)}. {_advice(name, rivals.iloc[0])}"


def _advice(name: str, rival: pd.Series) -> str:
    """What it would take to tell the winner from the next."""
    if rival["tie"]:
        return f"The two are tied within the margin: {name}, {rival.name}."
    enough = (
        f"about {rounded(max(rival['images_needed'], rival['images'] + 1))} images would tell the two apart"
        if np.isfinite(rival["images_needed"])
        else "no number of images would tell the two apart"
    )
    sure = rival["probability"]
    return (
        f"It beats {rival.name} with probability {sure:.0%}; {enough}."
        if sure == sure
        else f"Of {rival.name}: {enough}."
    )


def rounded(number: float) -> str:
    """Two digits are all an estimate from one study is worth.

    >>> rounded(3141.6), rounded(87), rounded(26_543_210)
    ('3,100', '87', '27,000,000')
    """
    digits = max(0, len(str(int(number))) - 2)
    return f"{round(int(number), -digits):,}"
