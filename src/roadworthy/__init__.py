"""Which explanation can you trust? Roadworthy removes pixels as each method claims, imputes them, and measures."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "CONTROLS": "experiments.compare",
    "FRACTIONS": "core.masks",
    "PAPER_FRACTIONS": "core.masks",
    "REGISTRY": "experiments.registry",
    "Batch": "core.types",
    "Blur": "imputers",
    "Comparison": "experiments.comparison",
    "Constant": "imputers",
    "DatasetMean": "imputers",
    "Gain": "imputers",
    "ImageMean": "imputers",
    "Key": "core.random",
    "NoisyLinear": "imputers",
    "Normalized": "models.normalized",
    "Point": "core.results",
    "Predictions": "core.results",
    "attributions": "",
    "compare": "experiments.compare",
    "datasets": "",
    "errors": "core",
    "impute": "experiments.functions",
    "imputers": "",
    "models": "",
    "removal_mask": "experiments.functions",
    "statistics": "",
}
"""Each public name, and the module it comes from: imported when it is first used (PEP 562)."""

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'roadworthy' has no attribute {name!r}")
    where = _WHERE[name]
    if name in ("attributions", "datasets", "errors", "imputers", "models", "statistics"):
        found = import_module(f"roadworthy.{where}.{name}" if where else f"roadworthy.{name}")
    else:
        found = getattr(import_module(f"roadworthy.{where}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
