"""Loading models: a factory, given or by name, and weights from safetensors or a state dict."""

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

from roadworthy.core.errors import ModelError, UnknownNameError, WeightsError
from roadworthy.core.files import unwritable, write_atomically
from roadworthy.models.normalized import Normalized
from roadworthy.models.resnet import cifar_resnet

CIFAR10_RESNET20 = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
"""Normalization of the common CIFAR-10 ResNet-20 weights, which were trained with ImageNet's mean and deviation."""

WEIGHTS = {"resnet20-cifar10": Path(__file__).parent / "weights" / "resnet20_cifar10.safetensors"}
"""Weights that come with the package (see weights/NOTICE), by the name that stands in place of a path."""

WRAPPERS = ("module.", "_orig_mod.", "network.network.")
"""Prefixes that DataParallel, torch.compile and `Normalized` add to every key."""

_ADVICE = "save tensors only: safetensors.torch.save_file(network.state_dict(), 'weights.safetensors')"


def load(
    factory: Callable[..., nn.Module] | str, weights: str | os.PathLike[str] | None = None, **options: Any
) -> nn.Module:
    """`factory(**options)` with `weights` loaded, in eval mode.

    `factory` may be a name, "package.module:factory", also from a file in the current folder. `weights` is a file, or
    the name of weights that come with the package: "resnet20-cifar10". The weights of a plain network fit a
    `Normalized` one too. Without weights, initialization draws from torch's global generator.
    """
    network = _build(named(factory) if isinstance(factory, str) else factory, options)
    if weights is not None:
        _load_weights(network, WEIGHTS.get(str(weights), Path(weights)))
    return network.eval()


def resnet20_cifar10(weights: str | os.PathLike[str] = "resnet20-cifar10") -> Normalized:
    """The CIFAR-10 ResNet-20 (arXiv:1512.03385, 4.2) for images in [0, 1], with the weights of the package or a file.

    The weights of the package reach 91.73 % on the 10,000 test images.
    """
    return Normalized(load(cifar_resnet, weights, depth=20), **CIFAR10_RESNET20).eval()


def copy_weights(name: str, root: str | os.PathLike[str]) -> Path:
    """Copy weights that come with the package to `root`/weights, for plans that name a file there."""
    if name not in WEIGHTS:
        raise UnknownNameError(f"unknown weights {name!r}: choose one of {', '.join(WEIGHTS)}")
    source, path = WEIGHTS[name], Path(root).expanduser() / "weights" / WEIGHTS[name].name
    content = source.read_bytes()
    try:
        same = path.is_file() and path.read_bytes() == content
    except OSError as error:
        raise unwritable(path, error) from error
    if path.is_file() and not same:
        raise WeightsError(f"{path} holds other weights than {name}: move it away and run again")
    if not same:
        write_atomically(path, content)
    return path


def named(name: str, kind: str = "model") -> Callable[..., Any]:
    """The object named "package.module:name", also from a file in the current folder."""
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


def _imported(module_name: str, subject: str) -> object:
    with _current_folder_first():
        try:
            return importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            folders = ", ".join(sys.path)
            raise ModelError(
                f"{subject}: no module {error.name!r} in {folders}: "
                "run in the folder of your file, or install the missing package"
            ) from error
        except ImportError as error:
            raise ModelError(f"{subject}: importing {module_name} failed: {error}") from error


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
        raise ModelError(f"the model factory is a {name}: give a function that returns a torch Module")
    _check_options(factory, name, options)
    network = factory(**options)
    if not isinstance(network, nn.Module):
        raise ModelError(f"{name} returned {type(network).__name__}: a factory must return a torch Module")
    return network


def _check_options(factory: Callable[..., Any], name: str, options: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(factory)
    except ValueError:  # builtins may have no signature
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ModelError(f"{name}{signature} cannot be called with the options {dict(options)}: {error}") from error


def _load_weights(network: nn.Module, path: Path) -> None:
    module = bare(network)
    expected = module.state_dict()
    state = _unwrapped(_read(path), expected)
    _check_match(expected, state, f"{path} does not match {type(module).__name__}")
    module.load_state_dict(state, strict=False)


def bare(network: nn.Module) -> nn.Module:
    """The module inside a `Normalized`, whose keys weights files use; any other network is returned as it is."""
    inner = network.network.network if isinstance(network, Normalized) else network
    return inner if isinstance(inner, nn.Module) else network


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        own = next(iter(WEIGHTS))
        raise WeightsError(
            f"no weights at {path.absolute()}: check the path; weights of a CIFAR-10 ResNet-20 come with roadworthy: "
            f'weights = "{own}", or as a file with `roadworthy data download {own}`'
        )
    if path.suffix not in READERS:
        raise WeightsError(
            f"weights {path}: {path.suffix or 'no suffix'} is not one of {', '.join(READERS)}; {_ADVICE}"
        )
    try:
        content = READERS[path.suffix](path)
    except Exception as error:  # damaged files raise nearly anything: struct.error, AssertionError …
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WeightsError(
            f"weights {path} cannot be read ({reason}): the file is damaged or contains more than tensors; {_ADVICE}"
        ) from error
    return _state_dict(content, path)


def _read_pickle(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


READERS: dict[str, Callable[[Path], Any]] = {".safetensors": load_file, ".pth": _read_pickle, ".pt": _read_pickle}


def _state_dict(content: Any, path: Path) -> dict[str, Tensor]:
    """The state dict, which may be inside a checkpoint under "state_dict" or "model"."""
    for name in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise WeightsError(f"weights {path} contain a {type(content).__name__}, not a state dict of tensors; {_ADVICE}")
    return {str(key): value for key, value in content.items()}


def _unwrapped(state: dict[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for prefix in WRAPPERS:
        if _all_start(state, prefix) and not _all_start(expected, prefix):
            state = {key.removeprefix(prefix): value for key, value in state.items()}
    return state


def _all_start(keys: Iterable[str], prefix: str) -> bool:
    return all(key.startswith(prefix) for key in keys)


def _check_match(expected: Mapping[str, Tensor], state: Mapping[str, Tensor], message: str) -> None:
    # Older and converted files omit the batch count of batch normalization, which inference ignores.
    missing = [key for key in expected if key not in state and not key.endswith("num_batches_tracked")]
    unexpected = [key for key in state if key not in expected]
    mismatched = [
        f"{key} (file {tuple(state[key].shape)}, model {tuple(expected[key].shape)})"
        for key in expected
        if key in state and state[key].shape != expected[key].shape
    ]
    problems = [_listed("missing", missing), _listed("unexpected", unexpected), _listed("of another shape", mismatched)]
    if any(problems):
        raise WeightsError(
            f"{message}: {'; '.join(filter(None, problems))}. "
            "Build the model with the options it was trained with (classes, width, stem …), or rename the keys"
        )


def _listed(kind: str, keys: list[str], limit: int = 3) -> str:
    more = f" and {len(keys) - limit} more" if len(keys) > limit else ""
    return f"{len(keys)} {kind}: {', '.join(keys[:limit])}{more}" if keys else ""
