"""Quantus: an `explain_func` gives the maps that it gives Quantus."""

from functools import partial

import numpy as np
import torch

import roadworthy as rw
from libraries import library
from roadworthy.core.random import Key
from roadworthy.evaluation.sweep import explain
from roadworthy.experiments.adapt import as_method

quantus = library("quantus")
KEY = Key(0).fold("maps")


def test_its_own_explain_gives_the_same_maps(network, model, batch, inputs):
    theirs = quantus.explain(network, inputs.numpy(), batch.labels.numpy(), method="InputXGradient")
    data = rw.datasets.Arrays(batch.images, batch.labels)
    methods = {
        "wrapped": rw.attributions.Quantus(quantus.explain, method="InputXGradient"),
        "as it is": as_method("mine", partial(quantus.explain, method="InputXGradient"), data),
    }
    expected = torch.as_tensor(np.asarray(theirs)).reshape(5, -1, 16, 16).sum(dim=1)
    for name, maps in explain(methods, model, batch, KEY).items():
        assert torch.allclose(maps, expected, rtol=1e-4, atol=1e-6), name


def test_a_function_written_for_quantus_is_recognized_by_its_parameters(model, batch):
    def explain_func(model, inputs, targets, **kwargs):
        assert isinstance(inputs, np.ndarray)
        assert inputs.min() < 0  # normalized, as the network takes it
        return inputs * targets[:, None, None, None]

    method = as_method("mine", explain_func, rw.datasets.Arrays(batch.images, batch.labels))
    expected = model.normalize(batch.images) * batch.labels[:, None, None, None]
    assert torch.allclose(torch.as_tensor(method(model, batch, KEY)).float(), expected)
