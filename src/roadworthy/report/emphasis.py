"""Who stands out where not everyone can: the leading methods, the best blind control and random."""

from collections.abc import Collection

import pandas as pd

from roadworthy.statistics import leading_score

TOP = 3


def emphasized(block: pd.DataFrame, copies: Collection[str] = (), top: int = TOP) -> tuple[str, ...]:
    """The `top` methods, then the best blind control and random, of one block of a ranking, which is best first.

    `copies`: controls made from a method's maps; they are not blind.

    >>> block = pd.DataFrame({"method": ["a", "center", "b", "c", "d", "random"], "srg": [0.5, 0.4, 0.3, 0.2, 0.1, 0]})
    >>> emphasized(block.assign(control=block["method"].isin(["center", "random"])))
    ('a', 'b', 'c', 'center', 'random')
    """
    ranked = block[block[leading_score(block)].notna()]
    methods = ranked.loc[~ranked["control"], "method"].tolist()
    controls = blind_controls(ranked, copies)
    return tuple(dict.fromkeys([*methods[:top], *controls[:1], *(name for name in controls if name == "random")]))


def blind_controls(block: pd.DataFrame, copies: Collection[str] = ()) -> list[str]:
    """Controls that do not use the model, best first."""
    return [name for name in block.loc[block["control"], "method"] if name not in copies]


def best_and_worst(block: pd.DataFrame) -> tuple[str, ...]:
    """The first and the last method of one block of a ranking; a single one where there is no other."""
    ranked = block[block[leading_score(block)].notna() & ~block["control"]]["method"].tolist()
    return tuple(dict.fromkeys([*ranked[:1], *ranked[-1:]]))
