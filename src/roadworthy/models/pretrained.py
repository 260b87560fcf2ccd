"""Models of timm, torchvision and transformers, with the normalization, size and class names that they come with."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, final

import numpy as np
from torch import Tensor, nn

from roadworthy.core.errors import MissingExtraError, ModelError, ShapeError
from roadworthy.core.types import Images
from roadworthy.models.normalized import Normalized


@final
class Pretrained(Normalized):
    """A `Normalized` that knows the size of its input and the names of its classes, () if they are unknown."""

    def __init__(
        self,
        network: Any,
        mean: float | Sequence[float],
        std: float | Sequence[float],
        input_size: tuple[int, int],
        classes: Sequence[str] = (),
    ) -> None:
        super().__init__(network, mean, std)
        self.input_size, self.classes = input_size, tuple(classes)

    def forward(self, images: Images) -> Tensor:
        try:
            return super().forward(images)
        except Exception as error:
            (height, width), given = self.input_size, tuple(images.shape[-2:])
            if given == self.input_size:
                raise
            raise ShapeError(
                f"the model takes images of {height}×{width} pixels and failed on {given[0]}×{given[1]} "
                f"({error}): resize them, as in rw.datasets.Pictures(images, labels, resize={height}, crop={height})"
            ) from error


def from_timm(model: Any, pretrained: bool = True) -> Pretrained:
    """A model of timm, or its name: mean, std, size and class names from its `pretrained_cfg`."""
    timm = _library("timm", "timm")
    network = timm.create_model(model, pretrained=pretrained) if isinstance(model, str) else model
    if not isinstance(network, nn.Module) or not hasattr(network, "pretrained_cfg"):
        raise ModelError(
            f"{type(network).__name__} has no pretrained_cfg: give a model of timm.create_model, or a name"
        )
    config = timm.data.resolve_data_config({}, model=network)
    return Pretrained(network.eval(), config["mean"], config["std"], config["input_size"][1:], _timm_classes(network))


def _timm_classes(network: Any) -> Sequence[str]:
    config = network.pretrained_cfg
    if config.get("num_classes") != network.num_classes:  # another head than the one that was pretrained
        return ()
    if names := config.get("label_names"):
        return tuple(map(str, names))
    data = import_module("timm.data")
    subset = data.infer_imagenet_subset(network)
    info = data.ImageNetInfo(subset) if subset else None
    return [info.index_to_description(index) for index in range(info.num_classes())] if info else ()


def from_torchvision(weights: Any, network: Any = None) -> Pretrained:
    """Weights of torchvision, `ResNet50_Weights.DEFAULT` or that name: their network, transforms and categories.

    `network`: one that is built already; by default it is built and its weights are downloaded.
    """
    models = _library("torchvision.models", "torchvision")
    weights = models.get_weight(weights) if isinstance(weights, str) else weights
    if not hasattr(weights, "transforms") or not hasattr(weights, "meta"):
        raise ModelError(f"{weights!r} are no weights of torchvision: give such as ResNet50_Weights.DEFAULT")
    transforms = weights.transforms()
    if not all(hasattr(transforms, name) for name in ("mean", "std", "crop_size")):
        raise ModelError(f"{weights} are not for the classification of images")
    if network is None:
        names = [name for name in models.list_models() if models.get_model_weights(name) is type(weights)]
        network = models.get_model(names[0], weights=weights)
    height, width = (*transforms.crop_size, *transforms.crop_size)[:2]
    return Pretrained(network.eval(), transforms.mean, transforms.std, (height, width), weights.meta["categories"])


def from_transformers(model: Any, processor: Any = None) -> Pretrained:
    """An image classifier of transformers and its image processor, or its name on the Hugging Face hub.

    Mean and std are measured on what the processor makes of black, gray and white images.
    """
    if isinstance(model, str):
        transformers = _library("transformers", "transformers")
        processor = processor or transformers.AutoImageProcessor.from_pretrained(model)
        model = transformers.AutoModelForImageClassification.from_pretrained(model)
    if processor is None:
        raise ModelError("from_transformers needs the image processor too: from_transformers(model, processor)")
    names = getattr(getattr(model, "config", None), "id2label", None) or {}
    classes = [str(names[index]) for index in sorted(names)]
    placeholders = all(name == f"LABEL_{index}" for index, name in enumerate(classes))
    mean, std, size = _measured(processor)
    return Pretrained(model.eval(), mean, std, size, () if placeholders else classes)


def _measured(processor: Any) -> tuple[list[float], list[float], tuple[int, int]]:
    """Mean, std and size of a processor that maps pixels x in [0, 1] to (x − mean)/std."""
    levels = (0, 51, 255)
    outputs = [_processed(processor, level) for level in levels]
    size = outputs[0].shape[-2:]
    black, gray, white = (output.mean(axis=(1, 2), dtype=np.float64) for output in outputs)
    flat = all(np.ptp(output, axis=(1, 2)).max() < 1e-3 for output in outputs)
    if not flat or not np.allclose(gray, black + (white - black) * 51 / 255, atol=1e-3) or not (white > black).all():
        raise ModelError(
            f"{type(processor).__name__} does more to the pixels than to rescale and normalize them: wrap the model "
            "yourself, rw.Normalized(model, mean, std)"
        )
    std = 1 / (white - black)
    return (-black * std).tolist(), std.tolist(), (int(size[0]), int(size[1]))


def _processed(processor: Any, level: int) -> Any:
    image = np.full((64, 64, 3), level, np.uint8)
    return np.asarray(processor(images=image, return_tensors="np")["pixel_values"])[0]


def _library(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{module} is not installed: pip install 'roadworthy[{extra}]'") from error
