"""How removed pixels are imputed: a constant, the dataset mean, the image mean, a blur, Noisy Linear (ROAD), GAIN."""

from roadworthy.imputers.fixed import Blur, Constant, DatasetMean, ImageMean
from roadworthy.imputers.gain import Gain
from roadworthy.imputers.noisy_linear import NoisyLinear

__all__ = ["Blur", "Constant", "DatasetMean", "Gain", "ImageMean", "NoisyLinear"]
