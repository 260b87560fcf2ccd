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

_PLAIN_CONTROLS = {
    "random": "choosing pixels at random",
    "edges": "marking the edges of every image",
    "center": "pointing at the center of every image",
}
"""what a blind control does"""
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


def controls_described(names: Sequence[str]) -> str:
    """The built-in blind controls in plain words.

    >>> controls_described(["center"]), controls_described(["edges", "mine"])
    ('pointing at the center of every image (the control center)', 'the controls edges and mine')
    """
    if len(names) == 1 and names[0] in _PLAIN_CONTROLS:
        return f"{_PLAIN_CONTROLS[names[0]]} (the control {names[0]})"
    return controls_named(names)


def count(number: int, thing: str) -> str:
    """
    >>> count(1, "image"), count(1200, "image")
    ('1 image', '1,200 images')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def bounds(low: float, high: float, digits: int = 3) -> str:
    """The interval; a single image has none."""
    if math.isnan(low):
        return "(no interval)"
    return f"[{low:.{digits}f}, {high:.{digits}f}]".replace("-", "−")


def at_most(value: float) -> str:
    """Rounded up, so that it stays true.

    >>> at_most(0.0121)
    'at most 0.013'
    """
    return f"at most {math.ceil(round(value, 9) * 1000) / 1000:.3f}"


def at_least(value: float) -> str:
    """Rounded down, so that it stays true.

    >>> at_least(0.0129)
    'at least 0.012'
    """
    return f"at least {math.floor(round(value, 9) * 1000) / 1000:.3f}"


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
    (', and in >99 % of resamples (of this pair alone)', ', and in 97 % of resamples (of this pair alone)')
    """
    if np.isnan(share):
        return ""
    text = ">99 %" if share > 0.99 else "<1 %" if share < 0.01 else f"{100 * share:.0f} %"
    return f", and in {text} of resamples (of this pair alone)"


def settling_pairs(standing: Standing, rivals: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs that keep the leaders, the best method and these rivals, from being a clear winner or a tie."""
    if pairs := [(standing.best, name) for name in rivals if not standing.difference(standing.best, name).tie]:
        return pairs
    among = [(a, b) for row, a in enumerate(rivals) for b in rivals[row + 1 :] if not standing.difference(a, b).tie]
    return among or [(name, control) for name in rivals for control in standing.unbeaten_controls(name)]


def settling(standing: Standing, pairs: Sequence[tuple[str, str]], confidence: float) -> str:
    """How many images would separate these pairs or show a tie, or why no number can be given; "" for no pairs."""
    if not pairs:
        return ""
    images, differences = standing.images, [standing.difference(*pair) for pair in pairs]
    if images < 2:
        return "A single image settles nothing."
    most = max(difference.most for difference in differences)
    separable = [not _absurd(difference.images_needed, images) for difference in differences]
    # A pair is settled by a clear difference or by a tie, whichever takes fewer images.
    ties = [_images_for_a_tie(difference, standing, confidence) for difference in differences]
    needed, tie = max(
        (min(one.images_needed, tie), tie < one.images_needed) for one, tie in zip(differences, ties, strict=True)
    )
    if most < standing.margin and not all(separable):
        return f"The difference is too small for more images to matter: {at_most(most)}."
    if needed <= images:
        return "Somewhat more images would settle this."
    if not _absurd(needed, images):
        if any(separable):
            end = f"show a tie: scores within {standing.margin:g}" if tie else "separate them, if the difference stays"
            return f"About {rounded_up(needed)} images would {end}."
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
