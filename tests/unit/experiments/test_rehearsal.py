"""The rehearsal: what cannot work fails on two images, before long work starts."""

import re
import warnings
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import binom

import gains
import roadworthy as rw
import worlds
from roadworthy.core.device import CPU
from roadworthy.experiments.accuracy_check import suspicious
from roadworthy.experiments.worker import Worker
from roadworthy.models.prediction import predict

WORLD = worlds.quadrants(n=16)


def compare(methods, data=None, **options):
    data = data if data is not None else (WORLD.images, WORLD.labels)
    return rw.compare(
        WORLD.model, data, methods, **{"fractions": (0.3, 0.6), "controls": (), "progress": False, **options}
    )


class Counting:
    """A method that counts the images it explains."""

    def __init__(self):
        self.images = 0

    def __call__(self, model, batch, key):
        self.images += len(batch)
        return batch.images


def test_a_bad_method_is_found_before_a_good_ones_long_work():
    good = Counting()
    with pytest.raises(rw.errors.ShapeError, match="bad"):
        compare({"good": good, "bad": lambda model, batch, key: torch.zeros(3)})
    assert good.images == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"imputers": {"ok": "linear", "bad": lambda batch, removed, key: batch.images[:1]}}, rw.errors.ShapeError,
         r"returned \(1, 3, 12, 12\) for images \(2, 3, 12, 12\)"),
        ({"imputers": {"bad": lambda batch, removed, key: None}}, rw.errors.ShapeError, "returned a NoneType"),
        ({"orders": {"morf": lambda maps, ids, key: 1 / 0}}, ZeroDivisionError, "division"),
    ],
)  # fmt: skip
def test_a_bad_imputer_or_order_is_found_before_long_work(options, error, message):
    good = Counting()
    with pytest.raises(error, match=message):
        compare({"good": good}, **options)
    assert good.images == 2


def test_the_largest_fraction_is_tried_first():
    good = Counting()
    with pytest.raises(rw.errors.EverythingRemovedError):
        compare({"good": good}, fractions=(0.5, 1))
    assert good.images == 2


def test_all_precomputed_maps_are_checked_first():
    good, maps = Counting(), WORLD.truth.clone()
    maps[15, 0, 0] = float("nan")
    with pytest.raises(rw.errors.InputError, match="mine: NaN in the maps of images 15"):
        compare({"good": good, "mine": maps})
    assert good.images == 0


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # the labels are wrong on purpose
def test_the_target_of_the_rehearsal_is_that_of_the_run():
    seen = []

    def method(model, batch, key):
        seen.append(batch.labels.tolist())
        return batch.images

    wrong = (WORLD.labels + 1) % 4
    compare({"m": method}, (WORLD.images, wrong), target="prediction")
    assert seen[0] == WORLD.labels[:2].tolist()
    seen.clear()
    compare({"m": method}, WORLD.images)  # no labels: the prediction stands in
    assert seen[0] == WORLD.labels[:2].tolist()


def test_one_image_is_enough():
    comparison = compare({"m": Counting()}, (WORLD.images[:1], WORLD.labels[:1]))
    assert np.array_equal(next(iter(comparison.predictions.values())).ids, [0])


def test_an_imputer_that_is_trained_first_is_not_rehearsed(monkeypatch):
    trained = []
    monkeypatch.setattr("roadworthy.experiments.compute.train_gain", lambda *a, **o: trained.append(1) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compare({"m": Counting()}, (WORLD.images[:8], WORLD.labels[:8]), imputers=gains.TINY,
                train=(WORLD.images[8:], WORLD.labels[8:]))  # fmt: skip
    assert trained == [1]


# ── outputs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def logits(images):
    return WORLD.model(images)


def probabilities(images):
    return WORLD.model(images).softmax(dim=1)


def log_probabilities(images):
    return WORLD.model(images).log_softmax(dim=1)


def half_precision(images):
    return WORLD.model(images).softmax(dim=1).half().float()


def predicted(comparison):
    return {point: predictions.probability for point, predictions in comparison.predictions.items()}


@pytest.mark.parametrize("model", [probabilities, log_probabilities, half_precision])
def test_predictions_of_probabilities_are_taken_as_they_are(model):
    maps, data = WORLD.truth, (WORLD.images, WORLD.labels)
    options = {"fractions": (0.3,), "controls": (), "progress": False}
    with pytest.warns(
        rw.errors.NotLogitsWarning, match=r"returns (log-)?probabilities.*give a model that returns logits"
    ):
        comparison = rw.compare(model, data, {"truth": maps}, **options)
    expected = predicted(rw.compare(logits, data, {"truth": maps}, **options))
    # A second softmax of probabilities over four classes could not exceed e/(e + 3) = .475.
    assert max(values.max() for values in expected.values()) > 0.9
    for point, values in predicted(comparison).items():
        assert values == pytest.approx(expected[point], abs=1e-3), point
    assert comparison.results.about["Outputs"].endswith("probabilities, not logits")


def test_the_score_of_one_set_of_maps_warns_about_probabilities_too():
    with pytest.warns(rw.errors.NotLogitsWarning):
        assert rw.road(probabilities, WORLD.images, WORLD.labels, WORLD.truth, fractions=(0.5,)) > 0


def test_a_batch_of_logits_that_happens_to_look_like_probabilities_is_treated_as_the_others():
    def model(images):  # the last image's logits are ≥ 0 and sum to 1
        return torch.where((images == WORLD.images[15]).all(dim=(1, 2, 3))[:, None], 0.25, logits(images))

    comparison = compare({"truth": WORLD.truth}, batch_size=1, map_batch_size=1)
    odd = rw.compare(model, (WORLD.images, WORLD.labels), {"truth": WORLD.truth}, fractions=(0.3, 0.6), controls=(),
                     progress=False, batch_size=1, map_batch_size=1)  # fmt: skip
    for point, values in predicted(comparison).items():
        assert np.array_equal(predicted(odd)[point][:15], values[:15])


def test_the_users_model_is_not_changed():
    model = rw.Normalized(probabilities)
    with pytest.warns(rw.errors.NotLogitsWarning):
        rw.compare(model, (WORLD.images, WORLD.labels), {"truth": WORLD.truth}, fractions=(0.3,), controls=(),
                   progress=False)  # fmt: skip
    assert model.outputs == "logits"


# ── accuracy ─────────────────────────────────────────────────────────────────────────────────────────────────────────

MANY = worlds.quadrants(n=300)


class Blind(torch.nn.Module):
    """Quadrants for images normalized by (x − .5)/.1; it sees nothing of values outside [−5, 5]."""

    def forward(self, inputs):
        return MANY.model((inputs * 0.1 + 0.5).clamp(0, 1))


class Normalizing(torch.nn.Module):
    """Normalizes inside, as `Normalized` would outside."""

    def forward(self, images):
        return Blind()((images - 0.5) / 0.1)


def accuracy_warnings(model, images, labels):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rw.compare(model, (images, labels), {"edges": "edges"}, fractions=(0.5,), imputers="image-mean", controls=(),
                   progress=False)  # fmt: skip
    return [str(w.message) for w in caught if issubclass(w.category, rw.errors.LowAccuracyWarning)]


def test_a_doubled_normalization_warns_before_long_work_with_the_numbers():
    assert accuracy_warnings(rw.Normalized(Blind(), 0.5, 0.1), MANY.images, MANY.labels) == []
    assert accuracy_warnings(Normalizing(), MANY.images, MANY.labels) == []
    (message,) = accuracy_warnings(rw.Normalized(Normalizing(), 0.95, 0.01), MANY.images, MANY.labels)
    assert re.search(r"right on \d+ of 256 images .*, without its normalization on \d+ of 64 .*done twice", message)


def test_a_forgotten_normalization_warns_if_a_common_one_would_help():
    def model(inputs):  # made for ImageNet's normalization; positive inputs are lost on it, so it needs dark images
        return MANY.model(-inputs.clamp(max=0))

    images = (MANY.images.mean() - MANY.images).clamp(-0.4, 0.3) + 0.4  # the disc is darker than the rest
    normalized = rw.Normalized(model, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert accuracy_warnings(normalized, images, MANY.labels) == []
    (message,) = accuracy_warnings(model, images, MANY.labels)
    assert "with ImageNet's normalization on 64 of 64" in message


def test_labels_of_another_order_warn():
    (message,) = accuracy_warnings(MANY.model, MANY.images, (MANY.labels + 1) % 4)
    assert "right on 0 of 256" in message


@pytest.mark.parametrize("images", [1, 2, 3, 4])
def test_few_images_are_no_reason_to_warn(images):
    assert accuracy_warnings(MANY.model, MANY.images[:images], (MANY.labels[:images] + 1) % 4) == []


def test_images_without_labels_and_of_a_single_class_are_no_reason_to_warn():
    assert accuracy_warnings(MANY.model, MANY.images, None) == []
    assert accuracy_warnings(MANY.model, MANY.images[MANY.labels == 1], torch.zeros(75).long()) == []


def test_data_sorted_by_class_are_sampled():
    order = MANY.labels.argsort()
    (message,) = accuracy_warnings(MANY.model, MANY.images[order], (MANY.labels[order] + 1) % 4)
    assert "label has 2" in message  # 75 of 300 have each label: about 25 %, not 75 of the first 256


def test_false_alarms_are_rare_for_a_usable_model_and_misses_for_a_broken_one():
    # At a quarter of the way from chance to 1 the upper bound errs in at most 1 %, for any number of images.
    for chance, images in product((0.5, 0.1, 0.001), (2, 5, 10, 30, 100, 256)):
        hits = np.arange(images + 1)
        alarm = np.array([suspicious(hit, images, chance, chance) for hit in hits])
        assert binom.pmf(hits, images, chance + (1 - chance) / 4)[alarm].sum() <= 0.01
        if images == 256:
            assert binom.pmf(hits, images, chance)[alarm].sum() >= 0.9


def test_far_below_the_most_frequent_label_is_suspicious_although_above_chance():
    # 77 of 256 is 30 %, above a chance of 10 %; naming the most frequent label would give 80 %.
    assert suspicious(77, 256, 0.1, 0.8)
    assert not suspicious(77, 256, 0.1, 0.12)


def test_warnings_of_the_rehearsal_stand_in_the_results_and_survive_saving(tmp_path):
    def zeroing(model, batch, key):
        maps = batch.images.clone()
        batch.images.zero_()
        return maps

    with pytest.warns(rw.errors.ChangedInputWarning):
        comparison = compare({"bad": zeroing})
    first = comparison.warnings().iloc[0]
    assert first["kind"] == "noted before the run"
    assert "bad changed the images" in str(comparison).replace("Bad", "bad")
    assert rw.load(comparison.save(tmp_path / "run")).warnings().iloc[0].equals(first)


class CountingModel(torch.nn.Module):
    """A model that counts the images it predicts."""

    def __init__(self, network):
        super().__init__()
        self.network, self.images = network, 0

    def forward(self, inputs):
        self.images += len(inputs)
        return self.network(inputs)


def images_predicted(n, **options):
    world = worlds.quadrants(n=n)
    model = CountingModel(world.model)
    comparison = rw.compare(
        model, (world.images, world.labels), {"mine": world.images.sum(dim=1).numpy()}, fractions=(0.5,),
        orders=("morf",), controls=(), progress=False, batch_size=8, **options,
    )  # fmt: skip
    return model.images, comparison


def test_up_to_256_images_are_predicted_once_as_they_are():
    # 8 more images are predicted whole and at one fraction; what is tried on the first images stays the same.
    (fewer, _), (more, _) = images_predicted(16), images_predicted(24)
    assert more - fewer == 8 * 2


def without_reuse(worker, batch, split):
    return predict(worker.experiment.model, batch.images, CPU)


def assert_same_bytes(one, other):
    for point, predictions in one.predictions.items():
        for field in ("ids", "labels", "predicted", "probability"):
            assert getattr(predictions, field).tobytes() == getattr(other.predictions[point], field).tobytes()


def test_what_the_check_predicted_is_what_the_comparison_would_predict(monkeypatch):
    _, reused = images_predicted(20)
    monkeypatch.setattr(Worker, "predict", without_reuse)
    assert_same_bytes(reused, images_predicted(20)[1])


def test_train_images_with_the_ids_of_test_images_are_predicted_on_their_own(monkeypatch):
    def compared():
        world = worlds.quadrants(n=16)
        options = {"fractions": (0.5,), "orders": ("morf",), "controls": (), "progress": False, "batch_size": 8}
        return rw.compare(
            world.model, (world.images, world.labels), {"G": "gradient"}, evaluators=("retrain",), target="prediction",
            train=(0.9 * world.images.flip(0), world.labels.flip(0)),
            recipe=rw.Recipe(epochs=1, batch_size=8, select="last"),
            network=lambda: rw.models.small_cnn(classes=4, channels=3), **options,
        )  # fmt: skip

    reused = compared()
    monkeypatch.setattr(Worker, "predict", without_reuse)
    assert_same_bytes(reused, compared())
