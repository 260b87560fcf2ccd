"""How each kind of item is computed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import gains
import roadworthy as rw
import worlds
from pretend_device import DEVICE, PretendDevice
from roadworthy.attributions.controls import blurred
from roadworthy.core.results import Copy
from roadworthy.datasets import Arrays
from roadworthy.evaluation.experiment import TRAINED_EVALUATORS, Experiment, Setting
from roadworthy.experiments.design import Design
from roadworthy.experiments.executors import InProcess
from roadworthy.experiments.items import Block
from roadworthy.experiments.pending import survey
from roadworthy.experiments.recorded import as_predictions, read_predictions
from roadworthy.experiments.registry import lookup
from roadworthy.experiments.runner import execute, grouping
from roadworthy.experiments.stores.scratch import ScratchStore
from roadworthy.experiments.worker import Worker
from roadworthy.models.normalized import as_model
from roadworthy.training.recipe import Recipe

WORLD = worlds.quadrants(n=40)
SHORT = Recipe(epochs=2, batch_size=16, select="last")
ROWS = ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10))
SHUFFLED = ((1, 4, 9, 10), (0, 2, 6, 7), (3, 5, 8))


def experiment(**changes):
    return Experiment(
        **{
            "model": as_model(WORLD.model),
            "data": Arrays(WORLD.images[:11], WORLD.labels[:11]),
            "methods": {
                "IG": lookup("attributions", "ig").make(steps=4),
                "random": lookup("attributions", "random").make(),
            },
            "orders": {name: lookup("orders", name).make() for name in ("morf", "lerf")},
            "imputers": {"linear": rw.NoisyLinear()},
            "map_batch_size": 3,
            "batch_size": 2,
            "train": Arrays(WORLD.images[11:], WORLD.labels[11:]),
            "recipe": SHORT,
            **changes,
        }
    )


def network():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 4))


def blocks(split, rows):
    return tuple(Block(split, index, part, f"{split} {index}") for index, part in enumerate(rows))


TRAIN_BLOCKS = blocks("train", [tuple(range(20)), tuple(range(20, 29))])


def design(experiment, evaluators=("no-retrain",), rows=ROWS, **options):
    names = {name: {"object": name} for name in (*experiment.methods, *experiment.orders, *experiment.imputers)}
    return Design(
        model={},
        methods={name: names[name] for name in experiment.methods},
        blind_controls={},
        orders={name: names[name] for name in experiment.orders},
        imputers={name: names[name] for name in experiment.imputers},
        settings=tuple(Setting(o, i, e) for o in experiment.orders for i in experiment.imputers for e in evaluators),
        target=experiment.target,
        maps={},
        batch_size=experiment.batch_size,
        threads=1,
        blocks=blocks("test", rows),
        **{"train_blocks": TRAIN_BLOCKS, "copy_controls": (), "fractions": (0.3, 0.6), "seeds": (0,), **options},
    )


def run(experiment, **options):
    """Everything that the experiment amounts to: the design, the store and the predictions by point."""
    planned, store = design(experiment, **options), ScratchStore()
    execute(planned, store, InProcess(Worker(experiment), raises=True), grouping({"IG": "IG", "random": "random"}))
    return planned, store, read_predictions(survey(planned, store).points, store)


# ── baseline and maps ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_baseline_holds_labels_targets_and_plain_predictions():
    labels = WORLD.labels[:11].clone()
    labels[3] = (labels[3] + 1) % 4  # wrong
    for target, expected in (("label", 0.0), ("prediction", 1.0)):
        planned, store, _ = run(experiment(data=Arrays(WORLD.images[:11], labels), target=target))
        baselines = [as_predictions(store.read(planned.baseline(block))) for block in planned.blocks]
        assert [baseline.ids.tolist() for baseline in baselines] == [list(rows) for rows in ROWS]
        assert baselines[0].labels.tolist() == labels[:4].tolist()
        assert [part.correct.tolist() for part in baselines] == [[True] * 3 + [False], [True] * 4, [True] * 3]
        assert baselines[0].probability[3] == pytest.approx(expected, abs=0.1)


def test_the_label_of_an_image_without_one_is_the_prediction():
    planned, store, found = run(experiment(data=Arrays(WORLD.images[:11])))
    assert as_predictions(store.read(planned.baseline(planned.blocks[0]))).labels.tolist() == WORLD.labels[:4].tolist()
    assert {tuple(predictions.labels) for predictions in found.values()} == {tuple(WORLD.labels[:11].tolist())}


def test_maps_explain_the_target_in_batches_of_their_own_size():
    seen = []

    def method(model, batch, key):
        seen.append((batch.ids.tolist(), batch.labels.tolist()))
        return batch.images

    wrong = (WORLD.labels[:11] + 1) % 4
    data = Arrays(WORLD.images[:11], wrong)
    for target, labels in (("label", wrong), ("prediction", WORLD.labels)):
        seen.clear()
        run(experiment(methods={"IG": method}, data=data, target=target))
        # Blocks of 4, 4 and 3 images, in batches of 3.
        assert [ids for ids, _ in seen] == [[0, 1, 2], [3], [4, 5, 6], [7], [8, 9, 10]]
        assert [label for _, labels in seen for label in labels] == labels[:11].tolist()


def test_maps_are_stored_per_block_with_their_ties():
    planned, store, _ = run(experiment(methods={"IG": lambda model, batch, key: torch.zeros(len(batch), 12, 12)}))
    arrays = store.read(planned.map_item("IG", planned.blocks[2]))
    assert arrays["maps"].shape == (3, 12, 12)
    assert arrays["ties"].tolist() == [[1, 1]] * 3


def test_a_blurred_copy_is_the_blurred_map():
    planned, store, _ = run(experiment(), copy_controls=("blurred",), copied=("IG",))
    for block in planned.blocks:
        original = store.read(planned.map_item("IG", block))["maps"]
        copy = store.read(planned.map_item("IG blurred", block, Copy("IG", "blurred")))["maps"]
        assert torch.equal(torch.from_numpy(copy), blurred(torch.from_numpy(original)))


def test_an_inverted_copy_has_the_predictions_of_the_other_order():
    _, _, found = run(experiment(), copy_controls=("inverted",), copied=("IG",))
    for point, predictions in found.items():
        if point.method == "IG inverted":
            other = found[point._replace(method="IG", order="lerf" if point.order == "morf" else "morf")]
            assert np.array_equal(predictions.probability, other.probability)


# ── predictions ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("evaluator", ["no-retrain", "retrain", "warm-start", "fine-tuned"])
def test_blocks_in_another_order_give_the_same_predictions_in_the_order_of_the_images(evaluator):
    live = experiment(network=network, model=_trained())
    _, _, found = run(live, evaluators=(evaluator,))
    _, _, shuffled = run(live, evaluators=(evaluator,), rows=SHUFFLED)
    assert found.keys() == shuffled.keys()
    for point, predictions in found.items():
        assert predictions.ids.tolist() == shuffled[point].ids.tolist() == list(range(11))
        assert predictions.labels.tolist() == WORLD.labels[:11].tolist()
        assert np.abs(predictions.probability - shuffled[point].probability).max() < 1e-5


def _trained():
    with rw.Key(3).torch_rng():
        return as_model(network())


@pytest.mark.parametrize("evaluator", ["no-retrain", "retrain", "warm-start", "fine-tuned"])
def test_without_removal_a_curve_starts_at_the_evaluators_own_plain_accuracy(evaluator):
    _, _, found = run(experiment(network=network, model=_trained()), evaluators=(evaluator,))
    plain = {point: predictions.probability for point, predictions in found.items() if point.fraction == 0}
    assert all(np.array_equal(values, next(iter(plain.values()))) for values in plain.values())


def test_a_training_is_stored_with_its_curve_and_the_epoch_that_was_kept():
    planned, store, _ = run(experiment(network=network, model=_trained()), evaluators=("retrain", "fine-tuned"))
    tuned = planned.model_item("linear", 0)
    retrained = [items[0] for point, items in survey(planned, store).points.items() if point.evaluator == "retrain"]
    for item in (tuned, *retrained):
        arrays = store.read(item)
        assert len(arrays["curve"]) == 2
        assert arrays["epoch"].tolist() == [1]  # the last
    assert any(name.startswith("weights.") for name in store.read(tuned))


@pytest.mark.parametrize("evaluator", ["no-retrain", "retrain", "warm-start", "fine-tuned"])
def test_an_imputer_is_trained_first_and_then_used(evaluator):
    # The fine-tuned model at fraction 0 asked for the GAIN, which that point does not need and did not get.
    live = experiment(imputers={"gain": replace(gains.TINY, epochs=1)}, network=network, model=_trained())
    planned, store, found = run(live, evaluators=(evaluator,), trained_imputers=("gain",))
    (item,) = planned.imputer_item("gain")
    assert item.id in store.ids()
    assert {len(predictions) for predictions in found.values()} == {11}
    assert {point.fraction for point in found} == {0, 0.3, 0.6}


def test_the_given_model_is_left_as_it_was():
    model = _trained()
    before = [tensor.clone() for tensor in model.state_dict().values()]
    model.train()
    run(experiment(network=network, model=model), evaluators=TRAINED_EVALUATORS)
    assert all(torch.equal(a, b) for a, b in zip(before, model.state_dict().values(), strict=True))
    assert model.training


def test_workers_are_started_once_for_all_waves_and_not_at_all_if_nothing_is_missing():
    # Each wave, such as a block of an early-stopped run, started its own processes.
    live = experiment()
    planned, store, starts = design(live, copy_controls=("blurred",)), ScratchStore(), []

    class Counting:
        def started(self):
            starts.append(len(store.ids()))
            return InProcess(Worker(live), raises=True).started()

    key = grouping({"IG": "IG", "random": "random"})
    state = execute(planned, store, Counting(), key)
    assert set(state.copies) == {"IG blurred", "random blurred"}  # the second wave
    execute(planned, store, Counting(), key)
    assert starts == [0]


# ── what is missing ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": None, "network": network}, "train images are missing"),
        ({"recipe": None, "network": network}, "recipe is missing"),
        ({"network": None}, "needs network="),
    ],
)
def test_a_training_without_its_parts_is_an_error(changes, message):
    with pytest.raises(rw.errors.InputError, match=message):
        run(experiment(**changes), evaluators=("retrain",), train_blocks=())


def test_a_block_moves_to_the_device_once_for_all_methods():
    worker, (first, second, _) = Worker(experiment(device=DEVICE)), blocks("test", ROWS)
    with PretendDevice() as device:
        placed = [worker.placed(block) for block in (first, first, second, second, first)]
    assert device.to_device == [(4, 3, 12, 12)] * 3
    assert placed[0] is placed[1]
    assert torch.equal(placed[2].images.inner, WORLD.images[4:8])
    assert placed[2].ids.device == placed[2].labels.device == torch.device("cpu")
