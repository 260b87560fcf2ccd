"""Every exception and warning that Roadworthy raises on purpose; `except RoadworthyError` catches all exceptions.

RoadworthyError
├── InputError (ValueError)           an argument cannot be used
│   ├── ShapeError                    shapes, counts or dtypes do not match
│   ├── RangeError                    a number is out of range
│   ├── MethodError                   a method of another library failed
│   └── EverythingRemovedError        no pixel is left to impute from
├── ModelError (ValueError)           the model, or its output, is not usable as a classifier
│   └── TrainingError                 training diverged or became non-finite
├── WeightsError (ValueError)         a weights file is unreadable or does not match the model
├── DataError (OSError)               a data file is missing, truncated or invalid
├── OutputError (OSError)             a file cannot be written
├── SolverError (ArithmeticError)     a linear system was not solved to the promised accuracy
├── PlanError (ValueError)            a plan is invalid
├── StoreError (OSError)              a run directory is in use, or is not one
│   └── IncompleteError               a run directory holds no complete curve yet
├── ExecutorError (RuntimeError)      workers cannot be started or reached
├── UnknownNameError (LookupError)    no registered part has that name
└── MissingExtraError (ImportError)   an optional dependency is not installed

UserWarning
├── UpsampledMapsWarning              maps were upsampled to the size of their images
├── NotGuidedWarning                  Guided Backprop met activations other than ReLU
├── ChangedInputWarning               a method changed the images or labels it was given, or the model's mode
├── UnstableModelWarning              a model answers differently when asked again, or in another batch
├── RandomWeightsWarning              a plan explains a network without weights
├── NotLogitsWarning                  the model returns probabilities, or their logarithms
├── LowAccuracyWarning                the model is hardly better than chance, or better with another normalization
├── SameStartWarning                  a factory returns the same weights under every seed
└── TrainTestOverlapWarning           the train and test splits share images

Each message states what is wrong, the offending value and how to fix it.
"""


class RoadworthyError(Exception):
    """Base class of all exceptions raised by Roadworthy."""


class InputError(RoadworthyError, ValueError):
    """An argument cannot be used."""


class ShapeError(InputError):
    """Shapes, counts or dtypes do not match."""


class RangeError(InputError):
    """A number is out of range."""


class MethodError(InputError):
    """A method of another library failed; the message names both and repeats its error."""


class EverythingRemovedError(InputError):
    """An image has no pixel left to impute from; the message names its id."""


class ModelError(RoadworthyError, ValueError):
    """The model, or its output, is not usable as a classifier."""


class TrainingError(ModelError):
    """Training diverged or became non-finite; the message names the setting that was trained."""


class WeightsError(RoadworthyError, ValueError):
    """A weights file is unreadable or does not match the model."""


class DataError(RoadworthyError, OSError):
    """A data file is missing, truncated or invalid."""


class OutputError(RoadworthyError, OSError):
    """A file cannot be written: disk full, read-only, or the name of something that is not a file."""


class SolverError(RoadworthyError, ArithmeticError):
    """A linear system was not solved to the promised accuracy."""


class PlanError(RoadworthyError, ValueError):
    """A plan is invalid; the message names the key."""


class StoreError(RoadworthyError, OSError):
    """A run directory is in use by another run, or is not a run directory."""


class IncompleteError(StoreError):
    """A run directory holds no complete curve yet."""


class ExecutorError(RoadworthyError, RuntimeError):
    """Workers cannot be started or reached."""


class UnknownNameError(RoadworthyError, LookupError):
    """No registered part has that name; the message suggests the closest one."""


class MissingExtraError(RoadworthyError, ImportError):
    """An optional dependency is not installed; the message gives the `pip install` command."""


class UpsampledMapsWarning(UserWarning):
    """Maps smaller than their images were upsampled, which changes the ranking of pixels."""


class NotGuidedWarning(UserWarning):
    """Guided Backprop met activations other than ReLU; through those it is the plain gradient."""


class ChangedInputWarning(UserWarning):
    """A method changed the images or labels it was given, or the model's mode; other methods are not affected."""


class UnstableModelWarning(UserWarning):
    """A model answers differently when asked again, or with other images in the batch."""


class RandomWeightsWarning(UserWarning):
    """A plan explains a network without weights, whose random ones nobody trained."""


class NotLogitsWarning(UserWarning):
    """The model returns probabilities, or their logarithms, so gradient methods explain these and not logits."""


class LowAccuracyWarning(UserWarning):
    """The model is hardly better than chance, or much better with another normalization: inputs or labels are wrong."""


class SameStartWarning(UserWarning):
    """A factory returns the same weights under every seed: perhaps pretrained ones, where fresh ones are expected."""


class TrainTestOverlapWarning(UserWarning):
    """The train and test splits share images: memorized images inflate accuracy."""
