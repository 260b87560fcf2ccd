"""Parts that a plan names: entries of the registry, and functions from files beside the plan."""

import hashlib
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from roadworthy.core.errors import PlanError, RoadworthyError
from roadworthy.experiments.items import Spec
from roadworthy.experiments.plans.plan import LOCATIONS
from roadworthy.experiments.registry import lookup
from roadworthy.models.loading import WEIGHTS, named


def own_part(key: str, spec: Spec, folder: Path) -> Any:
    """The user's own object; with options, what it makes of them."""
    found = own_function(key, spec["function"], folder)
    options = {name: value for name, value in spec.items() if name != "function"}
    return found(**options) if options else found


def own_function(key: str, name: str, folder: Path) -> Any:
    """ "module:function", from the file beside the plan or else from an installed module."""
    module_name, _, attribute = name.partition(":")
    path = folder / (module_name.replace(".", "/") + ".py")
    if not path.is_file():
        return with_key(key, named, name, key)
    module = with_key(key, _module, path, folder)
    if not hasattr(module, attribute):
        raise PlanError(f"{key}: {path} has no {attribute!r}: check the name after the colon")
    return getattr(module, attribute)


def _module(path: Path, folder: Path) -> ModuleType:
    """The file as it is now. Python would serve an earlier version, or a file of that name beside another plan."""
    content = path.read_bytes()
    name = f"{path.stem}_{hashlib.sha256(str(path.resolve()).encode() + content).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = spec_from_loader(name, SourceFileLoader(name, str(path)))
        if spec is None or spec.loader is None:
            raise PlanError(f"{path} cannot be imported")
        module = sys.modules[name] = module_from_spec(spec)
        sys.path.insert(0, str(folder))  # for modules beside it
        try:
            exec(compile(content, str(path), "exec"), module.__dict__)  # noqa: S102  the user's own code, by the user's own plan
        except BaseException:
            del sys.modules[name]
            raise
        finally:
            sys.path.remove(str(folder))
    return sys.modules[name]


def make_part(family: str, spec: Spec) -> Any:
    return lookup(family, spec["name"]).make(**{key: value for key, value in spec.items() if key != "name"})


def placed(spec: Spec, folder: Path) -> Spec:
    """Paths relative to the plan's folder, made usable from here; names of weights of the package stay."""

    def is_path(key: str, value: Any) -> bool:
        return key in LOCATIONS and isinstance(value, str) and not (key == "weights" and value in WEIGHTS)

    return {key: folder / value if is_path(key, value) else value for key, value in spec.items()}


def with_key(key: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """Errors while building a part start with the plan's key."""
    try:
        return make(*arguments)
    except RoadworthyError as error:
        raise PlanError(f"{key}: {error}") from error
    except TypeError as error:
        raise PlanError(f"{key}: {error}; see `roadworthy list` and the docstring of the part") from error
