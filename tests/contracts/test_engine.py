"""What every comparison guarantees, whatever its parts."""

import numpy as np
import pytest
import torch

import gains
import roadworthy as rw
import vits
import worlds


def on_tokens():
    return {"model": vits.vit(size=12), "units": "tokens"}


METHODS = {"IG": rw.attributions.IntegratedGradients(4), "edges-like": "edges"}


def compared(batch_size, imputer="linear", **options):
    world = worlds.quadrants(n=23)
    model = options.pop("model", world.model)
    return rw.compare(
        model, (world.images, world.labels), METHODS, imputers=imputer, fractions=(0, 0.3, 0.9),
        controls=("random",), batch_size=batch_size, **options,
    )  # fmt: skip


def test_fraction_zero_is_the_plain_accuracy():
    world = worlds.quadrants(n=23)
    wrong = world.labels.clone()
    wrong[:5] = (wrong[:5] + 1) % 4  # five labels are made wrong: the model is right on 18 of 23
    curves = rw.compare(world.model, (world.images, wrong), METHODS, fractions=(0, 0.5)).curves()
    assert np.allclose(curves.loc[curves["fraction"] == 0, "accuracy"], 18 / 23)


@pytest.mark.parametrize("imputer", list(rw.REGISTRY["imputers"]))
def test_batch_sizes_1_7_and_n_give_the_same_classes_and_probabilities_to_1e_5(imputer):
    options = on_tokens() if imputer == "token-removal" else {}
    imputer = rw.Gain.load(gains.file((3, 12, 12))) if imputer == "gain" else imputer
    first, *others = (compared(size, imputer, **options).per_image() for size in (1, 7, 23))
    for other in others:
        assert (first["predicted"] == other["predicted"]).all()
        assert (first["id"] == other["id"]).all()
        assert np.abs(first["probability"] - other["probability"]).max() < 1e-5


def test_every_image_of_every_batch_is_evaluated():
    comparison = compared(7)
    assert {len(prediction) for prediction in comparison.predictions.values()} == {23}
    assert all((prediction.ids == np.arange(23)).all() for prediction in comparison.predictions.values())


def test_a_comparison_leaves_the_model_the_images_and_the_global_generators_as_they_were():
    world = worlds.quadrants(n=9)
    model = torch.nn.Sequential(torch.nn.Dropout(), world.model, torch.nn.BatchNorm1d(4))
    model.train()
    model[0].eval()
    images, state, legacy = world.images.clone(), torch.get_rng_state(), np.random.get_state()[1].copy()
    rw.compare(model, (world.images, world.labels), METHODS, fractions=(0.5,))
    assert [model.training, model[0].training, model[2].training] == [True, False, True]
    assert model[2].num_batches_tracked == 0
    assert torch.equal(world.images, images)
    assert torch.equal(torch.get_rng_state(), state)
    assert (np.random.get_state()[1] == legacy).all()


def test_ids_key_the_randomness_so_a_subset_repeats_the_whole():
    world = worlds.quadrants(n=12)
    rows = torch.tensor([3, 8, 11])
    maps = torch.zeros(12, 12, 12)  # constant maps: ties alone decide which pixels are removed
    whole = rw.compare(world.model, (world.images, world.labels), {"flat": maps}, controls=()).per_image()
    part = rw.compare(
        world.model, rw.datasets.Arrays(world.images[rows], world.labels[rows], ids=rows), {"flat": maps[rows]},
        controls=(),
    ).per_image()  # fmt: skip
    both = whole.merge(part, on=["method", "order", "imputer", "evaluator", "fraction", "seed", "id"])
    assert len(both) == len(part)
    assert np.abs(both["probability_x"] - both["probability_y"]).max() < 1e-5
