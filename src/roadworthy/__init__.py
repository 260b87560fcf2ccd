"""Which explanation can you trust? Roadworthy removes pixels as each method claims, debiases, and measures."""

from roadworthy import attributions, datasets, errors, imputers, models, statistics
from roadworthy.calls import impute, removed
from roadworthy.compare import CONTROLS, compare
from roadworthy.comparison import Comparison
from roadworthy.imputers import Blur, Constant, DatasetMean, Gain, ImageMean, NoisyLinear
from roadworthy.keys import Key
from roadworthy.parts import PARTS
from roadworthy.removal import FRACTIONS, PAPER_FRACTIONS
from roadworthy.types import Batch, Normalised, Verdict

__version__ = "0.1.0"

__all__ = [
    "CONTROLS",
    "FRACTIONS",
    "PAPER_FRACTIONS",
    "PARTS",
    "Batch",
    "Blur",
    "Comparison",
    "Constant",
    "DatasetMean",
    "Gain",
    "ImageMean",
    "Key",
    "NoisyLinear",
    "Normalised",
    "Verdict",
    "attributions",
    "compare",
    "datasets",
    "errors",
    "impute",
    "imputers",
    "models",
    "removed",
    "statistics",
]
