"""What an evaluation measures, taken apart (paper, 4.2): I(x';C) = I(C;x'|M) + I(C;M) − I(C;M|x').

outcome = feature information + mask information − mitigator. The class C, the mask M and the imputed image x' have a
joint distribution; on small discrete worlds it can be written down whole, and every term is exact. In bits.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from roadworthy.core.errors import RangeError, ShapeError
from roadworthy.statistics.intervals import Array


@final
@dataclass(frozen=True, eq=False)
class Identity:
    """The terms of the identity, each computed on its own, from a joint distribution `(classes, masks, images)`.

    The class is the mask, and the image shows the mask: all of the outcome is leaked.

    >>> leaking = Identity(np.array([[[0.5, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.5]]]))
    >>> leaking.outcome, leaking.feature, leaking.mask, leaking.mitigator
    (1.0, 0.0, 1.0, 0.0)
    """

    joint: Array

    def __post_init__(self) -> None:
        joint = np.asarray(self.joint, dtype=np.float64)
        if joint.ndim != 3:
            raise ShapeError(f"joint {joint.shape}: give probabilities of (class, mask, imputed image), three axes")
        if not (joint >= 0).all() or abs(joint.sum() - 1) > 1e-9:
            raise RangeError(f"joint has minimum {joint.min():g} and sum {joint.sum():g}: probabilities add up to 1")
        object.__setattr__(self, "joint", joint)

    @cached_property
    def outcome(self) -> float:
        """I(x';C): what a perfect retrained classifier would get out of the imputed images."""
        return mutual_information(self.joint.sum(axis=1))

    @cached_property
    def feature(self) -> float:
        """I(C;x'|M): what the kept pixels say about the class beyond the mask; this is what should be measured."""
        return conditional_information(np.moveaxis(self.joint, 1, 0))

    @cached_property
    def mask(self) -> float:
        """I(C;M): what the mask alone says about the class."""
        return mutual_information(self.joint.sum(axis=2))

    @cached_property
    def mitigator(self) -> float:
        """I(C;M|x'): what the mask would still add to the imputed image; 0 where the image shows the mask."""
        return conditional_information(np.moveaxis(self.joint, 2, 0))

    @cached_property
    def revealed(self) -> float:
        """I(x';M): how far the imputed image shows the mask."""
        return mutual_information(self.joint.sum(axis=0))

    @cached_property
    def revealed_within_class(self) -> float:
        """I(x';M|C): 0 is the first condition of minimally revealing imputation."""
        return conditional_information(self.joint)

    @property
    def leak(self) -> float:
        """I(C;M) − I(C;M|x') = I(x';M) − I(x';M|C): the mask's share of the outcome; negative where it obscures."""
        return self.mask - self.mitigator


def mutual_information(joint: Array) -> float:
    """I(A;B) in bits from the probabilities of `(a, b)`.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]])), mutual_information(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float(np.sum(joint[there] * np.log2(joint[there] / alone[there])))


def conditional_information(joint: Array) -> float:
    """I(A;B|Z) in bits from the probabilities of `(z, a, b)`: the mean, over z, of I(A;B) within it."""
    weights = joint.sum(axis=(1, 2))
    return float(
        sum(
            weight * mutual_information(part / weight)
            for weight, part in zip(weights, joint, strict=True)
            if weight > 0
        )
    )
