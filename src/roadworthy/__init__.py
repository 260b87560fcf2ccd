"""Which explanation can you trust? Roadworthy removes pixels as each method claims, imputes them, and measures."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "attributions": "roadworthy.attributions",
    "datasets": "roadworthy.datasets",
    "errors": "roadworthy.core.errors",
    "imputers": "roadworthy.imputers",
    "models": "roadworthy.models",
    "statistics": "roadworthy.statistics",
    "truth": "roadworthy.audit.truth",
}
_NAMES = {
    "CONTROLS": "experiments.plans.plan",
    "FRACTIONS": "core.masks",
    "PAPER_FRACTIONS": "core.masks",
    "REGISTRY": "experiments.registry",
    "Attribution": "core.types",
    "Audit": "experiments.audit_run",
    "Batch": "core.types",
    "Blur": "imputers",
    "Comparison": "experiments.comparison",
    "Conclusion": "experiments.conclusion",
    "Constant": "imputers",
    "DataLike": "experiments.adapt",
    "Dataset": "core.types",
    "DatasetMean": "imputers",
    "Evaluator": "core.types",
    "FeatureMask": "evaluation.units",
    "Gain": "imputers",
    "GainRecipe": "training.gain",
    "ImageMean": "imputers",
    "Imputer": "core.types",
    "ImputerLike": "experiments.adapt",
    "Key": "core.random",
    "MethodLike": "experiments.adapt",
    "Model": "core.types",
    "ModelLike": "experiments.adapt",
    "NoisyLinear": "imputers",
    "Normalized": "models.normalized",
    "Order": "core.types",
    "Patches": "evaluation.units",
    "Plan": "experiments.plans",
    "Point": "core.results",
    "Predictions": "core.results",
    "Recipe": "training.recipe",
    "SelfTest": "experiments.self_test.result",
    "Superpixels": "evaluation.units",
    "TokenRemoval": "imputers",
    "Tokens": "evaluation.units",
    "TruthTest": "experiments.self_test.recovered_order",
    "Units": "core.types",
    "UnitsLike": "experiments.adapt",
    "VisionTransformer": "core.types",
    "compare": "experiments.compare",
    "impute": "experiments.shortcuts",
    "load": "experiments.run",
    "read_plan": "experiments.plans",
    "removal_mask": "experiments.shortcuts",
    "road": "experiments.shortcuts",
    "run": "experiments.run",
    "truth_test": "experiments.self_test.truth_test",
}
"""Public names and the modules they come from, imported on first use (PEP 562): `import roadworthy` is instant."""

__all__ = sorted([*_MODULES, *_NAMES], key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _NAMES:
        value = getattr(import_module(f"roadworthy.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module 'roadworthy' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
