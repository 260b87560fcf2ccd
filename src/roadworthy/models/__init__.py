"""Classifiers that need only torch, and loading of user-defined models and weights."""

from roadworthy.models.loading import CIFAR10_RESNET20, load, resnet20_cifar10
from roadworthy.models.resnet import CifarResNet, ResNet, cifar_resnet, resnet18, resnet50
from roadworthy.models.small_cnn import SmallCNN, mask_cnn, small_cnn

__all__ = [
    "CIFAR10_RESNET20",
    "CifarResNet",
    "ResNet",
    "SmallCNN",
    "cifar_resnet",
    "load",
    "mask_cnn",
    "resnet18",
    "resnet20_cifar10",
    "resnet50",
    "small_cnn",
]
