"""Pictures of a few images, their maps, and what removal leaves of them."""

import numpy as np
import pytest
import torch
from PIL import Image

import gains
import roadworthy as rw
import worlds
from roadworthy.experiments.examples import examples
from roadworthy.experiments.run import load, run

WORLD = worlds.quadrants(n=30)


def compared(data=None, **options):
    options = {"fractions": (0.2, 0.6), "controls": ("random", "inverted"), "progress": False, **options}
    data = data if data is not None else (WORLD.images, WORLD.labels)
    return rw.compare(WORLD.model, data, {"truth": WORLD.truth, "ig": "ig"}, **options)


def test_images_are_from_all_over_the_data():
    found = examples(compared().source, ["truth"], images=4)
    assert [example.title for example in found] == [f"Image {id}, class {id % 4}" for id in (0, 10, 19, 29)]
    assert np.array_equal(found[1].image, WORLD.images[10].numpy())


def test_pictures_are_the_images_that_were_evaluated():
    comparison = compared()
    (example, *_) = examples(comparison.source, ["truth", "ig"], images=4)
    assert example.fractions == (0.2, 0.6)
    for order in ("morf", "lerf"):
        removed = rw.removal_mask(WORLD.truth[:1], 0.6, order)
        expected = rw.impute(rw.NoisyLinear(), WORLD.images[:1], removed)[0]
        assert np.array_equal(example.imputed["truth", order, "linear"][1], expected.numpy())


def test_the_first_method_is_shown_with_every_imputer_and_the_others_with_the_first():
    (example, *_) = examples(compared(imputers=["linear", "fixed"]).source, ["truth", "ig"])
    shown = {(method, imputer) for method, _, imputer in example.imputed}
    assert shown == {("truth", "linear"), ("truth", "fixed"), ("ig", "linear")}


def test_maps_are_shown_by_rank_with_the_most_relevant_white():
    (example, *_) = examples(compared().source, ["truth"])
    relevant = WORLD.truth[0].bool().numpy()
    level = example.relevance["truth"][0]
    assert level[relevant].min() > level[~relevant].max()
    assert (level.min(), level.max()) == (0, 1)
    alone = compared(orders=("lerf",), controls=())
    (lerf, *_) = examples(alone.source, ["truth"])
    assert lerf.relevance["truth"][0][relevant].min() > lerf.relevance["truth"][0][~relevant].max()


def test_early_stopped_comparisons_show_images_that_were_taken():
    comparison = compared(until="ranked", map_batch_size=8, controls=("random",))
    taken = next(iter(comparison.predictions.values())).ids
    titles = [example.title for example in examples(comparison.source, ["truth"])]
    assert all(int(title.split(",")[0].removeprefix("Image ")) in taken for title in titles)


def test_a_trained_imputer_is_shown_once_it_is_trained():
    comparison = rw.compare(
        WORLD.model, (WORLD.images[:20], WORLD.labels[:20]), {"ig": "ig"}, train=(WORLD.images[20:], WORLD.labels[20:]),
        imputers={"linear": "linear", "gain": gains.TINY}, fractions=(0.5,), controls=(), progress=False,
    )  # fmt: skip
    (example, *_) = examples(comparison.source, ["ig"])
    assert {imputer for *_, imputer in example.imputed} == {"linear", "gain"}


def test_a_run_with_other_images_shows_none(project):
    project.write_plan()
    run(project.path, project.store, progress=False)
    assert load(project.store).findings().examples
    image = sorted((project.root / "images" / "0").iterdir())[0]
    Image.new("RGB", (12, 12), (0, 0, 0)).save(image)
    findings = load(project.store).findings()
    assert not findings.examples
    assert "not those that were evaluated" in findings.no_examples


def test_unknown_methods_are_an_error():
    with pytest.raises(KeyError):
        examples(compared().source, ["nobody"])


def test_the_images_that_were_given_stay_unchanged():
    before = WORLD.images.clone()
    examples(compared().source, ["truth"])
    assert torch.equal(WORLD.images, before)
