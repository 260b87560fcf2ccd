"""A faster copy of a model, for long runs on frozen weights: fused layers, channels last, compiled.

Its logits are the same up to rounding. Gradients are, too, but for ReLUs whose input is nearly 0: rounding may switch
one on or off, which changes the gradient at some pixels. So layers are not changed unasked; docs/performance.md has
figures.
"""

import copy
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from roadworthy.core.errors import ModelError
from roadworthy.models.normalized import Normalized, as_model


class ChannelsLast(nn.Module):
    """A network whose weights and inputs are stored pixel by pixel, which convolutions are faster with."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, inputs: Tensor) -> Any:
        return self.network(inputs.contiguous(memory_format=torch.channels_last))


class _Tracer(fx.Tracer):
    """Sees convolutions as wholes, also those of other classes than torch's own."""

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Conv2d) or super().is_leaf_module(module, name)


def fused(network: nn.Module) -> nn.Module:
    """Each batch normalization in eval mode that follows a convolution becomes part of it."""
    traced = fx.GraphModule(network, _Tracer().trace(network))
    modules = dict(traced.named_modules())
    for node in list(traced.graph.nodes):
        before = node.args[0] if node.op == "call_module" and node.args else None
        if not isinstance(before, fx.Node) or before.op != "call_module" or len(before.users) > 1:
            continue
        convolution, normalization = modules[str(before.target)], modules[str(node.target)]
        if isinstance(convolution, nn.Conv2d) and isinstance(normalization, nn.BatchNorm2d):
            traced.set_submodule(str(before.target), fuse_conv_bn_eval(convolution, normalization))
            node.replace_all_uses_with(before)
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def optimized(model: Any, *, fuse: bool = True, channels_last: bool = True, compile: bool = False) -> Normalized:
    """A copy of the model in eval mode that gives the same logits up to rounding, faster; the model is not changed.

    `fuse`: batch normalization becomes part of the convolution before it. `channels_last`: images are stored pixel by
    pixel; a network that uses `view` on them needs `reshape` instead. `compile`: torch.compile, which pays off in long
    runs only; Guided Backprop cannot see through it.
    """
    normalized = as_model(model)
    network = normalized.network.network
    if not isinstance(network, nn.Module):
        raise ModelError(f"a {type(network).__name__} that is no torch Module cannot be optimized: pass the network")
    network = copy.deepcopy(network).eval()
    if fuse:
        try:
            network = fused(network)
        except Exception as error:  # tracing runs the user's code, which may raise anything
            raise ModelError(
                f"the layers of {type(network).__name__} cannot be fused ({type(error).__name__}: {error}): "
                "torch.fx does not trace it; pass fuse=False"
            ) from error
    if channels_last:
        network = ChannelsLast(network)
    if compile:
        network = torch.compile(network)
    copied = Normalized(network, normalized.mean.flatten().tolist(), normalized.std.flatten().tolist()).eval()
    copied.outputs = normalized.outputs
    return copied
