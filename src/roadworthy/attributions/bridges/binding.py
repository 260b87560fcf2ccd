"""Objects that another library built around a network: which network that is, and what it takes as input."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from torch import Tensor, nn

from roadworthy.core.errors import InputError, MethodError, RoadworthyError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Model

ToInputs = Callable[[Images], Tensor]


def own_network(model: Model) -> Any:
    """The user's network, inside the wrappers that check its output and normalize its input."""
    return getattr(model.network, "network", model.network)


def inputs_of(model: Model, network: Any, name: str) -> ToInputs:
    """What `network`, found inside the object `name`, takes: images if it is `model`, else normalized images.

    A network other than the model under evaluation raises an InputError: its maps would explain something else.
    """
    if network is model:
        return _images
    if network is model.network or network is own_network(model):
        # Our wrapper converts the input to the dtype of the weights; the user's own network does not.
        return lambda images: model.normalize(images).to(getattr(model.network, "dtype", None) or images.dtype)
    raise InputError(
        f"{name} was built around another network ({type(network).__name__}) than the model that is evaluated "
        f"({type(own_network(model)).__name__}): build it around the same object"
    )


def _images(images: Images) -> Tensor:
    return images.clone()


def module_named(network: Any, name: str) -> nn.Module:
    """The module of that dotted name, as the user's own network calls it inside the wrapper around it."""
    modules: dict[str, nn.Module] = {}
    for root in (network, getattr(network, "network", None)):
        modules |= dict(root.named_modules()) if isinstance(root, nn.Module) else {}
    if name not in modules:
        near = get_close_matches(name, modules, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see the names in network.named_modules()"
        raise InputError(f"layer {name!r}: the network has no such module; {hint}")
    return modules[name]


@contextmanager
def calling(library: str, name: str, model: Model, batch: Batch, key: Key) -> Iterator[None]:
    """Around a call of another library: seeded by key and ids, gradients of the weights kept, errors with a name."""
    try:
        with key.fold(library, *batch.ids.tolist()).torch_rng(), _gradients_kept(model):
            yield
    except RoadworthyError:
        raise
    except Exception as error:
        raise MethodError(
            f"{name} of {library} failed on images {tuple(batch.images.shape)}: {type(error).__name__}: {error}"
        ) from error


@contextmanager
def _gradients_kept(model: Model) -> Iterator[None]:
    """Restore the gradients of the parameters: some libraries call `backward`."""
    parameters = list(model.network.parameters())
    before = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient
