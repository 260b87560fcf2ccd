"""How holes are filled: constants, the data set's mean, the image's mean, a blur, or Noisy Linear (ROAD)."""

from roadworthy.imputers.fills import Blur, Constant, DatasetMean, ImageMean
from roadworthy.imputers.linear import NoisyLinear

__all__ = ["Blur", "Constant", "DatasetMean", "ImageMean", "NoisyLinear"]
