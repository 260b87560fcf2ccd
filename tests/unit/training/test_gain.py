"""Training GAIN: it learns, resumes after an interruption, and reports failures."""

import math
from dataclasses import replace

import pytest
import torch

import gains
from roadworthy.core.errors import InputError, RangeError, TrainingError
from roadworthy.core.masks import random_masks
from roadworthy.core.random import Key
from roadworthy.datasets import Arrays
from roadworthy.evaluation.quality import imputation_quality
from roadworthy.imputers import DatasetMean
from roadworthy.training import gain as gain_training
from roadworthy.training.gain import GainRecipe, train_gain
from roadworthy.training.gain_search import grid, search


def flat(n, start=0):
    """Images of a single gray level: the kept pixels determine the removed ones."""
    ids = range(start, start + n)
    return Arrays(Key(5).uniform(ids, (1, 1, 1)).expand(n, 1, 8, 8).clone(), ids=list(ids))


@pytest.fixture(scope="module")
def trained():
    return train_gain(gains.TINY, flat(64))


def same(first, second):
    a, b = first.tensors(), second.tensors()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_on_flat_images_removed_pixels_get_the_gray_of_the_image():
    recipe = replace(gains.TINY, epochs=12, width=8)
    result = train_gain(recipe, flat(400))
    test = flat(60, start=1000)
    rows = list(imputation_quality({"gain": result.gain, "mean": DatasetMean.of(test)}, test))
    mse = {name: [row.mse for row in rows if row.imputer == name] for name in ("gain", "mean")}
    # Gray levels are uniform in [0, 1]: the MSE of the mean is their variance, 1/12.
    assert mse["mean"] == pytest.approx([1 / 12] * 6, rel=0.25)
    assert all(gain < mean / 4 for gain, mean in zip(mse["gain"], mse["mean"], strict=True))
    first, best = result.records[0], result.records[result.epoch]
    assert best.imputation == min(record.imputation for record in result.records) < first.imputation
    assert best.reconstruction < first.reconstruction


def test_a_resumed_training_has_the_same_curve_and_weights(trained, tmp_path):
    def stop(record):
        if record.epoch == 1:
            raise KeyboardInterrupt

    path = tmp_path / "gain.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        train_gain(gains.TINY, flat(64), checkpoint=path, on_epoch=stop)
    seen = []
    again = train_gain(gains.TINY, flat(64), checkpoint=path, on_epoch=seen.append)
    assert [record.epoch for record in seen] == [1, 2]  # epoch 0 was complete, epoch 1 was not written yet
    assert again.records == trained.records
    assert same(again, trained)


def test_a_longer_training_resumes_a_shorter_one_but_not_one_with_other_settings(trained, tmp_path):
    path, seen = tmp_path / "gain.checkpoint", []
    train_gain(replace(gains.TINY, epochs=2), flat(64), checkpoint=path)
    assert same(train_gain(gains.TINY, flat(64), checkpoint=path, on_epoch=seen.append), trained)
    assert len(seen) == 1
    short = replace(gains.TINY, epochs=1)
    for recipe, data in ((replace(short, alpha=1.0), flat(64)), (short, flat(64, start=7))):
        train_gain(short, flat(64), checkpoint=tmp_path / "other.checkpoint")
        seen.clear()
        train_gain(recipe, data, checkpoint=tmp_path / "other.checkpoint", on_epoch=seen.append)
        assert [record.epoch for record in seen] == [0]


def test_masks_are_scattered_or_of_either_kind():
    removed = {kind: random_masks(torch.arange(200), (16, 16), 0.5, kind, Key(0)) for kind in ("either", "scatter")}
    # Neighbors of scattered pixels are removed as often as others are; within blobs almost always.
    for kind, low, high in (("scatter", -0.05, 0.05), ("either", 0.2, 0.6)):
        ranks = removed[kind].float()
        centered = ranks - ranks.mean(dim=(1, 2), keepdim=True)
        correlation = (centered[:, :, 1:] * centered[:, :, :-1]).mean() / centered.square().mean()
        assert low < float(correlation) < high
    # uniform on [0, .5): mean .25, standard deviation .144, of the mean of 200 .01
    assert float(removed["scatter"].float().mean()) == pytest.approx(0.25, abs=0.04)
    with pytest.raises(InputError, match="masks='stripes': choose either or scatter"):
        GainRecipe(masks="stripes")


def test_both_networks_learn_in_bfloat16_and_keep_weights_in_float32(monkeypatch):
    seen = []

    class Watched(gain_training.Adversaries):
        def __init__(self, *given):
            super().__init__(*given)
            for network in (self.generator.network, self.discriminator.network):
                network.blocks[0].conv1.register_forward_hook(
                    lambda module, inputs, out: seen.append(self.training and out.dtype)
                )

    monkeypatch.setattr(gain_training, "Adversaries", Watched)
    recipe = replace(gains.TINY, epochs=1, channels_last=True, autocast="bfloat16")
    trained = train_gain(recipe, flat(32))
    # 24 of 32 images in batches of 16: two steps, in each the generator once, the discriminator for both losses
    assert [one for one in seen if one] == [torch.bfloat16] * 6
    assert {tensor.dtype for tensor in trained.gain.tensors().values()} == {torch.float32}


def test_settings_that_came_later_are_in_ids_only_where_they_are_set():
    late = {"masks": "scatter", "channels_last": True, "autocast": "bfloat16"}
    assert not late.keys() & GainRecipe().spec.keys()
    assert GainRecipe(**late).spec == {**GainRecipe().spec, **late}


def test_a_training_that_becomes_nan_is_an_error_and_its_last_good_checkpoint_is_kept(monkeypatch, tmp_path):
    path, original = tmp_path / "gain.checkpoint", gain_training.losses
    train_gain(replace(gains.TINY, epochs=1), flat(64), checkpoint=path)
    good = path.read_bytes()
    monkeypatch.setattr(
        gain_training, "losses", lambda *given: original(*given)._replace(adversarial=torch.tensor(math.nan))
    )
    with pytest.raises(TrainingError, match=r"alpha 100, hint 0.01.*nan in epoch 1.*last good epoch is kept in .*gain"):
        train_gain(gains.TINY, flat(64), checkpoint=path)
    assert path.read_bytes() == good


def test_a_training_with_a_huge_learning_rate_is_an_error():
    with pytest.raises(TrainingError, match=r"lower the learning rate|not finite"):
        train_gain(replace(gains.TINY, lr=1e38), flat(64))


def test_training_leaves_the_global_generator_unchanged_and_does_not_use_held_out_images(monkeypatch):
    seen, pack = {}, gain_training.packed

    def watched(batch, recipe, key):
        seen.setdefault("held out" in key.path, set()).update(batch.ids.tolist())
        return pack(batch, recipe, key)

    monkeypatch.setattr(gain_training, "packed", watched)
    state = torch.get_rng_state()
    train_gain(replace(gains.TINY, epochs=1), flat(64))
    assert torch.equal(torch.get_rng_state(), state)
    assert [len(seen[False]), len(seen[True]), seen[False] & seen[True]] == [48, 16, set()]  # a quarter is held out


def test_a_search_has_a_cell_for_every_pair_and_continues_after_a_failure(monkeypatch, tmp_path):
    original = gain_training.losses
    recipes = grid(replace(gains.TINY, epochs=1), (1.0, 50.0), (0.1, 0.5))
    cells = list(search(recipes, flat(64), tmp_path))
    assert [(cell.alpha, cell.hint) for cell in cells] == [(1, 0.1), (1, 0.5), (50, 0.1), (50, 0.5)]
    assert all(0 < cell.imputation < 1 and not cell.failure for cell in cells)
    assert len({cell.imputation for cell in cells}) == 4
    monkeypatch.setattr(
        gain_training, "losses", lambda *given: original(*given)._replace(adversarial=torch.tensor(math.nan))
    )
    assert list(search(recipes, flat(64), tmp_path)) == cells  # already trained: read from their files
    again = list(search(recipes[:2], flat(64, start=5), tmp_path))
    assert [(math.isnan(cell.imputation), "failed" in cell.failure) for cell in again] == [(True, True)] * 2


def test_all_settings_of_a_search_are_checked_before_it_starts():
    with pytest.raises(RangeError, match="hint=2"):
        grid(gains.TINY, (1.0,), (0.1, 2))
    with pytest.raises(RangeError, match="the grid is empty"):
        grid(gains.TINY, (), (0.1,))
