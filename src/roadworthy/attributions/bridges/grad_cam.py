"""pytorch-grad-cam: any BaseCAM, as an object or by its class."""

from copy import copy
from importlib import import_module
from typing import Any, final

import torch
from torch import Tensor

from roadworthy.attributions.bridges.binding import calling, inputs_of, module_named, own_network
from roadworthy.core.errors import InputError, MissingExtraError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Maps, Model


@final
class GradCam:
    """A CAM object, `GradCAM(net, [net.layer4])`, or its class and a layer: `GradCam(GradCAM, layer="layer4")`.

    The class to explain is the batch's label. `options` are passed to the call (`aug_smooth`, `eigen_smooth`). The
    object is copied for every call and the hooks of the copy are released; its own hooks stay, and hold no activations
    of the evaluation.
    """

    def __init__(self, cam: Any, *, layer: str | None = None, **options: Any) -> None:
        if isinstance(cam, type) and layer is None:
            raise InputError(f'{cam.__name__} explains a layer: GradCam({cam.__name__}, layer="layer4")')
        if not isinstance(cam, type) and layer is not None:
            raise InputError(f"layer={layer!r} is for a class; this {type(cam).__name__} has its target_layers")
        self.cam, self.layer, self.options = cam, layer, options
        if not isinstance(cam, type):
            _forget(cam.activations_and_grads)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        targets = _library("utils.model_targets").ClassifierOutputTarget
        cam, inputs = self._bound(model, batch)
        try:
            with calling("grad-cam", type(cam).__name__, model, batch, key), torch.enable_grad():
                maps = cam(inputs.detach(), [targets(label) for label in batch.labels.tolist()], **self.options)
        finally:
            cam.activations_and_grads.release()
        return torch.as_tensor(maps)

    def _bound(self, model: Model, batch: Batch) -> tuple[Any, Tensor]:
        if isinstance(self.cam, type):
            layer = module_named(model.network, self.layer or "")
            return self.cam(model.network, [layer]), model.normalize(batch.images)
        network = self.cam.model
        inputs = inputs_of(model, network, f"{type(self.cam).__name__} of pytorch-grad-cam")(batch.images)
        cam = copy(self.cam)
        cam.model = model.network if network is own_network(model) else network  # checks the output
        cam.device = inputs.device
        hooks = _library("activations_and_gradients").ActivationsAndGradients
        cam.activations_and_grads = hooks(cam.model, cam.target_layers, cam.reshape_transform, cam.detach)
        return cam, inputs


class _Forgotten(list[Any]):
    """A list that stays empty: hooks append activations and gradients of every pass until the object is called."""

    def append(self, item: Any) -> None:
        pass

    def __radd__(self, other: Any) -> "_Forgotten":
        return self


def _forget(hooks: Any) -> None:
    """Hold nothing until the next call of the user's object, which starts with lists of its own."""
    hooks.activations, hooks.gradients = _Forgotten(), _Forgotten()


def _library(module: str) -> Any:
    try:
        return import_module(f"pytorch_grad_cam.{module}")
    except ImportError as error:
        raise MissingExtraError("pytorch-grad-cam is not installed: pip install 'roadworthy[grad-cam]'") from error
