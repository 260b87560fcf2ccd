"""What measured changes say about a claim of the paper: the rules behind the column `outcome`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reproduction.tables import NOT_RUN, spread

SHOWN, DIRECTION, NOT_SHOWN = "shown", "direction only", "not shown"
CONTRADICTED, UNTESTABLE = "contradicted", "not testable here"
OUTCOMES = (SHOWN, DIRECTION, NOT_SHOWN, CONTRADICTED, UNTESTABLE, NOT_RUN)

WIDE = 2.0
"""A size differs widely if it is less than half of the paper's or more than twice."""

FLOORS = {"cifar10": 0.65, "food101": 0.5}
"""The accuracy on whole images below which a network is no evidence for or against a claim.

The paper's networks reach .845 and .817. A network far below has not learned the task: its accuracy on imputed images
shows how far its training got, more than what was removed. The floors were set by hand: three quarters of the paper's
.845 is .63; ten classes at 64 × 64 pixels are harder to tell than the paper's images, so their floor is lower.
"""


class Change(NamedTuple):
    value: float
    low: float
    """ends of the 95 % interval"""
    high: float


def outcome(change: Change, sign: float, similar: bool = True) -> str:
    """What the interval of a change shows about a claim of a change with this sign, of a size that is `similar` or not.

    >>> up = Change(0.1, 0.05, 0.15)
    >>> outcome(up, 1), outcome(up, 1, similar=False), outcome(Change(0.1, -0.1, 0.3), 1), outcome(up, -1)
    ('shown', 'direction only', 'not shown', 'contradicted')
    """
    low, high = sorted((sign * change.low, sign * change.high))
    if high < 0:
        return CONTRADICTED
    if not low > 0:
        return NOT_SHOWN
    return SHOWN if similar else DIRECTION


def over_seeds(outcomes: Sequence[str]) -> str:
    """Of a claim that was tested with several seeds: one that they do not agree on is not shown.

    >>> over_seeds(["shown", "shown"]), over_seeds(["shown", "direction only"]), over_seeds(["shown", "contradicted"])
    ('shown', 'direction only', 'not shown')
    """
    found = set(outcomes)
    if len(found) == 1:
        return outcomes[0]
    return DIRECTION if found <= {SHOWN, DIRECTION} else NOT_SHOWN


def is_similar(value: float, reported: float) -> bool:
    """
    >>> is_similar(0.73, 0.57), is_similar(0.134, 0.7), is_similar(-0.06, -0.35)
    (True, False, False)
    """
    return 1 / WIDE <= value / reported <= WIDE


def resolution(change: Change) -> float:
    """The smallest change that an interval of this width excludes from 0: half of the width.

    >>> round(resolution(Change(0.1, -0.1, 0.3)), 9)
    0.2
    """
    return (change.high - change.low) / 2


def in_words(result: str, changes: Mapping[int, Change], digits: int = 2) -> str:
    """
    >>> in_words("not shown", {0: Change(0.1, -0.1, 0.3)})
    'not shown (+.10 [-.10, .30]; a change of .20 could have been shown)'
    """
    texts = [f"{'+' if change.value > 0 else ''}{spread(*change, digits=digits)}" for change in changes.values()]
    text = (
        texts[0]
        if len(texts) == 1
        else ", ".join(f"seed {seed}: {one}" for seed, one in zip(changes, texts, strict=True))
    )
    if result == NOT_SHOWN:
        least = max(resolution(change) for change in changes.values())
        text += f"; a change of {spread(least, float('nan'), float('nan'), digits)} could have been shown"
    return f"{result} ({text})"


def below_floor(data: str, accuracies: Mapping[str, float]) -> str:
    """Why a claim that rests on these networks is not testable here, or nothing. `accuracies` are on whole images.

    >>> below_floor("cifar10", {"no-retrain": 0.9}), below_floor("cifar10", {"retrain": 0.508})
    ('', 'retrain: accuracy 50.8 % on whole images, floor 65 %')
    """
    floor = FLOORS[data]
    texts = [
        f"{evaluator}: accuracy {100 * accuracy:.1f} % on whole images, floor {100 * floor:.0f} %"
        for evaluator, accuracy in accuracies.items()
        if accuracy < floor
    ]
    return "; ".join(texts)
