"""The door for a user's own model: a factory, by name or as it is, and weights from safetensors or a state dict."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from roadworthy.core.errors import ModelError, WeightsError
from roadworthy.models.normalized import Normalized
from roadworthy.models.resnet import cifar_resnet

CIFAR10_RESNET20 = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
"""What the common CIFAR-10 ResNet-20 weights expect: they were trained with ImageNet's mean and deviation."""

WRAPPERS = ("module.", "_orig_mod.", "network.network.")
"""Prefixes that DataParallel, torch.compile and `Normalized` put before every key."""

_CURE = "save tensors only: safetensors.torch.save_file(network.state_dict(), 'weights.safetensors')"


def load(
    factory: Callable[..., nn.Module] | str, weights: str | os.PathLike[str] | None = None, **options: Any
) -> nn.Module:
    """`factory(**options)` with the `weights` put in, in eval mode.

    `factory` may be named "package.module:factory", also in a file of the current folder. The weights of a plain
    network enter a `Normalized` one too. Without weights the initialization draws from torch's global generator.
    """
    network = _build(named(factory) if isinstance(factory, str) else factory, options)
    if weights is not None:
        _fill(network, Path(weights))
    return network.eval()


def resnet20_cifar10(weights: str | os.PathLike[str]) -> Normalized:
    """The CIFAR-10 ResNet-20 (arXiv:1512.03385, 4.2) with its weights from a file, on images in [0, 1]."""
    return Normalized(load(cifar_resnet, weights, depth=20), **CIFAR10_RESNET20).eval()


def named(name: str, kind: str = "model") -> Callable[..., Any]:
    """What "package.module:name" names, also in a file of the current folder."""
    module_name, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), attribute]):
        raise ModelError(f'{kind} {name!r}: write "package.module:factory", as in "my_model:build"')
    module = _imported(module_name, f"{kind} {name!r}")
    if not hasattr(module, attribute):
        where = getattr(module, "__file__", None) or "a namespace package"
        raise ModelError(
            f"{kind} {name!r}: {module_name} ({where}) has no {attribute!r}: check the name after the colon"
        )
    return getattr(module, attribute)  # type: ignore[no-any-return]


def _imported(module_name: str, asked: str) -> object:
    with _current_folder_first():
        try:
            return importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            looked = ", ".join(sys.path)
            raise ModelError(
                f"{asked}: no module {error.name!r}; python looked in {looked}: "
                "run in the folder of your file, or install what is missing"
            ) from error
        except ImportError as error:
            raise ModelError(f"{asked}: importing {module_name} failed: {error}") from error


@contextmanager
def _current_folder_first() -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, os.getcwd())
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _build(factory: Callable[..., Any], options: Mapping[str, Any]) -> nn.Module:
    name = getattr(factory, "__qualname__", type(factory).__name__)
    if not callable(factory):
        raise ModelError(f"the model's factory is a {name}: give a function that returns a torch Module")
    _check_options(factory, name, options)
    network = factory(**options)
    if not isinstance(network, nn.Module):
        raise ModelError(f"{name} returned {type(network).__name__}: a factory must return a torch Module")
    return network


def _check_options(factory: Callable[..., Any], name: str, options: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(factory)
    except ValueError:  # Builtins may have none.
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ModelError(f"{name}{signature} cannot be called with the options {dict(options)}: {error}") from error


def _fill(network: nn.Module, path: Path) -> None:
    inside = bare(network)
    own = inside.state_dict()
    state = _unwrapped(_read(path), own)
    _check_fit(own, state, f"{path} does not fit {type(inside).__name__}")
    inside.load_state_dict(state, strict=False)


def bare(network: nn.Module) -> nn.Module:
    """What a `Normalized` wraps: the module whose keys stand in files of weights."""
    inner = network.network.network if isinstance(network, Normalized) else network
    return inner if isinstance(inner, nn.Module) else network


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise WeightsError(f"no weights at {path.absolute()}: check the path")
    if path.suffix not in READERS:
        raise WeightsError(f"weights {path}: {path.suffix or 'no suffix'} is none of {', '.join(READERS)}; {_CURE}")
    try:
        content = READERS[path.suffix](path)
    except Exception as error:  # Damage makes the readers raise nearly anything: struct.error, AssertionError …
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WeightsError(
            f"weights {path} cannot be read ({reason}): the file is damaged or holds more than tensors; {_CURE}"
        ) from error
    return _state_dict(content, path)


def _read_pickle(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


READERS: dict[str, Callable[[Path], Any]] = {".safetensors": load_file, ".pth": _read_pickle, ".pt": _read_pickle}


def _state_dict(content: Any, path: Path) -> dict[str, Tensor]:
    """A state dict as it is, or inside a checkpoint under "state_dict" or "model"."""
    for name in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise WeightsError(f"weights {path} hold a {type(content).__name__}, not a state dict of tensors; {_CURE}")
    return {str(key): value for key, value in content.items()}


def _unwrapped(state: dict[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for prefix in WRAPPERS:
        if _all_start(state, prefix) and not _all_start(own, prefix):
            state = {key.removeprefix(prefix): value for key, value in state.items()}
    return state


def _all_start(keys: Iterable[str], prefix: str) -> bool:
    return all(key.startswith(prefix) for key in keys)


def _check_fit(own: Mapping[str, Tensor], state: Mapping[str, Tensor], what: str) -> None:
    # Batch normalization counts its batches; older and converted files leave the count out, and inference ignores it.
    missing = [key for key in own if key not in state and not key.endswith("num_batches_tracked")]
    unexpected = [key for key in state if key not in own]
    misshapen = [
        f"{key} (file {tuple(state[key].shape)}, model {tuple(own[key].shape)})"
        for key in own
        if key in state and state[key].shape != own[key].shape
    ]
    problems = [_few("missing", missing), _few("unexpected", unexpected), _few("of another shape", misshapen)]
    if any(problems):
        raise WeightsError(
            f"{what}: {'; '.join(filter(None, problems))}. "
            "Build the model with the options it was trained with (classes, width, stem …), or rename the keys"
        )


def _few(kind: str, keys: list[str], shown: int = 3) -> str:
    more = f" and {len(keys) - shown} more" if len(keys) > shown else ""
    return f"{len(keys)} {kind}: {', '.join(keys[:shown])}{more}" if keys else ""
