"""Everything that Roadworthy raises on purpose, so that one `except` catches it all.

RoadworthyError
├── InputError (ValueError)      what the caller gave cannot be evaluated
│   ├── ShapeError               sizes, counts or types do not fit together
│   ├── RangeError               a number lies where it must not
│   └── EverythingRemovedError        no kept pixel is left to fill from
├── ModelError (ValueError)      the model answers something that is no classification
│   └── TrainingError           a training diverged or became non-finite; the message holds its point
├── WeightsError (ValueError)    weights do not fit the model
├── DataError (OSError)          a data file is missing, truncated or not what it claims to be
├── SolverError (ArithmeticError) a linear system was not solved to the promised accuracy
├── PlanError (ValueError)       a plan asks for something that is not there; the message holds the key
├── StoreError (OSError)         a store is in use by another run, or is no store
├── UnknownNameError (LookupError)    no part of that name; the message holds the nearest right one
└── MissingExtraError (ImportError)   an optional dependency; the message holds the `pip install` that cures it

Each message names the thing, the value and the cure.
"""


class RoadworthyError(Exception):
    pass


class InputError(RoadworthyError, ValueError):
    pass


class ShapeError(InputError):
    pass


class RangeError(InputError):
    pass


class EverythingRemovedError(InputError):
    pass


class ModelError(RoadworthyError, ValueError):
    pass


class TrainingError(ModelError):
    pass


class WeightsError(RoadworthyError, ValueError):
    pass


class DataError(RoadworthyError, OSError):
    pass


class SolverError(RoadworthyError, ArithmeticError):
    pass


class PlanError(RoadworthyError, ValueError):
    pass


class StoreError(RoadworthyError, OSError):
    pass


class IncompleteError(StoreError):
    pass


class UnknownNameError(RoadworthyError, LookupError):
    pass


class MissingExtraError(RoadworthyError, ImportError):
    pass


class UpsampledMapsWarning(UserWarning):
    """PrecomputedMaps smaller than their images were enlarged; said, because it changes what is ranked."""


class NotGuidedWarning(UserWarning):
    """Guided Backprop met activations that it cannot guide; there it is the plain gradient."""


class SameStartWarning(UserWarning):
    """A factory gives the same weights under every seed: trained ones, perhaps, where fresh ones are meant."""


class TrainTestOverlapWarning(UserWarning):
    """Images are in the train split and in the test split: what is learned by heart looks like understanding."""
