"""Image classifiers that need nothing but torch, and the door through which a user's own model enters."""

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
