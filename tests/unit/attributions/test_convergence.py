"""With `converged`, an image gets no further samples once its ranks would hardly change."""

import numpy as np
import pytest
import torch

import roadworthy as rw
from roadworthy import statistics
from roadworthy.attributions.convergence import reliability, rounds
from roadworthy.attributions.ensembles import NoisySamples
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.models import small_cnn

KEY = Key(3)
STATISTICS = {
    "SG": lambda maps: maps.mean(axis=0),
    "SQ": lambda maps: (maps**2).mean(axis=0),
    "Var": lambda maps: (maps**2).mean(axis=0) - maps.mean(axis=0) ** 2,
}


class Scaled:
    """Maps that are the squared inputs, whose scale grows by image: later ones converge earlier."""

    def maps(self, network, inputs, targets):
        return inputs.square()


@pytest.fixture(scope="module")
def model():
    with Key(0).torch_rng():
        return rw.Normalized(small_cnn(classes=4, channels=2, width=4), 0.0, 1.0).eval()


@pytest.fixture(scope="module")
def batch():
    scale = 4.0 ** torch.arange(5)
    return Batch(torch.arange(5), Key(1).normal(range(5), (2, 8, 8)) * scale[:, None, None, None], torch.arange(5) % 4)


def literal(model, batch, row, samples, sigma, converged):
    """How many samples an image gets, and their maps `(samples, c, h, w)`."""
    inputs, ids = model.normalize(batch.images[row : row + 1]), batch.ids[row : row + 1]
    noisy = [inputs + sigma * KEY.fold("sample", s).normal(ids, tuple(inputs.shape[1:])) for s in range(samples)]
    maps = (torch.cat(noisy) ** 2).double().numpy()
    for count in (4, 8, 16, 32):
        halves = maps[:count][::2], maps[:count][1::2]
        pairs = [[statistic(half).sum(axis=0).ravel() for half in halves] for statistic in STATISTICS.values()]
        r = min(statistics.spearman(*pair) for pair in pairs)
        if count >= samples or 2 * r / (1 + r) >= converged:
            return min(count, samples), maps[: min(count, samples)]
    raise AssertionError


def test_each_image_gets_as_many_samples_as_the_rule_says(model, batch):
    source = NoisySamples(Scaled(), samples=20, sigma=1.0, converged=0.8)
    moments = source(model, batch, KEY)
    counts = []
    for row in range(len(batch)):
        count, maps = literal(model, batch, row, 20, 1.0, 0.8)
        counts.append(count)
        assert np.allclose(moments.mean[row], maps.mean(axis=0), rtol=1e-4, atol=1e-4)
        assert np.allclose(moments.mean_square[row], (maps**2).mean(axis=0), rtol=1e-4, atol=1e-4)
    assert len(set(counts)) > 1, counts


@pytest.mark.parametrize("row", range(5))
def test_an_image_alone_gets_the_maps_it_gets_in_a_batch(model, batch, row):
    methods = {"SG": rw.attributions.smoothgrad(rw.attributions.Gradient(), 20, 0.1, converged=0.9)}
    together, alone = (explain(methods, model, part, KEY)["SG"] for part in (batch, batch[row : row + 1]))
    assert torch.allclose(together[row : row + 1], alone, rtol=1e-4, atol=1e-6)


def test_what_never_converges_gets_all_samples(model, batch):
    methods = [
        rw.attributions.paper_methods(steps=2, ig_samples=5, gb_samples=9, converged=rule) for rule in (None, 1.0)
    ]
    every, none = (explain(own, model, batch, KEY) for own in methods)
    for name, maps in every.items():
        assert torch.allclose(none[name], maps, rtol=1e-3, atol=1e-4 * maps.abs().max()), name


def test_reliability_is_that_of_spearman_and_brown():
    one, other = (
        torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]] * 2),
        torch.tensor([[[[1.0, 3.0], [2.0, 4.0]]], [[[5.0] * 2] * 2]]),
    )
    # Ranks 1 2 3 4 and 1 3 2 4: r = 1 − 6 · 2 ÷ (4 · 15) = .8, so 1.6 ÷ 1.8. The other image ranks nothing.
    assert reliability(one, other) == pytest.approx([1.6 / 1.8, 0])


def test_the_rounds_are_even_but_for_the_last():
    assert [len(samples) for samples in rounds(100)] == [4, 4, 8, 16, 32, 36]
    assert [len(samples) for samples in rounds(3)] == [3]


@pytest.mark.parametrize("converged", [0.0, 1.5, -0.1, float("nan")])
def test_what_is_no_correlation_is_refused(converged):
    with pytest.raises(rw.errors.RangeError, match=r"converged=.*0\.95"):
        rw.attributions.paper_methods(converged=converged)
