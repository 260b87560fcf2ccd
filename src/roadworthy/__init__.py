"""Which explanation can you trust? Roadworthy removes pixels as each method claims, debiases, and measures."""

from roadworthy import attributions, datasets, imputers, models, statistics
from roadworthy.core import errors
from roadworthy.core.masks import FRACTIONS, PAPER_FRACTIONS
from roadworthy.core.random import Key
from roadworthy.core.results import Verdict
from roadworthy.core.types import Batch
from roadworthy.experiments.compare import CONTROLS, compare
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.functions import impute, removed
from roadworthy.experiments.registry import PARTS
from roadworthy.imputers import Blur, Constant, DatasetMean, Gain, ImageMean, NoisyLinear
from roadworthy.models.normalized import Normalised

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
