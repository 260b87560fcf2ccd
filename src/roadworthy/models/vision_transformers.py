"""Vision transformers of transformers and timm, taken apart: attentions, and predictions without some of the tokens.

They are recognized by their classes, so neither library is imported. Hooks stay on a network only while it runs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from roadworthy.core.errors import ModelError, ShapeError
from roadworthy.core.types import Images

SUPPORTED = "ViT and DeiT of transformers, VisionTransformer of timm"


@final
@dataclass(frozen=True, eq=False, repr=False)
class TokenReader:
    """A `VisionTransformer` (core/types.py): what there is to know of a network, and where hooks go."""

    model: Callable[[Images], Tensor]
    """images in [0, 1] to logits"""
    name: str
    patch_size: tuple[int, int]
    prefix_tokens: int
    embedding: nn.Module
    """its output are the tokens, with their positions"""
    attention: tuple[nn.Module, ...]
    """of each layer"""
    head: str
    """what the head reads: "class", "class and distillation", "patches", "all" or, where it is no mean, its name"""
    image_size: tuple[int, int] | None
    """None reads any whole number of patches"""

    @property
    def needs_patches(self) -> bool:
        return not self.head.startswith("class") and (self.head != "all" or not self.prefix_tokens)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        if self.image_size not in (None, (height, width)):
            raise ShapeError(
                f"{self.name} reads images of {_by(self.image_size)} pixels, these have {height}×{width}: resize them"
            )
        if height % self.patch_size[0] or width % self.patch_size[1]:
            raise ShapeError(f"{self.name}: patches of {_by(self.patch_size)} do not divide images of {height}×{width}")
        return height // self.patch_size[0], width // self.patch_size[1]

    def read_by_head(self, tokens: int) -> list[int]:
        """The tokens whose mean the head reads, of so many."""
        kinds = {"class": [0], "class and distillation": [0, 1], "all": range(tokens)}
        if self.head not in (*kinds, "patches"):
            raise ModelError(
                f"{self.name}: its head pools by {self.head}, not by a mean, so no row of attention is its"
            )
        return list(kinds.get(self.head, range(self.prefix_tokens, tokens)))

    @contextmanager
    def keeping(self, kept: Tensor, patches: int) -> Iterator[None]:
        seen: list[int] = []

        def gathered(module: nn.Module, inputs: Any, tokens: Tensor) -> Tensor:
            seen.append(tokens.shape[1])
            if tokens.shape[:2] != (len(kept), self.prefix_tokens + patches):
                raise ShapeError(
                    f"{self.name} makes {tokens.shape[1] - self.prefix_tokens} patches of each image, where {patches} "
                    "are expected: give images of the size that the transformer itself reads"
                )
            first = torch.arange(self.prefix_tokens, device=tokens.device).expand(len(kept), -1)
            rows = torch.cat([first, kept.to(tokens.device) + self.prefix_tokens], dim=1)
            return tokens.gather(1, rows[:, :, None].expand(-1, -1, tokens.shape[2]))

        with _hooked(self.embedding.register_forward_hook(gathered)):
            yield
        if not seen:
            raise ModelError(
                f"{self.name} ran without its embedding, so no token was removed: give the original, not a compiled one"
            )

    def attentions(self, images: Images) -> tuple[Tensor, tuple[Tensor, ...]]:
        with _RecordedAttention() as recorded:
            logits = self.model(images)
        if len(recorded.weights) != len(self.attention):
            raise ModelError(
                f"{self.name} has {len(self.attention)} layers and showed the attention of {len(recorded.weights)}: "
                'give the original, not a compiled one; with transformers, attn_implementation="eager" or "sdpa"'
            )
        return logits, tuple(recorded.weights)

    def last_tokens(self, images: Images) -> tuple[Tensor, Tensor]:
        read: list[Tensor] = []
        hook = self.attention[-1].register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
        with _hooked(hook):
            logits = self.model(images)
        if not read:
            raise ModelError(f"{self.name} ran without its last layer: give the original, not a compiled one")
        return logits, read[-1]


@contextmanager
def _hooked(hook: Any) -> Iterator[None]:
    try:
        yield
    finally:
        hook.remove()


class _RecordedAttention(TorchFunctionMode):
    """Keeps the attention weights of all layers, in the graph: fused attention is computed in steps."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is functional.scaled_dot_product_attention:
            return self._attention(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        return self._kept(result) if func in (functional.softmax, torch.softmax, Tensor.softmax) else result

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        products = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None:
            products = (
                products.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype is torch.bool else products + attn_mask
            )
        return self._kept(products.softmax(dim=-1)) @ value

    def _kept(self, weights: Tensor) -> Tensor:
        if weights.ndim == 4 and weights.shape[-1] == weights.shape[-2]:  # others pool tokens
            self.weights.append(weights)
        return weights


# ── recognition ──────────────────────────────────────────────────────────────────────────────────────────────────────


def transformer_of(model: Callable[[Images], Tensor], networks: list[nn.Module]) -> TokenReader | None:
    """The vision transformer among `networks` and their modules; None if there is none, or more than one."""
    found = {id(module): module for network in networks for module in network.modules() if _reader(module)}
    if len(found) != 1:
        return None
    (module,) = found.values()
    make = _reader(module)
    return make(model, module) if make else None


def _reader(network: nn.Module) -> Callable[[Any, Any], TokenReader | None] | None:
    names = {(base.__module__.partition(".")[0], base.__name__) for base in type(network).__mro__}
    for (library, name), make in _READERS.items():
        if (library, name) in names:
            return make
    return None


def _of_transformers(model: Callable[[Images], Tensor], network: Any) -> TokenReader | None:
    base = getattr(network, network.base_model_prefix)
    layers = base.layers if hasattr(base, "layers") else base.encoder.layer  # since version 5, before
    embedding = base.embeddings
    patches = embedding.patch_embeddings
    if not _separate(patches.projection, patches.patch_size):
        return None
    both = type(network).__name__.endswith("WithTeacher")
    return TokenReader(
        model,
        type(network).__name__,
        _pair(patches.patch_size),
        embedding.position_embeddings.shape[1] - patches.num_patches,
        embedding,
        tuple(layer.attention for layer in layers),
        "class and distillation" if both else "class",
        _pair(patches.image_size),
    )


def _of_timm(model: Callable[[Images], Tensor], network: Any) -> TokenReader | None:
    patches = network.patch_embed
    attention = tuple(getattr(block, "attn", None) for block in network.blocks)
    stem = hasattr(patches, "backbone")
    if (
        stem
        or not _separate(getattr(patches, "proj", None), patches.patch_size)
        or not all(isinstance(part, nn.Module) for part in attention)
    ):
        return None
    means = {"token": "class", "avg": "all" if network.pool_include_prefix else "patches"}
    distilled = hasattr(network, "dist_token")
    return TokenReader(
        model,
        f"{type(network).__name__} of timm",
        _pair(patches.patch_size),
        network.num_prefix_tokens,
        network.patch_drop,
        attention,  # type: ignore[arg-type]
        "class and distillation" if distilled else means.get(network.global_pool, network.global_pool),
        None if network.dynamic_img_size else _pair(patches.img_size),
    )


_READERS: dict[tuple[str, str], Callable[[Any, Any], TokenReader | None]] = {
    ("transformers", "ViTForImageClassification"): _of_transformers,
    ("transformers", "DeiTForImageClassification"): _of_transformers,
    ("transformers", "DeiTForImageClassificationWithTeacher"): _of_transformers,
    ("timm", "VisionTransformer"): _of_timm,
}


def _separate(projection: Any, patch_size: Any) -> bool:
    """Each token sees its own patch only, not also its neighbors as behind a convolutional stem."""
    return isinstance(projection, nn.Conv2d) and projection.kernel_size == projection.stride == _pair(patch_size)


def _pair(size: Any) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    return int(height), int(width)


def _by(size: tuple[int, int] | None) -> str:
    return "×".join(map(str, size or ()))


_RELATIVE = ("swin", "beit", "relpos", "data2vecvision", "eva", "levit", "maxvit", "maxxvit", "coatnet", "gcvit")
"""Families, by their class names, whose layers use the distance of tokens or windows of them."""


def why_no_tokens(networks: list[nn.Module]) -> str:
    """Why the tokens of these networks cannot be removed, for people."""
    name = type(networks[0]).__name__ if networks else "a function"
    inside = {type(module).__name__.lower() for network in networks for module in network.modules()}
    if any(_reader(module) for network in networks for module in network.modules()):
        return f"{name} has tokens that overlap, layers of another kind, or several transformers"
    if any(family in kind for kind in inside for family in _RELATIVE):
        return f"{name} reads tokens in windows or by their distance, so a token cannot be left out"
    if any("attention" in kind or "attn" in kind for kind in inside):
        return f"{name} is not one of those whose tokens can be removed ({SUPPORTED})"
    return f"{name} reads pixels, not tokens"
