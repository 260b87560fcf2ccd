"""A small vision transformer of Hugging Face, for vit-cifar10.toml; it learns to answer with some of its tokens."""

import torch
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification

LEAST = 16
"""tokens that are left in a step of training, of 64"""


def build(dim: int = 96, depth: int = 4, heads: int = 3) -> ViTForImageClassification:
    """For images of 32 × 32 pixels in 64 patches and ten classes.

    In train mode each step keeps a random number of each image's tokens, 16 to 64: that is faster, and a model that
    has seen missing tokens has a reason to answer without them (Naseer et al., arXiv:2105.10497; Liu et al.,
    arXiv:2208.07220). In eval mode it is the plain network.
    """
    network = ViTForImageClassification(
        ViTConfig(
            image_size=32,
            patch_size=4,
            hidden_size=dim,
            num_hidden_layers=depth,
            num_attention_heads=heads,
            intermediate_size=2 * dim,
            num_labels=10,
            initializer_range=0.06,
        )
    )
    network.vit.embeddings.register_forward_hook(_some_tokens)
    return network


def _some_tokens(embeddings: torch.nn.Module, inputs: object, tokens: Tensor) -> Tensor:
    """The class token and the same random number of patch tokens of each image."""
    if not embeddings.training:
        return tokens
    count, patches = len(tokens), tokens.shape[1] - 1
    kept = 1 + torch.rand(count, patches).argsort(dim=1)[:, : int(torch.randint(LEAST, patches + 1, ()))]
    rows = torch.cat([torch.zeros(count, 1, dtype=torch.int64), kept], dim=1).to(tokens.device)
    return tokens.gather(1, rows[:, :, None].expand(-1, -1, tokens.shape[2]))
