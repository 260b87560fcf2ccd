"""No imputation: a vision transformer reads the tokens that are left."""

from dataclasses import dataclass
from typing import final

from roadworthy.core.device import on_device
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Removed
from roadworthy.imputers.fixed import Constant


@on_device
@final
@dataclass(frozen=True)
class TokenRemoval:
    """Removed tokens are left out of a vision transformer; nothing is imputed (docs/units.md).

    What it returns is for pictures, white where tokens were removed: the model does not read these pixels.
    """

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        return _WHITE(batch, removed, key)


_WHITE = Constant(1.0)
