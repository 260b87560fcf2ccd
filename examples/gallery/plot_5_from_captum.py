"""
From Captum
===========

You already have Captum objects. Give them to ``rw.compare`` as they are: what they compute is ranked, with intervals
and against controls.
"""

from captum.attr import InputXGradient, IntegratedGradients, NoiseTunnel, Saliency

import roadworthy as rw

model = rw.models.resnet20_cifar10()
network = model.network.network  # the plain network: takes normalized input, as your Captum objects do

# %%
# Your objects, or their classes
# ------------------------------
#
# An object must be built around the network that is compared; it is copied, never changed. A class is built for you.
# Options of ``attribute`` go into ``rw.attributions.Captum``.

methods = {
    "Saliency": Saliency,
    "InputXGradient": InputXGradient(network),
    "IG": rw.attributions.Captum(IntegratedGradients(network), n_steps=8),
    "SmoothGrad": rw.attributions.Captum(NoiseTunnel(Saliency(network)), nt_samples=4, stdevs=0.2),
}

# %%
# One call
# --------

comparison = rw.compare(
    model,
    rw.datasets.first(rw.datasets.CIFAR10Sample(), 100),
    methods,
    fractions=(0.2, 0.5, 0.8),
    controls=("random", "edges", "center"),
    progress=False,
)
comparison.plot.ranking()

# %%
# What it says
# ------------
#
# Captum's maps are signed or absolute as Captum defines them; the channels are summed (``channel_reduction="sum"``),
# as in the paper. Read the conclusion first: it says whether any method does better than controls that do not use the
# model at all.

print(comparison.conclusion())

# %%
# One map set, one number
# -----------------------
#
# For a script that wants a number: the score of maps that you computed yourself, with its 95 % interval.

batch = next(rw.datasets.CIFAR10Sample().batches(50))
maps = InputXGradient(network).attribute(model.normalize(batch.images).requires_grad_(), target=batch.labels)
score = rw.road(model, batch.images, batch.labels, maps.detach(), fractions=(0.2, 0.5, 0.8), return_interval=True)
print(f"{score.score:.2f} [{score.low:.2f}, {score.high:.2f}]")
