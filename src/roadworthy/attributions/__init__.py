"""Attribution methods: which pixels matter. Each explains `batch.labels` and returns maps `(n, h, w)`."""

from typing import Any

from roadworthy.attributions.bridges.captum import Captum
from roadworthy.attributions.bridges.grad_cam import GradCam
from roadworthy.attributions.bridges.quantus import Quantus
from roadworthy.attributions.bridges.shap import ShapExplainer
from roadworthy.attributions.bridges.zennit import Zennit
from roadworthy.attributions.controls import Blurred, Center, Edges, Inverted, Random
from roadworthy.attributions.ensembles import smoothgrad, smoothgrad_squared, vargrad
from roadworthy.attributions.gradients import Gradient, GuidedBackprop, InputXGradient, IntegratedGradients
from roadworthy.attributions.precomputed import PrecomputedMaps

__all__ = [
    "Blurred",
    "Captum",
    "Center",
    "Edges",
    "GradCam",
    "Gradient",
    "GuidedBackprop",
    "InputXGradient",
    "IntegratedGradients",
    "Inverted",
    "PrecomputedMaps",
    "Quantus",
    "Random",
    "ShapExplainer",
    "Zennit",
    "paper_methods",
    "smoothgrad",
    "smoothgrad_squared",
    "vargrad",
]


def paper_methods(steps: int = 50, ig_samples: int = 15, gb_samples: int = 100) -> dict[str, Any]:
    """The paper's eight methods: IG and GB, each alone and as SG, SQ and Var.

    The default settings cost 901 forward-backward passes per image; on a CPU, consider `paper_methods(16, 8, 8)`.
    """
    methods: dict[str, Any] = {}
    for name, base, samples, sigma in (
        ("IG", IntegratedGradients(steps), ig_samples, 0.2),
        ("GB", GuidedBackprop(), gb_samples, 1.0),
    ):
        methods[name] = base
        methods[f"{name}-SG"] = smoothgrad(base, samples, sigma)
        methods[f"{name}-SQ"] = smoothgrad_squared(base, samples, sigma)
        methods[f"{name}-Var"] = vargrad(base, samples, sigma)
    return methods
