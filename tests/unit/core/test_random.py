import numpy as np
import torch

from roadworthy.core.random import Key


def test_a_stream_depends_on_its_sample_not_on_the_batch():
    key = Key(7).fold("noise")
    whole = key.normal([4, 5, 6], (3, 2))
    assert torch.equal(key.normal([6], (3, 2))[0], whole[2])
    assert torch.equal(key.normal(torch.tensor([6, 4]), (3, 2)), whole[[2, 0]])


def test_seeds_words_and_samples_give_different_numbers():
    draws = [
        Key(0).normal([1], (50,)), Key(1).normal([1], (50,)), Key(0).fold("noise").normal([1], (50,)),
        Key(0).fold("noise", 1).normal([1], (50,)), Key(0).fold("ties").normal([1], (50,)), Key(0).normal([2], (50,)),
    ]  # fmt: skip
    # 15 pairs of 50 normals: |r| above .7 has probability below 1e-7 each
    correlations = np.corrcoef(torch.cat(draws).numpy()) - np.eye(6)
    assert np.abs(correlations).max() < 0.7


def test_words_are_folded_separately_not_concatenated():
    assert not torch.equal(Key(0).fold("ab").normal([0], (4,)), Key(0).fold("a", "b").normal([0], (4,)))


def test_negative_and_huge_ids_are_valid():
    assert torch.isfinite(Key(0).normal([-1, 2**62], (4,))).all()


def test_draws_have_the_right_moments():
    normal, uniform = Key(3).normal(range(100), (1000,)), Key(3).uniform(range(100), (1000,))
    # 1e5 draws: the standard error of a mean is .0032 (normal) and .0009 (uniform); bounds at 5 of them
    assert abs(float(normal.mean())) < 0.016
    assert abs(float(normal.std()) - 1) < 0.012
    assert abs(float(uniform.mean()) - 0.5) < 0.005
    assert 0 <= float(uniform.min()) <= float(uniform.max()) < 1


def test_neighboring_ids_are_independent_along_the_whole_stream():
    # If each id started one counter block later, streams would overlap: id 1 would repeat id 0 with a small shift.
    first, second = Key(0).normal([0, 1], (4096,)).numpy()
    overlaps = [np.array_equal(first[shift : shift + 8], second[:8]) for shift in range(4000)]
    assert not any(overlaps)


def test_torch_rng_seeds_the_global_generators_and_restores_them():
    before, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()
    with Key(5).torch_rng():
        first = (torch.rand(3), np.random.rand(3))
    with Key(5).torch_rng():
        again = (torch.rand(3), np.random.rand(3))
    assert torch.equal(first[0], again[0])
    assert (first[1] == again[1]).all()
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == legacy).all()
