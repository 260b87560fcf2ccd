"""Attribution methods: which pixels matter. Each explains `batch.labels` and returns maps `(n, h, w)`."""

from typing import Any

from roadworthy.attributions.attention import AttentionRollout, GradientAttention, RawAttention, TokenGradCam
from roadworthy.attributions.baselines import BaselineLike
from roadworthy.attributions.bridges.captum import Captum
from roadworthy.attributions.bridges.grad_cam import GradCam
from roadworthy.attributions.bridges.quantus import Quantus
from roadworthy.attributions.bridges.shap import ShapExplainer
from roadworthy.attributions.bridges.zennit import Zennit
from roadworthy.attributions.controls import Blurred, Center, Edges, Inverted, Random
from roadworthy.attributions.ensembles import Units, smoothgrad, smoothgrad_squared, vargrad
from roadworthy.attributions.gradients import Gradient, GuidedBackprop, InputXGradient, IntegratedGradients
from roadworthy.attributions.precomputed import PrecomputedMaps

__all__ = [
    "AttentionRollout",
    "Blurred",
    "Captum",
    "Center",
    "Edges",
    "GradCam",
    "Gradient",
    "GradientAttention",
    "GuidedBackprop",
    "InputXGradient",
    "IntegratedGradients",
    "Inverted",
    "PrecomputedMaps",
    "Quantus",
    "Random",
    "RawAttention",
    "ShapExplainer",
    "TokenGradCam",
    "Zennit",
    "paper_methods",
    "smoothgrad",
    "smoothgrad_squared",
    "vargrad",
]


def paper_methods(
    steps: int = 50,
    ig_samples: int = 15,
    gb_samples: int = 100,
    ig_sigma: float = 0.2,
    gb_sigma: float = 1.0,
    units: Units = "model",
    baseline: BaselineLike = "mean",
    converged: float | None = None,
) -> dict[str, Any]:
    """The paper's eight methods: IG and GB, each alone and as SG, SQ and Var.

    The default settings cost 901 forward-backward passes per image; on a CPU, consider `paper_methods(16, 8, 8)`.
    `ig_sigma` and `gb_sigma` are in `units` of the model's normalized space. The paper's CIFAR-10 models divide by .5:
    for another normalization, its noise is `paper_methods(ig_sigma=0.1, gb_sigma=0.5, units="pixels")`.
    `converged`: a rank correlation, such as .95, at which an image gets no further samples; by default it gets all.
    """
    methods: dict[str, Any] = {}
    for name, base, samples, sigma in (
        ("IG", IntegratedGradients(steps, baseline=baseline), ig_samples, ig_sigma),
        ("GB", GuidedBackprop(), gb_samples, gb_sigma),
    ):
        methods[name] = base
        for suffix, ensemble in (("SG", smoothgrad), ("SQ", smoothgrad_squared), ("Var", vargrad)):
            methods[f"{name}-{suffix}"] = ensemble(base, samples, sigma, units=units, converged=converged)
    return methods
