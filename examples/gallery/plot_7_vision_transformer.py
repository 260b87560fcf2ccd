"""
Pixels, patches or tokens
=========================

A vision transformer reads patches, one token each, and most methods for it explain patches. So what should be removed:
pixels, patches or tokens? A token can be left out altogether: nothing is imputed, no color shows where something is
missing. **Do the three rankings agree?** Needs ``pip install 'roadworthy[transformers]'``. The transformer is small:
311,338 weights, trained on CIFAR-10 with ``plans/vit-cifar10.toml`` for 8 of its 12 epochs, with a random number of
tokens in each step; its file lies beside this script.
"""

import warnings

import matplotlib.pyplot as plt
import torch
from transformers import ViTConfig, ViTForImageClassification

import roadworthy as rw

config = ViTConfig(
    image_size=32, patch_size=4, hidden_size=96, num_hidden_layers=4, num_attention_heads=3, intermediate_size=192,
    num_labels=10,
)  # fmt: skip
network = rw.models.load(lambda: ViTForImageClassification(config), "vit_cifar10.safetensors")
model = rw.Normalized(network, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
data = rw.datasets.CIFAR10Sample()  # 200 test images

# %%
# Five methods
# ------------
#
# Four are for transformers and give one value per patch, 8 × 8 here; Integrated Gradients gives one per pixel.

methods = {
    "attention rollout": "attention-rollout",
    "gradient attention": "gradient-attention",
    "raw attention": "raw-attention",
    "token Grad-CAM": "token-grad-cam",
    "IG": rw.attributions.IntegratedGradients(4),
}

# %%
# Three ways to remove
# --------------------
#
# By pixels, maps of patches are upsampled (a warning says so) and pixels are imputed. By patches, the mean of a map in
# a patch ranks it, and the patch is imputed. By tokens, the transformer reads the tokens that are left.


def ranked(units, imputer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rw.errors.UpsampledMapsWarning)
        return rw.compare(
            model, data, methods, units=units, imputers=imputer, fractions=(0.3, 0.7), controls=("random",),
            progress=False,
        )  # fmt: skip


ways = {
    "pixels, imputed": ranked("pixels", "linear"),
    "patches, imputed": ranked(rw.Patches(4), "linear"),
    "tokens, removed": ranked("tokens", "token-removal"),
}
for name, comparison in ways.items():
    print(
        name, comparison.ranking()[["method", "srg", "srg_low", "srg_high"]].round(3).to_string(index=False), sep="\n"
    )

# %%
# Removed tokens are white in these pictures; the model does not see them at all.

ways["tokens, removed"].plot.examples()

# %%
# Do they agree?
# --------------
#
# Scores with their intervals, in the order of token removal.

tables = {name: comparison.ranking().set_index("method") for name, comparison in ways.items()}
order = tables["tokens, removed"].drop("random").sort_values("srg").index
figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for shift, (name, table) in zip((-0.2, 0, 0.2), tables.items(), strict=True):
    rows = table.loc[order]
    axis.errorbar(
        rows["srg"], torch.arange(len(order)) + shift, fmt="o", label=name,
        xerr=(rows["srg"] - rows["srg_low"], rows["srg_high"] - rows["srg"]),
    )  # fmt: skip
axis.set(yticks=range(len(order)), yticklabels=order, xlabel="LeRF − MoRF, higher is better")
axis.legend()

# %%
# The rank correlation (Spearman) of the five scores, between each two of the three ways:

scores = {name: table.loc[order, "srg"] for name, table in tables.items()}
for first, second in (("tokens", "patches"), ("tokens", "pixels"), ("patches", "pixels")):
    one, other = (next(values for name, values in scores.items() if name.startswith(way)) for way in (first, second))
    print(f"{first} and {second}: {one.corr(other, method='spearman'):.2f}")
