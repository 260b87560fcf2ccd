"""What a classifier returns: logits, or by mistake probabilities or their logarithms.

It is decided once per model, on its first images and for all rows together, never per batch: a single row of logits may
happen to sum to 1, and two kinds of predictions on one curve could not be compared. Logits that are at least 0 and sum
to 1 within the tolerance on every one of these rows do not occur unless they are meant so.
"""

from copy import copy
from typing import Literal

import torch
from torch import Tensor

from roadworthy.core.types import Images
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import eval_mode

Outputs = Literal["logits", "probabilities", "log-probabilities"]
PROBED = 8
"""images whose outputs are looked at"""
_TOLERANCE = 1e-3
"""of the sum: probabilities in half precision are rounded by up to 5e-4 of their sum"""


def kind_of(outputs: Tensor) -> Outputs:
    """The kind of these outputs `(n, classes)`.

    >>> kind_of(torch.tensor([[0.5, 0.5], [1.0, 0.0]])), kind_of(torch.tensor([[0.5, 0.5], [2.0, -1.0]]))
    ('probabilities', 'logits')
    """
    values = outputs.double()
    if _distributions(values):
        return "probabilities"
    return "log-probabilities" if bool((values <= 0).all()) and _distributions(values.exp()) else "logits"


def _distributions(rows: Tensor) -> bool:
    return bool((rows >= 0).all() and ((rows.sum(dim=1) - 1).abs() <= _TOLERANCE).all())


def recognized(model: Normalized, images: Images, device: torch.device) -> Normalized:
    """The model with the kind of its outputs on these images; the given one is not changed."""
    with eval_mode(model, device), torch.no_grad():
        kind = kind_of(model(images.to(device)))
    if kind == model.outputs:
        return model
    known = copy(model)  # shares network and buffers
    known.outputs = kind
    return known
