"""How holes are filled: constants, the data set's mean, the image's mean, a blur, Noisy Linear (ROAD), or GAIN."""

from roadworthy.imputers.fixed import Blur, Constant, DatasetMean, ImageMean
from roadworthy.imputers.gain import Gain
from roadworthy.imputers.noisy_linear import NoisyLinear

__all__ = ["Blur", "Constant", "DatasetMean", "Gain", "ImageMean", "NoisyLinear"]
