"""
From Hugging Face
=================

A classifier of transformers with its image processor, and a ``Dataset`` of images and labels. **It is a how-to, not a
benchmark**: pretrained weights would have to be downloaded, so this small ViT has random weights, and the conclusion
says what that means. Needs ``pip install 'roadworthy[transformers,huggingface]'``.
"""

import torch
from datasets import ClassLabel, Dataset, Features, Image
from PIL.Image import fromarray
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

import roadworthy as rw

sample = rw.datasets.CIFAR10Sample()
batch = next(sample.batches(40))

# %%
# The model and its processor
# ---------------------------
#
# With weights of your own or of the hub: ``ViTForImageClassification.from_pretrained(NAME)``, and the same for the
# processor.

torch.manual_seed(0)
names = dict(enumerate(sample.classes))
config = ViTConfig(
    image_size=32, patch_size=4, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96,
    id2label=names, label2id={name: number for number, name in names.items()},
)  # fmt: skip
network = ViTForImageClassification(config)
processor = ViTImageProcessor(size={"height": 32, "width": 32})

# %%
# Mean, standard deviation and size are measured on the processor, the names of the classes come from the model. The
# model then takes images in [0, 1] and normalizes them itself.

model = rw.models.from_transformers(network, processor)
print(model.input_size, model.mean.flatten().tolist(), model.classes[:3])

# %%
# The data
# --------

pixels = (batch.images * 255).round().byte().permute(0, 2, 3, 1).numpy()
columns = {"image": [fromarray(image) for image in pixels], "label": batch.labels.tolist()}
features = Features({"image": Image(), "label": ClassLabel(names=list(sample.classes))})
data = Dataset.from_dict(columns, features=features)
print(data)

# %%
# Compare
# -------
#
# A method is a function ``(model, batch, key) -> maps``. Here is one for vision transformers: the norm of the gradient
# of each patch's embedding, 8 × 8 values, enlarged to the image by Roadworthy.


def patch_gradient(model, batch, key):
    seen = {}
    hook = network.vit.embeddings.patch_embeddings.register_forward_hook(
        lambda module, inputs, output: seen.update(patches=output)
    )
    try:
        logits = model(batch.images)
    finally:
        hook.remove()
    (gradient,) = torch.autograd.grad(logits.gather(1, batch.labels[:, None]).sum(), seen["patches"])
    return gradient.norm(dim=-1).reshape(-1, 8, 8)


comparison = rw.compare(
    model,
    data,
    {"gradient": "gradient", "patches": patch_gradient},
    fractions=(0.2, 0.5, 0.8),
    controls=("random",),
    progress=False,
)

# %%
# The network is not trained, so there is no accuracy to lose, and Roadworthy does not rank what cannot be ranked:

conclusion = comparison.conclusion()
print(conclusion.state, conclusion.sentence, sep="\n")
assert conclusion.state == "NOT YET"

# %%
# The pictures show what was removed and imputed, whatever the network has learned.

comparison.plot.examples()
