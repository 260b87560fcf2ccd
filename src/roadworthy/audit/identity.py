"""What an evaluation measures (paper, section 4.2): I(x';C) = I(C;x'|M) + I(C;M) − I(C;M|x').

outcome = feature information + mask information − mitigator, for the class C, the mask M and the imputed image x'. In
small discrete worlds their joint distribution can be enumerated, and every term is exact. All in bits.
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
    """The terms of the identity, each computed independently, from a joint distribution `(classes, masks, images)`.

    Where the mask equals the class and the image reveals the mask, all of the outcome is leakage:

    >>> leaking = Identity(np.array([[[0.5, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.5]]]))
    >>> leaking.outcome, leaking.feature, leaking.mask, leaking.mitigator
    (1.0, 0.0, 1.0, 0.0)
    """

    joint: Array

    def __post_init__(self) -> None:
        joint = np.asarray(self.joint, dtype=np.float64)
        if joint.ndim != 3:
            raise ShapeError(f"joint {joint.shape}: give the probabilities of (class, mask, imputed image), three axes")
        if not (joint >= 0).all() or abs(joint.sum() - 1) > 1e-9:
            raise RangeError(
                f"joint has minimum {joint.min():g} and sum {joint.sum():g}: probabilities are nonnegative and sum to 1"
            )
        object.__setattr__(self, "joint", joint)

    @cached_property
    def outcome(self) -> float:
        """I(x';C): the class information that an ideal retrained classifier finds in the imputed images."""
        return mutual_information(self.joint.sum(axis=1))

    @cached_property
    def feature(self) -> float:
        """I(C;x'|M): class information in the kept pixels beyond that of the mask; what should be measured."""
        return conditional_information(np.moveaxis(self.joint, 1, 0))

    @cached_property
    def mask(self) -> float:
        """I(C;M): class information in the mask alone."""
        return mutual_information(self.joint.sum(axis=2))

    @cached_property
    def mitigator(self) -> float:
        """I(C;M|x'): class information that the mask adds to the imputed image; 0 where the image reveals the mask."""
        return conditional_information(np.moveaxis(self.joint, 2, 0))

    @cached_property
    def revealed(self) -> float:
        """I(x';M): how much the imputed image reveals of the mask."""
        return mutual_information(self.joint.sum(axis=0))

    @cached_property
    def revealed_within_class(self) -> float:
        """I(x';M|C): minimally revealing imputation requires 0."""
        return conditional_information(self.joint)

    @property
    def leak(self) -> float:
        """I(C;M) − I(C;M|x') = I(x';M) − I(x';M|C): the mask's part of the outcome; may be negative."""
        return self.mask - self.mitigator


def mutual_information(joint: Array) -> float:
    """I(A;B) in bits from the probabilities of `(a, b)`.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]])), mutual_information(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    support = joint > 0
    return float(np.sum(joint[support] * np.log2(joint[support] / independent[support])))


def conditional_information(joint: Array) -> float:
    """I(A;B|Z) in bits from the probabilities of `(z, a, b)`: the mean over z of I(A;B) given z."""
    weights = joint.sum(axis=(1, 2))
    return float(
        sum(
            weight * mutual_information(part / weight)
            for weight, part in zip(weights, joint, strict=True)
            if weight > 0
        )
    )
