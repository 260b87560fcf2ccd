"""Where images come from: arrays, pictures, torch and Hugging Face data, files.

Every dataset streams the same batches on every pass.
"""

from roadworthy.datasets.adapt import as_dataset, first
from roadworthy.datasets.arrays import Arrays
from roadworthy.datasets.cifar10 import CIFAR10
from roadworthy.datasets.cifar10_sample import CIFAR10Sample
from roadworthy.datasets.digits import Digits
from roadworthy.datasets.folder import ImageFolder
from roadworthy.datasets.food101 import Food101
from roadworthy.datasets.pictures import HuggingFace, Pictures
from roadworthy.datasets.torch_data import TorchData

__all__ = [
    "CIFAR10",
    "Arrays",
    "CIFAR10Sample",
    "Digits",
    "Food101",
    "HuggingFace",
    "ImageFolder",
    "Pictures",
    "TorchData",
    "as_dataset",
    "first",
]
