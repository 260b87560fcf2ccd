"""Which networks are passed in the faster way (`faster_pass.py`), on a CPU; it is the same up to rounding.

- Inputs, and weights of convolutions, are stored pixel by pixel; batch normalization becomes part of the convolution
  before it; on the way back no gradient of weights is computed (`operations.py`).
- Along a line, only the sum of gradients is computed (`lines.py`).

The network is used as it is. It is tried once, on noise: if it fails in this way, or returns other logits or gradients,
it is passed through in torch's own way. So is what fails later, each time: what a process saw before decides nothing.
"""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from roadworthy.attributions.faster_pass import faster_pass
from roadworthy.attributions.lines import Lines
from roadworthy.core.random import Key

_SAME: "WeakKeyDictionary[nn.Module, bool]" = WeakKeyDictionary()
"""Whether a network's logits and gradients are the same both ways; tried once per network."""
_TOLERANCE = {"logits": 1e-3, "gradients": 0.05}
"""As a share of the largest logit, and of the length of the gradient: rounding stays far below it (a ReLU that it
switches changes single pixels), a misread memory layout or a lost part of the network far above."""


def faster(network: Any, inputs: Tensor) -> bool:
    """Whether the network can be passed in the faster way."""
    if not isinstance(network, nn.Module) or torch.is_autocast_enabled("cpu") or torch.is_inference_mode_enabled():
        return False
    if inputs.device.type != "cpu" or inputs.dtype != torch.float32 or inputs.ndim != 4:
        return False
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if network.training or any(map(_remembers, network.modules())):
        return False
    if network not in _SAME:
        _SAME[network] = not any(map(_compiled, network.modules())) and _same(network, _trial(inputs))
    return _SAME[network]


def _trial(inputs: Tensor) -> Tensor:
    """Noise of their shape: the same whatever images a process sees first, so that all processes decide alike."""
    return Key(0).fold("trial").normal(range(2), tuple(inputs.shape[1:])).to(inputs.dtype)


def _remembers(module: nn.Module) -> bool:
    """Whether its buffers would remember the trial: statistics of batches in train mode."""
    return module.training and bool(module._buffers)


def _compiled(module: nn.Module) -> bool:
    """What is compiled does not call torch's functions one by one."""
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def _same(network: nn.Module, inputs: Tensor) -> bool:
    """Of two passes: a network that writes into its weights or buffers may agree in the first."""
    positions = (0.5, 1.0)
    try:
        with torch.random.fork_rng(devices=()), torch.enable_grad():
            lines, found = Lines(torch.zeros_like(inputs), inputs), []
            with faster_pass(lines):
                for position in positions:
                    found.append(network(lines.points((position,), (1.0,))))
                    lines.collect(found[-1].sum())
            points = [(position * inputs).requires_grad_() for position in positions]
            expected = [network(point) for point in points]
            gradients = [torch.autograd.grad(one.sum(), point)[0] for one, point in zip(expected, points, strict=True)]
    except Exception:  # whatever a network raises: in torch's own way it will raise it again, or not
        return False
    logits = torch.stack(found), torch.stack(expected)
    gradient, own = lines.gradient(), sum(gradients[1:], start=gradients[0])
    same_logits = (logits[0] - logits[1]).abs().max() <= _TOLERANCE["logits"] * logits[1].abs().max()
    return bool(same_logits and (gradient - own).norm() <= _TOLERANCE["gradients"] * own.norm())
