"""
The blur trick
==============

A blurred map holds nothing that the map it was made from does not hold. A benchmark should therefore not prefer it.
This one does. Roadworthy measures it, so that smoothness is not mistaken for insight.
"""

import matplotlib.pyplot as plt

import roadworthy as rw

ig = rw.attributions.IntegratedGradients(steps=8)
methods = {
    "IG": ig,
    "IG, blurred": rw.attributions.Blurred(ig, sigma=1.0),
    "IG, blurred more": rw.attributions.Blurred(ig, sigma=2.0),
}
data, model = rw.datasets.CIFAR10Sample(), rw.models.resnet20_cifar10()

# %%
# The same map, before and after
# ------------------------------

ship = next(data.batches(3))[2:3]
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
axes[0].imshow(ship.images[0].permute(1, 2, 0), interpolation="nearest")
axes[0].set_title("image", fontsize=10)
for axis, (name, method) in zip(axes[1:], methods.items(), strict=True):
    axis.imshow(method(model, ship, rw.Key(0))[0], cmap="RdBu_r", interpolation="nearest")
    axis.set_title(name, fontsize=10)
for axis in axes:
    axis.axis("off")

# %%
# Which one does the benchmark prefer?
# ------------------------------------

comparison = rw.compare(
    model,
    rw.datasets.first(data, 100),
    methods,
    imputers=["linear", "fixed"],
    fractions=(0.2, 0.5, 0.8),
    controls=(),
    progress=False,
)
comparison.plot.ranking()

# %%
# With one color in place of removed pixels:

comparison.plot.ranking(imputer="fixed")

# %%
# Differences to the unblurred map, on the same images, with intervals that hold for all three pairs of an imputer
# together:

pairs = comparison.pairwise()
gains = pairs[pairs["method_b"] == "IG"]
assert (gains["low"] > 0).all(), "shown on these images: every interval excludes 0"
gains[["imputer", "method_a", "method_b", "difference", "low", "high"]].round(3)

# %%
# Why, and what to do
# -------------------
#
# Removing a compact region destroys more than removing scattered pixels, which can be restored from their neighbors:
# the error of linear imputation is 3.6 to 4.2 times as large for blobs as for scattered pixels (:doc:`/gain`). A
# blurred map removes compact regions. So a smooth method, such as a CAM, has a head start that says nothing about what
# it found.
#
# That is why ``rw.compare`` adds blurred and inverted copies of the two leading methods by default (``controls``), and
# warns if a copy wins. They do not count in the conclusion: they say something about the benchmark, not about a
# method. How much of a lead is geometry, ``comparison.audit().leads()`` estimates (:doc:`/leakage`).
