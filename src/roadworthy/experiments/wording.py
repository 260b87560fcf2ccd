"""Parts of the sentences of a conclusion: names, numbers, and what would settle an open question."""

import math
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from roadworthy.statistics import BlockKey, Standing
from roadworthy.statistics.curves import PER_IMAGE_NOISE
from roadworthy.statistics.pairwise import POWER
from roadworthy.statistics.standing import Difference

SCORE_NAMES = {"srg": "LeRF − MoRF", "morf": "MoRF area (lower is better)", "lerf": "LeRF area"}

_BLOCK_PHRASES = {"imputer": "imputed with {}", "evaluator": "evaluator {}", "model": "model {}", "units": "units {}"}
_MOST_IMAGES = 1_000_000
_MANY_TIMES = 100
"""An estimate beyond this many times the images says nothing."""
_FEW = 100
"""On fewer images, it is that many times this number."""


def varying_fields(ranking: pd.DataFrame) -> list[str]:
    """What has to be named to distinguish the blocks of a ranking."""
    return [field for field in _BLOCK_PHRASES if ranking[field].nunique() > 1]


def block_name(key: BlockKey, fields: Collection[str]) -> str:
    """`Imputed with linear, evaluator retrain`, with the given fields."""
    name = ", ".join(phrase.format(getattr(key, field)) for field, phrase in _BLOCK_PHRASES.items() if field in fields)
    return f"{name[:1].upper()}{name[1:]}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def controls_named(names: Sequence[str]) -> str:
    return f"the control{'s' if len(names) > 1 else ''} {listed(names)}"


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "image"), count(1200, "image")
    ('1 image', '1,200 images')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def bounds(low: float, high: float) -> str:
    """The interval; a single image has none."""
    if math.isnan(low):
        return "(no interval)"
    return f"[{low:.3f}, {high:.3f}]".replace("-", "−")


def at_most(value: float) -> str:
    """Rounded up, so that it stays true.

    >>> at_most(0.0121)
    'at most 0.013'
    """
    return f"at most {math.ceil(round(value, 9) * 1000) / 1000:.3f}"


def rounded_up(number: float) -> str:
    """Two significant digits: an estimate from one study justifies no more.

    >>> rounded_up(3141.6), rounded_up(87), rounded_up(201)
    ('3,200', '87', '210')
    """
    step = 10 ** max(0, len(str(math.ceil(number))) - 2)
    return f"{math.ceil(number / step) * step:,}"


def share_of_resamples(share: float) -> str:
    """
    >>> share_of_resamples(0.9997), share_of_resamples(0.97)
    (', and in >99 % of resamples', ', and in 97 % of resamples')
    """
    if np.isnan(share):
        return ""
    text = ">99 %" if share > 0.99 else "<1 %" if share < 0.01 else f"{100 * share:.0f} %"
    return f", and in {text} of resamples"


def settling(standing: Standing, pairs: Sequence[tuple[str, str]], confidence: float) -> str:
    """How many images would separate these pairs or show a tie, or why no number can be given; "" for no pairs."""
    if not pairs:
        return ""
    images, differences = standing.images, [standing.difference(*pair) for pair in pairs]
    if images < 2:
        return "A single image settles nothing."
    most = max(difference.most for difference in differences)
    separable = [not _absurd(difference.images_needed, images) for difference in differences]
    needed = max(
        difference.images_needed if possible else _images_for_a_tie(difference, standing, confidence)
        for difference, possible in zip(differences, separable, strict=True)
    )
    if most < standing.margin and not all(separable):
        return f"The difference is too small for more images to matter: {at_most(most)}."
    if needed <= images:
        return "Somewhat more images would settle it."
    if not _absurd(needed, images):
        if any(separable):
            return f"About {rounded_up(needed)} images would settle it."
        shown = (
            f"about {rounded_up(needed)} images would show whether they lie within {standing.margin:g} of each other"
        )
        return f"The scores are nearly equal: {shown}."
    if standing.key.evaluator not in PER_IMAGE_NOISE:
        return f"More images alone would not settle it: run more seeds. The scores differ by {at_most(most)}."
    return f"These images cannot show how many would settle it: the scores differ by {at_most(most)}."


def _absurd(images: float, evaluated: int) -> bool:
    return not images <= min(_MOST_IMAGES, _MANY_TIMES * max(evaluated, _FEW))


def _images_for_a_tie(difference: Difference, standing: Standing, confidence: float) -> float:
    """To show with 80 % power that two methods lie within the margin, if the true difference is the observed one."""
    room = standing.margin - abs(difference.value)
    if room <= 0 or standing.key.evaluator not in PER_IMAGE_NOISE:  # seeds have a variance that images do not reduce
        return math.inf
    half = difference.most - abs(difference.value)
    quantile = stats.norm.isf((1 - confidence) / (2 * max(1, len(standing.differences))))
    return float(standing.images * (half / room * (1 + stats.norm.ppf(POWER) / quantile)) ** 2)
