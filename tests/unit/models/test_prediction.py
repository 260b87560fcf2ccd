"""How a classifier is queried: precision and memory format are options of predictions alone."""

import numpy as np
import pytest
import torch

import roadworthy as rw
import worlds
from roadworthy.core.random import Key
from roadworthy.models.prediction import accelerated, eval_mode, predict, probabilities

CPU = torch.device("cpu")
IMAGES = Key(0).uniform(range(5), (3, 16, 16))


class Watched(torch.nn.Module):
    """A convolution that remembers its input, its weight and its output."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.seen = []

    def forward(self, images):
        features = self.conv(images)
        self.seen.append((images, self.conv.weight, features))
        return features.mean(dim=(2, 3))


def model():
    with Key(1).torch_rng():
        return rw.Normalized(Watched(), 0.5, 0.5)


@pytest.mark.parametrize(("name", "dtype"), [("bfloat16", torch.bfloat16), ("float16", torch.float16)])
def test_autocast_computes_in_reduced_precision_and_returns_float32_close_to_the_exact_answer(name, dtype):
    exact, reduced = model(), accelerated(model(), dtype, False)
    predicted = predict(reduced, IMAGES, CPU)
    assert reduced.network.network.seen[0][2].dtype == dtype
    assert predicted.dtype == torch.float32
    # bfloat16 has 8 bits: logits near 1 are off by about 1/256, probabilities by a quarter of that.
    assert (predicted - predict(exact, IMAGES, CPU)).abs().max() < 4e-3
    assert not torch.equal(predicted, predict(exact, IMAGES, CPU))


def test_autocast_leaves_the_given_model_and_attributions_alone():
    given = model()
    accelerated(given, torch.bfloat16, True)
    assert (given.autocast, given.channels_last) == (None, False)
    reduced = accelerated(given, torch.bfloat16, False)
    assert reduced(IMAGES).dtype == torch.float32
    assert given.network.network.seen[-1][2].dtype == torch.float32
    assert accelerated(given, None, False) is given


def test_channels_last_is_the_format_of_images_and_weights_while_predicting_and_of_nothing_afterwards():
    given = model()
    fast = accelerated(given, None, True)
    with eval_mode(fast):
        with eval_mode(fast):
            predicted = probabilities(fast, IMAGES, CPU)
        images, weight, _ = given.network.network.seen[-1]
        assert images.is_contiguous(memory_format=torch.channels_last)
        assert weight.is_contiguous(memory_format=torch.channels_last)
    assert given.network.network.conv.weight.is_contiguous()
    assert torch.allclose(predicted, predict(given, IMAGES, CPU), atol=1e-6)


def test_compare_predicts_in_reduced_precision_also_without_removal_and_says_so():
    world = worlds.quadrants(n=8)
    network = Watched()
    options = {"fractions": (0.5,), "controls": (), "progress": False}
    comparison = rw.compare(network, (world.images, world.labels), {"truth": world.truth}, **options,
                            autocast="bfloat16", channels_last=True)  # fmt: skip
    assert {features.dtype for _, _, features in network.seen[10:]} == {torch.bfloat16}
    assert comparison.results.about["Precision"] == "predictions in bfloat16"
    plain = rw.compare(network, (world.images, world.labels), {"truth": world.truth}, **options)
    for point, predictions in comparison.predictions.items():
        assert np.abs(predictions.probability - plain.predictions[point].probability).max() < 0.01
