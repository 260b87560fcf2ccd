"""How removed pixels are imputed: a constant, the mean of dataset or image, a blur, Noisy Linear (ROAD), GAIN; or not."""

from roadworthy.imputers.fixed import Blur, Constant, DatasetMean, ImageMean
from roadworthy.imputers.gain import Gain
from roadworthy.imputers.noisy_linear import NoisyLinear
from roadworthy.imputers.token_removal import TokenRemoval

__all__ = ["Blur", "Constant", "DatasetMean", "Gain", "ImageMean", "NoisyLinear", "TokenRemoval"]
