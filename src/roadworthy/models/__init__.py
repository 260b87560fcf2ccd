"""Classifiers that need only torch, those of other libraries, and loading of user-defined models and weights."""

from roadworthy.models.loading import CIFAR10_RESNET20, WEIGHTS, copy_weights, load, resnet20_cifar10
from roadworthy.models.optimized import optimized
from roadworthy.models.pretrained import Pretrained, from_timm, from_torchvision, from_transformers
from roadworthy.models.resnet import CifarResNet, ResNet, cifar_resnet, resnet18, resnet50
from roadworthy.models.small_cnn import SmallCNN, mask_cnn, small_cnn

__all__ = [
    "CIFAR10_RESNET20",
    "WEIGHTS",
    "CifarResNet",
    "Pretrained",
    "ResNet",
    "SmallCNN",
    "cifar_resnet",
    "copy_weights",
    "from_timm",
    "from_torchvision",
    "from_transformers",
    "load",
    "mask_cnn",
    "optimized",
    "resnet18",
    "resnet20_cifar10",
    "resnet50",
    "small_cnn",
]
