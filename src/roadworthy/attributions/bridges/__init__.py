"""Attribution methods of other libraries."""

from collections.abc import Callable
from typing import Any

from roadworthy.attributions.bridges.captum import Captum
from roadworthy.attributions.bridges.grad_cam import GradCam
from roadworthy.attributions.bridges.shap import ShapExplainer, explanation_maps
from roadworthy.attributions.bridges.zennit import Zennit
from roadworthy.attributions.map_files import lazy
from roadworthy.attributions.precomputed import PrecomputedMaps
from roadworthy.core.types import Attribution


def _of_shap(value: Any) -> Attribution:
    return explanation_maps(value) if hasattr(value, "values") else ShapExplainer(value)


def _of_file(value: Any) -> Attribution:
    return PrecomputedMaps(lazy(value))


_BRIDGES: dict[str, Callable[[Any], Attribution]] = {
    "captum": Captum,
    "pytorch_grad_cam": GradCam,
    "zennit": Zennit,
    "shap": _of_shap,
    "h5py": _of_file,
    "zarr": _of_file,
}
"""by the module that defines a class or one of its bases; nothing is imported to find out"""


def bridged(value: Any) -> Attribution | None:
    """The bridge for a class or an object of a known library, or of a class derived from one; None for all others."""
    for base in (value if isinstance(value, type) else type(value)).__mro__:
        bridge = _BRIDGES.get(base.__module__.partition(".")[0])
        if bridge is not None:
            return bridge(value)
    return None
