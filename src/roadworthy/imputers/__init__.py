"""How removed pixels are imputed: by a constant, a mean, a blur, Noisy Linear (ROAD), GAIN; or not at all."""

from roadworthy.imputers.fixed import Blur, Constant, DatasetMean, ImageMean
from roadworthy.imputers.gain import Gain
from roadworthy.imputers.noisy_linear import NoisyLinear
from roadworthy.imputers.token_removal import TokenRemoval

__all__ = ["Blur", "Constant", "DatasetMean", "Gain", "ImageMean", "NoisyLinear", "TokenRemoval"]
