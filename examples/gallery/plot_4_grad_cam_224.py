"""
Grad-CAM at 224 × 224
=====================

CAMs are computed on a coarse layer and enlarged to the size of the image. This page shows how to compare them at the
usual 224 × 224 pixels. **It is a how-to, not a benchmark**: the images are the small ones that come with the package,
enlarged, and the network reduces them again before it looks at them. Put your own model and photographs in their
place.
"""

import warnings

import torch
from captum.attr import LayerGradCam
from torch import nn

import roadworthy as rw

small = next(rw.datasets.CIFAR10Sample().batches(32))
images = nn.functional.interpolate(small.images, (224, 224), mode="bilinear").clamp(0, 1)
resnet = rw.models.resnet20_cifar10().network.network  # the plain network, without its normalization
network = nn.Sequential(nn.AdaptiveAvgPool2d(32), resnet).eval()
model = rw.Normalized(network, **rw.models.CIFAR10_RESNET20)
with torch.no_grad():
    print(f"accuracy on the enlarged images: {(model(images).argmax(1) == small.labels).float().mean():.0%}")

# %%
# A CAM of any layer
# ------------------
#
# A layer method of Captum is given as it is, built around the same network. Objects of pytorch-grad-cam are taken as
# well: ``GradCAM(network, [layer])`` (:doc:`/bridges`). The last stage has 8 × 8 values, which are enlarged to 224 ×
# 224; because that changes the ranking of pixels, Roadworthy warns once.

layers = {"Grad-CAM, last stage": resnet.layer3, "Grad-CAM, middle stage": resnet.layer2}
methods = {name: LayerGradCam(network, layer) for name, layer in layers.items()}
methods["IG"] = rw.attributions.IntegratedGradients(steps=8)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    comparison = rw.compare(
        model, (images, small.labels), methods, fractions=(0.2, 0.5, 0.8), controls=("random", "center"), progress=False
    )
print(next(str(w.message) for w in caught if w.category is rw.errors.UpsampledMapsWarning))

# %%
# What is removed
# ---------------
#
# A CAM removes blobs, gradients remove scattered pixels. The blobs are harder to impute, which helps a CAM for a
# reason that has nothing to do with what it found: see :doc:`plot_3_blur_trick`.

comparison.plot.examples()

# %%
# What 32 images establish
# ------------------------

print(comparison.conclusion())
