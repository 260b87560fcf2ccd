"""Models of timm, torchvision, transformers and Lightning; none with downloaded weights."""

import numpy as np
import pytest
import torch
from torch import nn

import roadworthy as rw
from libraries import library
from roadworthy.core.random import Key
from roadworthy.models.normalized import as_model

IMAGES = Key(0).uniform(range(2), (3, 32, 32))


def test_a_model_of_timm_brings_its_normalization_size_and_names():
    timm = library("timm")
    network = timm.create_model("resnet10t", pretrained=False).eval()
    model = rw.models.from_timm(network)
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network), is_training=False)
    normalize = transform.transforms[-1]
    assert torch.allclose(model(IMAGES), network(normalize(IMAGES)), atol=1e-5)
    assert model.input_size == network.pretrained_cfg["input_size"][1:]
    assert len(model.classes) == 1000
    assert model.classes[1].startswith("goldfish")
    assert rw.models.from_timm("resnet10t", pretrained=False).classes == model.classes
    # Another head has other classes.
    assert rw.models.from_timm(timm.create_model("resnet10t", pretrained=False, num_classes=10)).classes == ()


def test_images_of_another_size_are_an_error_with_the_cure():
    model = rw.models.from_timm(library("timm").create_model("vit_tiny_patch16_224", pretrained=False))
    with pytest.raises(rw.errors.ShapeError, match=r"224×224 pixels and failed on 32×32 .*resize=224, crop=224"):
        model(IMAGES)


def test_weights_of_torchvision_bring_their_normalization_size_and_names():
    torchvision = library("torchvision")
    weights, network = torchvision.models.ResNet18_Weights.DEFAULT, torchvision.models.resnet18().eval()
    model = rw.models.from_torchvision(weights, network)
    pixels = (Key(0).uniform(range(2), (3, 300, 300)) * 255).byte()
    preset = weights.transforms()
    # The preset resizes and crops bytes, then normalizes: with a crop of the whole image it only normalizes.
    preset.crop_size, preset.resize_size = [300], [300]
    assert torch.allclose(model.normalize(pixels / 255), preset(pixels), atol=1e-5)
    assert model.input_size == (224, 224)
    assert model.classes[1] == "goldfish"
    with pytest.raises(rw.errors.ModelError, match="no weights of torchvision"):
        rw.models.from_torchvision(network)


def vit(transformers, **options):
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        **options,
    )  # fmt: skip
    with Key(0).torch_rng():
        return transformers.ViTForImageClassification(config).eval()


def test_a_model_of_transformers_takes_what_its_processor_makes_of_pixels():
    transformers = library("transformers")
    network = vit(transformers, id2label={0: "cat", 1: "dog", 2: "eel"})
    processor = transformers.ViTImageProcessor(
        size={"height": 32, "width": 32}, image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.4]
    )
    model = rw.models.from_transformers(network, processor)
    pixels = (IMAGES * 255).byte()
    expected = network(**processor(images=list(pixels.permute(0, 2, 3, 1).numpy()), return_tensors="pt")).logits
    assert torch.allclose(model(pixels / 255), expected, atol=1e-5)
    assert model.input_size == (32, 32)
    assert model.classes == ("cat", "dog", "eel")
    with pytest.raises(rw.errors.ModelError, match=r"from_transformers\(model, processor\)"):
        rw.models.from_transformers(network)


def test_a_processor_with_a_rescaling_of_its_own_is_measured():
    transformers = library("transformers")
    processor = transformers.ViTImageProcessor(
        size={"height": 32, "width": 32}, rescale_factor=1 / 127.5, image_mean=[1.0] * 3, image_std=[1.0] * 3
    )
    model = rw.models.from_transformers(vit(transformers), processor)
    # x·255/127.5 − 1 = (x − 0.5)/0.5
    assert torch.allclose(model.mean, torch.tensor(0.5))
    assert torch.allclose(model.std, torch.tensor(0.5))
    assert model.classes == ()  # LABEL_0, LABEL_1 name nothing


def test_a_lightning_module_in_train_mode_is_a_model_and_stays_in_train_mode():
    lightning = library("lightning")

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(3 * 8 * 8, 3))

        def forward(self, images):
            return self.net(images)

    network = Classifier()
    images = Key(0).uniform(range(6), (3, 8, 8))
    with torch.no_grad():
        labels = network.eval()(images).argmax(dim=1)
    network.train()
    comparison = rw.compare(network, (images, labels), {"g": "gradient"}, fractions=(0.5,), controls=(), progress=False)
    # Without dropout every image is predicted as labeled.
    assert comparison.curves().query("fraction == 0")["accuracy"].eq(1).all()
    assert network.training


def test_class_names_of_model_and_data_must_be_in_one_order():
    transformers, datasets = library("transformers"), library("datasets")
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    model = rw.models.from_transformers(vit(transformers, id2label={0: "dog", 1: "cat"}), processor)
    pixels = np.zeros((2, 32, 32, 3), np.uint8)
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    data = datasets.Dataset.from_dict({"image": list(pixels), "label": [0, 1]}, features=datasets.Features(features))
    with pytest.raises(rw.errors.InputError, match="class 0 is 'cat' in the data and 'dog' in the model"):
        rw.compare(model, data, {"g": "gradient"}, progress=False)


@pytest.mark.parametrize("output", [dict, "ModelOutput", "tuple"])
def test_outputs_of_many_kinds_hold_logits(output):
    library("transformers")
    from transformers.modeling_outputs import ImageClassifierOutput

    linear = nn.Linear(3 * 32 * 32, 4)
    kinds = {
        dict: lambda logits: {"logits": logits},
        "ModelOutput": lambda logits: ImageClassifierOutput(logits=logits),
        "tuple": lambda logits: (logits,),
    }
    model = as_model(lambda images: kinds[output](linear(images.flatten(1))))
    assert torch.equal(model(IMAGES), linear(IMAGES.flatten(1)))
