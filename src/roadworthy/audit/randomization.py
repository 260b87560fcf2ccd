"""Cascading weight randomization (Adebayo et al. 2018, arXiv:1810.03292): maps should depend on what was learned."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from roadworthy.core.random import Key


@contextmanager
def shuffled_weights(model: nn.Module, share: float, key: Key) -> Iterator[None]:
    """Shuffle the weights of that share of the layers, from the output on; restore them exactly afterwards.

    Each parameter keeps its values, in random places: scales stay plausible, what was learned is lost. The weights
    change in place, because methods of other libraries hold the network themselves.
    """
    kept = [(weight, weight.detach().clone()) for _, weight in last_layers(model, share)]
    try:
        for name, weight in last_layers(model, share):
            order = torch.from_numpy(key.fold(name).permutation(0, weight.numel())).to(weight.device)
            with torch.no_grad():
                weight.copy_(weight.detach().reshape(-1)[order].reshape(weight.shape))
        yield
    finally:
        with torch.no_grad():
            for weight, before in kept:
                weight.copy_(before)


def last_layers(model: nn.Module, share: float) -> list[tuple[str, Tensor]]:
    """The parameters of the last layers, as the model registered them; a layer is a module with parameters.

    >>> network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> [name for name, _ in last_layers(network, 0.5)], last_layers(network, 0)
    (['2.weight', '2.bias'], [])
    """
    layers = [
        [(f"{name}.{own}", weight) for own, weight in module.named_parameters(recurse=False)]
        for name, module in model.named_modules()
    ]
    layers = [layer for layer in layers if layer]
    count = math.ceil(share * len(layers))
    return [parameter for layer in layers[len(layers) - count :] for parameter in layer]
