"""Which runs `diff` compares, which it refuses, and what it says first."""

import numpy as np
import pytest
from typer.testing import CliRunner

from predictions import endurance_study
from roadworthy.cli.app import app
from roadworthy.core.errors import InputError
from roadworthy.core.results import Predictions
from roadworthy.experiments.comparable import check_same_data, data_fingerprint, image_difference, model_difference
from roadworthy.experiments.results import Results, save

STUDY = endurance_study(40, good=(0.3, 0.7), poor=(0.5, 0.5))


def results(ids=None, labels=None, plain=1.0, **options):
    """A study under other ids, with other labels, or with another probability on unmodified images."""
    predictions = {
        point: Predictions(
            np.arange(40) if ids is None else np.asarray(ids),
            each.labels if labels is None else np.asarray(labels),
            each.predicted,
            np.where(point.fraction == 0, plain, each.probability).astype(np.float32),
        )
        for point, each in STUDY.items()
    }
    return Results(predictions, **options)


def plan(model="w1", data=("a", "b"), **options):
    """As read from a plan's run directory, with fingerprints."""
    prints = {"model": model, "block_size": 20, "images": 40, "data": list(data)}
    return results(**options, manifest={"fingerprints": prints})


SAME = np.arange(40) % 4
OTHER = (np.arange(40) + 1) % 4


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (results(), results(labels=OTHER), "40 of 40 images with the same id have other labels"),
        (results(), results(ids=np.arange(39, 79), labels=SAME), "1 of 1 images with the same id have other labels"),
        (results(classes=("cat", "dog")), results(classes=("one", "two")), "classes cat, dog and one, two"),
        (plan(), plan(data=("a", "c")), "the same ids, but other images"),
        (results(about={"Data": "cifar10 (split: test)"}), results(range(100, 140), about={"Data": "food101"}),
         "cifar10 and food101, no image in both"),
    ],
    ids=["labels", "one label", "classes", "images", "names"],
)  # fmt: skip
def test_another_data_set_is_refused_by_its_fingerprint(before, after, reason):
    with pytest.raises(InputError, match="the data sets differ") as error:
        check_same_data(before, after)
    assert reason in str(error.value)
    for each in (before, after):
        assert data_fingerprint(each)[:12] in str(error.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (results(), results()),
        (results(), results(ids=np.arange(100, 140))),  # other images of a data set without a name
        (results(), results(ids=np.arange(20, 60))),  # 20 images in both, with the same labels
        (results(classes=("0", "1")), results(classes=("cat", "dog"))),  # nobody named the classes of the first
        (results(unlabeled=True), results(labels=OTHER, unlabeled=True)),  # the labels are predictions
        (plan(), plan(model="w2")),
        (plan(), results()),
    ],
    ids=["equal", "other images", "some in common", "unnamed classes", "unlabeled", "other weights", "plan and saved"],
)
def test_the_same_data_set_is_accepted(before, after):
    check_same_data(before, after)


def test_other_weights_are_named_or_shown_by_what_they_predict():
    assert model_difference(plan(), plan()) == ""
    assert model_difference(plan(), plan(model="w2")) == "the models differ: weights w1 before, weights w2 after"
    assert model_difference(results(), results()) == ""
    moved = np.where(np.arange(40) < 7, 0.9, 1.0)
    sentence = "the models differ: other predictions on 7 of 40 unmodified images"
    assert model_difference(results(), results(plain=moved)) == sentence
    assert model_difference(plan(), results(plain=moved)) == sentence


def test_other_images_are_counted():
    assert image_difference(results(), results()) == ""
    sentence = "the images differ: 40 before, 40 after, 20 of them in both"
    assert image_difference(results(), results(ids=np.arange(20, 60))) == sentence


def test_diff_refuses_other_data_with_exit_code_2_and_says_first_that_models_differ(tmp_path):
    runs = {"main": results(), "branch": results(plain=0.9), "other": results(labels=OTHER)}
    for name, each in runs.items():
        save(each, tmp_path / name, {})

    def diff(after, *options):
        return CliRunner().invoke(app, ["diff", str(tmp_path / "main"), str(tmp_path / after), *options])

    refused = diff("other")
    assert refused.exit_code == 2
    assert "data sets differ" in " ".join(refused.output.split())
    allowed = diff("branch")
    assert allowed.exit_code == 0
    assert allowed.stdout.splitlines()[0].startswith("the models differ: ")
    assert diff("branch", "--json").stdout.startswith("[{")
