"""Training checkpoints in safetensors files: written atomically, read only if intact and from the same training."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from roadworthy.core.files import write_atomically


@final
@dataclass(frozen=True)
class CheckpointFile:
    """`tag` identifies the training: a file with another tag is ignored."""

    path: Path
    tag: str

    def read(self) -> dict[str, Tensor] | None:
        """The last saved state, or None if it is missing, damaged or from another training."""
        try:
            with safe_open(self.path, framework="pt") as file:
                header = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, ValueError):
            return None
        return tensors if header.get("training") == self._digest(tensors) else None

    def write(self, tensors: Mapping[str, Tensor]) -> None:
        write_atomically(self.path, save(dict(tensors), {"training": self._digest(tensors)}))

    def _digest(self, tensors: Mapping[str, Tensor]) -> str:
        digest = hashlib.sha256(self.tag.encode())
        for name in sorted(tensors):
            digest.update(name.encode())
            digest.update(tensors[name].contiguous().numpy().tobytes())
        return digest.hexdigest()
