"""
ROAD in five pictures
=====================

From an image to a score: the map that a method claims, the pixels that it removes, what is imputed in their place,
what the model loses, and what that says about the method.
"""

# sphinx_gallery_thumbnail_number = 4
import matplotlib.pyplot as plt
import torch

import roadworthy as rw

data = rw.datasets.CIFAR10Sample()  # 200 test images, 20 of each class
model = rw.models.resnet20_cifar10()  # takes images in [0, 1] and normalizes them itself
ig = rw.attributions.IntegratedGradients(steps=8)

# %%
# 1. An image, and what the model sees in it
# ------------------------------------------
#
# A ``Batch`` holds images, their ids and their labels. We take one that shows the steps well; the last picture is
# about many.

ship = next(data.batches(3))[2:3]


def answer(images):
    """The predicted class and its probability."""
    with torch.no_grad():
        probability, predicted = torch.softmax(model(images), 1).max(1)
    return f"{data.classes[predicted.item()]}, {probability.item():.0%}"


def show(axis, images, title):
    axis.imshow(images[0].permute(1, 2, 0).clamp(0, 1), interpolation="nearest")
    axis.set_title(title, fontsize=10)
    axis.axis("off")


figure, axis = plt.subplots(figsize=(3, 3))
show(axis, ship.images, f"the model: {answer(ship.images)}")

# %%
# 2. What a method claims
# -----------------------
#
# An attribution map has one value per pixel, higher = more relevant. It is called with the model, the batch and a
# ``Key``, from which all randomness comes.

maps = ig(model, ship, rw.Key(0))
figure, axis = plt.subplots(figsize=(3, 3))
largest = maps.abs().max()
axis.imshow(maps[0], cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest")
axis.set_title("Integrated Gradients", fontsize=10)
axis.axis("off")

# %%
# 3. What is removed
# ------------------
#
# MoRF removes the *most* relevant pixels first, LeRF the *least* relevant ones. At a fraction of 30 % both remove
# exactly 307 of the 1,024 pixels; red pixels are removed.

masks = {name: rw.removal_mask(maps, 0.3, name.lower()) for name in ("MoRF", "LeRF")}
assert all(int(removed.sum()) == 307 for removed in masks.values())
figure, axes = plt.subplots(1, 2, figsize=(6, 3))
for axis, (order, removed) in zip(axes, masks.items(), strict=True):
    red = torch.tensor([0.8, 0.1, 0.1])[None, :, None, None]
    show(axis, torch.where(removed[:, None], red, ship.images), f"removed by {order}")

# %%
# 4. What is imputed in its place
# -------------------------------
#
# A fixed color shows where pixels were removed: the shape of the mask is visible, to you and to any model. Noisy
# Linear imputation, the paper's, takes the weighted mean of the neighbors, solved for all removed pixels at once, and
# adds a little noise. It reveals less of the mask. Under each picture: the model's answer. Here one color misleads the
# model even where the least relevant pixels were removed.

figure, axes = plt.subplots(2, 2, figsize=(6, 6.4))
for row, (order, removed) in zip(axes, masks.items(), strict=True):
    for axis, imputer in zip(row, (rw.DatasetMean((0.49, 0.48, 0.45)), rw.NoisyLinear()), strict=True):
        imputed = rw.impute(imputer, ship.images, removed)
        name = "one color" if isinstance(imputer, rw.DatasetMean) else "Noisy Linear"
        show(axis, imputed, f"{order}, {name}\n{answer(imputed)}")

# %%
# 5. What the model loses, over all images
# ----------------------------------------
#
# One image is an anecdote. ``rw.compare`` repeats this for many images, both orders and several fractions, and ranks
# the methods together with controls that use no model: here a random map and the center of the image. With a good map,
# the accuracy falls fast in MoRF and stays high in LeRF.

comparison = rw.compare(
    model,
    rw.datasets.first(data, 100),
    {"IG": ig, "gradient": "gradient"},
    fractions=(0.1, 0.3, 0.5, 0.7, 0.9),
    controls=("random", "center"),
    progress=False,
)
comparison.plot.curves()

# %%
# The ranking is by the area between the two curves of a method (LeRF − MoRF, column ``srg``). The conclusion says what
# these 100 images establish, and what they do not.

comparison
