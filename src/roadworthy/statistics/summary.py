"""The tables in words: which method ranks first, with what confidence, and which warnings apply."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from roadworthy.core.results import Copy
from roadworthy.statistics.intervals import CONFIDENCE
from roadworthy.statistics.scores import BlockKey, leading_score, table_blocks

TITLES = {"srg": "LeRF − MoRF", "morf": "MoRF area", "lerf": "LeRF area"}

_BLOCK_PHRASES = {"imputer": "imputed with {}", "evaluator": "evaluator {}", "model": "model {}", "units": "units {}"}


def summary(
    ranking: pd.DataFrame,
    pairwise: pd.DataFrame,
    warnings: Sequence[str] = (),
    stopped: str = "",
    confidence: float = CONFIDENCE,
) -> str:
    """One paragraph from the tables of the same predictions; `stopped` is a sentence about early stopping."""
    sentences = block_summaries(ranking, pairwise, confidence) + ([stopped] if stopped else [])
    return " ".join(sentences + ([f"Warning: {' '.join(warnings)}"] if warnings else []))


def block_summaries(ranking: pd.DataFrame, pairwise: pd.DataFrame, confidence: float = CONFIDENCE) -> list[str]:
    """One or two sentences per block."""
    pairs_of, named = table_blocks(pairwise), {"imputer", *_varying(ranking)}
    summaries = []
    for key, block in table_blocks(ranking).items():
        methods = _ranked_methods(block)
        if len(methods):
            pairs = pairs_of.get(key, pairwise.iloc[:0])
            summaries.append(f"{_block_name(key, named)}: {_block_summary(methods, pairs, confidence)}")
    return summaries


def preferred_block(ranking: pd.DataFrame, preferred: tuple[str, str] | None = None) -> tuple[str, str]:
    """The (evaluator, imputer) to show first: `preferred` if the ranking has it, otherwise the first of the ranking."""
    evaluated = list(dict.fromkeys(zip(ranking["evaluator"], ranking["imputer"], strict=True)))
    return preferred if preferred in evaluated else evaluated[0]


def conclusion(
    ranking: pd.DataFrame,
    pairwise: pd.DataFrame,
    confidence: float = CONFIDENCE,
    preferred: tuple[str, str] | None = None,
    copies: Mapping[str, Copy] = MappingProxyType({}),
) -> str:
    """Two sentences about the preferred block: which method ranks first and how clearly, then how well supported it is.

    `preferred`: as in `preferred_block`. `copies`: controls made from a method's maps; only blind controls count here.
    """
    blocks, main = table_blocks(ranking), preferred_block(ranking, preferred)
    key = next(key for key in blocks if (key.evaluator, key.imputer) == main)
    block, pairs = blocks[key], table_blocks(pairwise).get(key, pairwise.iloc[:0])
    methods = _ranked_methods(block)
    if methods.empty:
        return "No method can be ranked. Only controls were evaluated in all orders."
    best = methods["method"].iloc[0]
    beaten = set(pairs.loc[(pairs["method_a"] == best) & (pairs["low"] > 0), "method_b"])
    rivals = [name for name in methods["method"] if name != best and name not in beaten]
    controls = [name for name in block.loc[block["control"], "method"] if name not in copies]
    unbeaten = [name for name in controls if name not in beaten]
    place = _block_name(key, _varying(ranking))
    images = f"{methods['images'].iloc[0]:,} images"
    first = f"{place}: {best} ranks first on {images}" if place else f"{best} ranks first on {images}"
    if len(methods) == 1:
        first = f"{best} is the only method evaluated on {images}"
    elif rivals:
        first += f", but is not clearly ahead of {_listed(rivals)}"
    else:
        first += f", {_clear_lead(confidence)}"
    return f"{first}. {_support(best, unbeaten, controls, blocks)}"


def _ranked_methods(block: pd.DataFrame) -> pd.DataFrame:
    """The rows of a block that are not controls and have a leading score."""
    return block[~block["control"] & block[leading_score(block)].notna()]


def _varying(ranking: pd.DataFrame) -> list[str]:
    return [field for field in _BLOCK_PHRASES if ranking[field].nunique() > 1]


def _block_name(key: BlockKey, named: Sequence[str] | set[str]) -> str:
    """`Imputed with linear, evaluator retrain`, with the fields in `named`."""
    name = ", ".join(phrase.format(getattr(key, field)) for field, phrase in _BLOCK_PHRASES.items() if field in named)
    return f"{name[:1].upper()}{name[1:]}"


def _clear_lead(confidence: float) -> str:
    return f"clearly ahead of every other method ({confidence:.0%} confidence for all pairs simultaneously)"


def _support(
    best: str, unbeaten: Sequence[str], controls: Sequence[str], blocks: Mapping[BlockKey, pd.DataFrame]
) -> str:
    if unbeaten:
        plural = "controls" if len(unbeaten) > 1 else "control"
        return f"It does not clearly beat the {plural} {_listed(unbeaten)}: do not trust it yet."
    firsts = [
        str(block.loc[~block["control"], "method"].iloc[0]) for block in blocks.values() if not block["control"].all()
    ]
    others = [name for name in firsts if name != best]
    beats = "It clearly beats every control" if controls else "No control was evaluated with it"
    if others:
        count = f"{len(others)} of {len(firsts)} settings"
        return f"{beats} there, but in {count} another method ranks first: {_listed(sorted(set(others)))}."
    every = "both settings" if len(firsts) == 2 else f"all {len(firsts)} settings"
    return f"{beats} there, and it ranks first in {every}." if len(firsts) > 1 else f"{beats}."


def _listed(names: Sequence[str], most: int = 3) -> str:
    """
    >>> _listed(["a"]), _listed(["a", "b"]), _listed(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _block_summary(methods: pd.DataFrame, pairs: pd.DataFrame, confidence: float) -> str:
    best, lead = methods.iloc[0], leading_score(methods)
    name, images = best["method"], f"{best['images']:,} images"
    score = f"{TITLES[lead]} {best[lead]:.3f} [{best[f'{lead}_low']:.3f}, {best[f'{lead}_high']:.3f}]"
    if len(methods) == 1:
        return f"{name} is the only method on {images} ({score})."
    of_best = pairs[pairs["method_a"].eq(name) | pairs["method_b"].eq(name)]
    opponents = np.where(of_best["method_a"] == name, of_best["method_b"], of_best["method_a"])
    by_opponent = of_best.set_index(opponents).reindex([method for method in methods["method"] if method != name])
    rivals = by_opponent[~(by_opponent["low"] > 0)]
    text = f"{name} ranks first on {images} ({score})"
    if rivals.empty:
        return f"{text}, {_clear_lead(confidence)}."
    return f"{text}, but is not clearly ahead of {', '.join(rivals.index)}. {_advice(name, rivals.iloc[0])}"


def _advice(name: str, rival: pd.Series) -> str:
    """What it would take to separate the first method from the next."""
    if rival["tie"]:
        return f"{name} and {rival.name} are tied within the margin."
    needed, probability = rival["images_needed"], rival["probability"]
    number = f"about {rounded(max(needed, rival['images'] + 1))}" if np.isfinite(needed) else "no number of"
    if np.isnan(probability):
        return f"{number[:1].upper()}{number[1:]} images would separate it from {rival.name}."
    return f"It beats {rival.name} with probability {probability:.0%}; {number} images would separate them."


def rounded(number: float) -> str:
    """Two significant digits: an estimate from one study justifies no more.

    >>> rounded(3141.6), rounded(87), rounded(26_543_210)
    ('3,100', '87', '27,000,000')
    """
    digits = max(0, len(str(int(number))) - 2)
    return f"{round(int(number), -digits):,}"
