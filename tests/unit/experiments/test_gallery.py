"""Images with the model's recorded answers: which are shown, what is removed from them, and why they were selected."""

import numpy as np
import pytest
import torch

import roadworthy as rw
import worlds
from roadworthy.core.results import Point
from roadworthy.experiments.gallery import gallery, roles_of, setting_of

WORLD = worlds.quadrants(n=30)


def compared(data=None, methods=None, **options):
    options = {"fractions": (0.1, 0.25, 0.6), "controls": ("random", "inverted"), "progress": False, **options}
    data = data if data is not None else (WORLD.images, WORLD.labels)
    return rw.compare(WORLD.model, data, methods or {"truth": WORLD.truth, "ig": "ig"}, **options)


def shown(comparison):
    return comparison.findings().gallery


def test_answers_and_pictures_are_those_that_were_measured():
    comparison = compared()
    found = shown(comparison)
    predictions = comparison.predictions
    for image in found.images:
        id = int(image.title.split(",")[0].removeprefix("Image "))
        for method, removals in image.removals.items():
            for removal in removals:
                point = Point(method, removal.order, "linear", "no-retrain", removal.fraction, 0)
                assert removal.answer.probability == pytest.approx(float(predictions[point].probability[id]))
                assert removal.answer.correct == bool(predictions[point].correct[id])
                assert removal.answer.target == f"class {id % 4}"
        # The same pixels, imputed and asked again.
        morf, lerf = image.removals["truth"]
        assert (morf.fraction, lerf.fraction) == (0.25, 0.6)  # the nearest to 20 % and 50 %
        assert int(morf.removed.sum()) == int(0.25 * morf.removed.size + 0.5)
        with torch.no_grad():
            outputs = WORLD.model(torch.from_numpy(morf.imputed)[None])
        assert f"class {int(outputs.argmax())}" == morf.answer.name


def test_kept_pixels_are_unchanged_and_removed_ones_are_the_most_relevant():
    (image, *_) = shown(compared()).images
    (morf, lerf) = image.removals["truth"]
    assert np.array_equal(morf.imputed[:, ~morf.removed], image.image[:, ~morf.removed])
    relevant = WORLD.truth[0].bool().numpy()
    assert relevant.sum() <= morf.removed.sum()
    assert morf.removed[relevant].all()
    assert not lerf.removed[relevant].any()


def test_images_that_the_model_gets_right_and_wrong_are_shown_and_counted():
    labels = WORLD.labels.clone()
    labels[::3] = (labels[::3] + 1) % 4  # 10 of 30 are wrong
    found = shown(compared((WORLD.images, labels)))
    assert [image.answer.correct for image in found.images].count(True) == 8
    assert [image.answer.correct for image in found.images].count(False) == 4
    assert "8 of 20 that the model gets right before removal and 4 of 10 that the model gets wrong" in found.why


def test_the_first_image_is_one_on_which_the_methods_differ_with_how_often_they_do():
    comparison = compared(methods={"truth": WORLD.truth, "inverse": -WORLD.truth})
    found, predictions = shown(comparison), comparison.predictions
    assert list(found.roles.items()) == [("truth", "best score"), ("inverse", "worst score")]

    def correct(method, order, fraction):
        return predictions[Point(method, order, "linear", "no-retrain", fraction, 0)].correct

    success = {
        method: (~correct(method, "morf", 0.25)).astype(int) + correct(method, "lerf", 0.6) for method in found.roles
    }
    better = int((success["truth"] > success["inverse"]).sum())
    worse = int((success["truth"] < success["inverse"]).sum())
    assert better > 0
    assert f"does better than inverse on {better} and worse on {worse} of 30 images" in found.why_lead
    answers = [removal.answer.correct for removal in found.lead.removals["truth"]]
    assert answers == [False, True]  # wrong without the relevant pixels, right without the others


def test_methods_that_never_differ_get_the_first_image_and_no_claim():
    found = shown(compared(methods={"a": WORLD.truth, "b": WORLD.truth.clone()}))
    assert list(found.roles.values()) == ["best score", "same score"]
    assert found.why_lead.startswith("This is the first image that the model gets right.")
    assert "does better than b on 0 and worse on 0 of 30 images" in found.why_lead


def test_a_single_method_is_compared_with_random_and_stands_alone_without_controls():
    alone = compared(methods={"truth": WORLD.truth})
    assert list(shown(alone).roles) == ["truth", "random"]
    without = shown(compared(methods={"truth": WORLD.truth}, controls=()))
    assert without.roles == {"truth": "the only method"}
    assert without.why_lead == "This is the first image that the model gets right."


def test_without_labels_nothing_is_called_right():
    found = shown(compared(WORLD.images))
    assert "right" not in found.why_lead
    assert "changes the answer" in found.why_lead
    assert found.why.endswith("8 of 30.")
    assert all(image.title.endswith(image.label) and image.label.startswith("predicted") for image in found.images)


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")
def test_the_probability_is_that_of_the_class_that_was_explained():
    labels = (WORLD.labels + 1) % 4  # all wrong
    found = shown(compared((WORLD.images, labels), target="prediction"))
    image = found.images[0]
    assert not image.answer.correct
    assert image.answer.target == image.answer.name  # the prediction
    assert found.why_lead == "This is the first image; the model gets none of them right."


@pytest.mark.parametrize("order", ["morf", "lerf"])
def test_one_order_is_enough(order):
    found = shown(compared(orders=(order,), controls=("random",)))
    assert [removal.order for removal in found.lead.removals["truth"]] == [order]
    assert ("top" in found.why_lead) == (order == "morf")


def test_early_stopped_comparisons_show_images_that_were_taken():
    comparison = compared(until="ranked", map_batch_size=8, controls=("random",))
    taken = set(next(iter(comparison.predictions.values())).ids.tolist())
    ids = {int(image.title.split(",")[0].removeprefix("Image ")) for image in shown(comparison).images}
    assert ids <= taken


def test_the_setting_is_that_of_the_conclusion_with_its_first_seed():
    comparison = compared(imputers=["fixed", "linear"], seeds=(3, 1))
    setting = setting_of(comparison.predictions, "no-retrain", "fixed")
    assert (setting.imputer, setting.seed) == ("fixed", 1)
    assert dict(setting.fractions) == {"morf": 0.25, "lerf": 0.6}


def test_roles_leave_out_copies():
    comparison = compared(methods={"truth": WORLD.truth}, controls=("inverted",))
    ranking = comparison.ranking()
    assert roles_of(ranking, comparison.results.copies) == {"truth": "the only method"}


def test_the_same_gallery_comes_from_a_direct_call():
    comparison = compared()
    setting = setting_of(comparison.predictions, "no-retrain", "linear")
    found = gallery(comparison.source, comparison.predictions, setting, {"ig": "mine"}, (), "label")
    assert list(found.images[0].removals) == ["ig"]
