"""
One color against debiased imputation
=====================================

The paper's point in one picture: with a fixed color, the two removal orders disagree about which method is good; with
Noisy Linear imputation they agree more. The paper's explanation is that the color reveals the mask. Here with its
eight methods, on 100 images and with few steps and samples, so that it takes seconds; the full tables are in
:doc:`/reproduction`.
"""

import roadworthy as rw

methods = rw.attributions.paper_methods(steps=6, ig_samples=3, gb_samples=6, ig_sigma=0.1, gb_sigma=0.5, units="pixels")
print(", ".join(methods))

# %%
# IG is Integrated Gradients, GB is Guided Backprop; SG, SQ and Var are their means, mean squares and variances over
# noisy copies of the image. Both imputers see the same maps, the same removed pixels and the same images.

comparison = rw.compare(
    rw.models.resnet20_cifar10(),
    rw.datasets.first(rw.datasets.CIFAR10Sample(), 100),
    methods,
    imputers={"debiased": "linear", "one color": "fixed"},
    fractions=(0.2, 0.5, 0.8),
    controls=(),
    progress=False,
)

# %%
# How the ranks change
# --------------------
#
# Each line is a method, from its rank by MoRF to its rank by LeRF. Where the two orders agree, the lines are level.

comparison.plot.ranks()

# %%
# How far the two orders agree
# ----------------------------
#
# MoRF and LeRF ask the same question in two ways: does the model need the pixels that the method calls relevant? If
# the answer depends on the order, it is not about the method alone. The agreement is the rank correlation (Spearman)
# of the eight methods in MoRF and in LeRF, averaged over the fractions; 1 is the same ranking, −1 the opposite one.

orders = comparison.agreement().query("order_a != order_b and imputer_a == imputer_b and pairing == 'removed'")
orders[["imputer_a", "spearman", "low", "high"]].round(2)

# %%
# The change, with its interval. The images are the same, so the comparison is paired.


def pair(imputer):
    return tuple(rw.statistics.Setting("no-retrain", order, imputer) for order in ("morf", "lerf"))


change, low, high = rw.statistics.agreement_change(comparison.predictions, pair("one color"), pair("debiased"))
print(f"agreement rises by {change:.2f} [{low:.2f}, {high:.2f}]")
assert low > 0, "shown on these images: the interval excludes 0"

# %%
# The curves behind it
# --------------------

comparison.plot.curves(imputer="one color")

# %%

comparison.plot.curves(imputer="debiased")
