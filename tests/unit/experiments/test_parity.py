"""The same experiment through either front gives the same predictions, to the byte."""

import textwrap

import numpy as np
import pytest
import torch

import gains
import roadworthy as rw
from roadworthy.datasets import first

MINE = """
    def saliency(model, batch, key):
        images = batch.images.clone().requires_grad_()
        model(images).gather(1, batch.labels[:, None]).sum().backward()
        return images.grad.abs()
"""


def assert_equal_predictions(one, other):
    assert one.predictions.keys() == other.predictions.keys()
    for point, predictions in one.predictions.items():
        for field in ("ids", "labels", "predicted", "probability"):
            first_bytes, second_bytes = (getattr(p, field).tobytes() for p in (predictions, other.predictions[point]))
            assert first_bytes == second_bytes, (point, field)


@pytest.fixture
def own_method(tmp_path, monkeypatch):
    """mine.py beside the plan."""
    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE))
    monkeypatch.chdir(tmp_path)
    namespace = {}
    exec(textwrap.dedent(MINE), namespace)
    return namespace["saliency"]


def run_both(folder, plan_text, comparison):
    """Through `rw.run` with one and with two processes."""
    (folder / "plan.toml").write_text(textwrap.dedent(plan_text))
    for jobs in (1, 2):
        ran = rw.run(folder / "plan.toml", store=folder / f"run-{jobs}", jobs=jobs, progress=False)
        assert_equal_predictions(comparison, ran)
        assert ran.ranking().equals(comparison.ranking())
    return ran


DIGITS = """
    [data]
    name = "digits"
    split = "test"
    images = 70

    [model]
    name = "small-cnn"
    channels = 1
    classes = 10
    weights = "cnn.safetensors"
    mean = 0.13
    std = 0.31

    [methods]
    IG = {{ name = "ig", steps = 4 }}
    mine = "mine:saliency"
    ready = {{ name = "maps", path = "maps.npy" }}
    captum = {{ name = "captum", method = "Saliency", abs = false }}

    [evaluation]
    self_test = false
    imputers = ["linear", {{ name = "gain", weights = "{gain}" }}]
    fractions = [0.3, 0.7]
    seeds = [0, 1]
    target = "prediction"
    controls = ["random", "center", "blurred", "inverted"]
    until = "best"
    margin = 0.1
    confidence = 0.9

    [run]
    batch_size = 32
    map_batch_size = 32
    block_size = 64
"""


@pytest.fixture
def small_cnn(tmp_path):
    """A CNN with fixed weights, also in a file."""
    from safetensors.torch import save_file

    with rw.Key(3).torch_rng():
        network = rw.models.small_cnn(channels=1, classes=10)
    save_file(network.state_dict(), tmp_path / "cnn.safetensors")
    return rw.Normalized(network, mean=0.13, std=0.31)


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # the model is untrained
def test_a_hard_experiment_gives_the_same_bytes_through_either_front(tmp_path, own_method, small_cnn):
    """Own method, precomputed maps, a Captum method, a trained imputer, `target`, early stopping, two seeds."""
    from captum.attr import Saliency

    data = first(rw.datasets.Digits("test"), 70)
    maps = rw.Key(5).uniform(data.ids, (28, 28))
    np.save(tmp_path / "maps.npy", maps.numpy())
    gain = gains.file((1, 28, 28))
    torch.set_num_threads(1)
    comparison = rw.compare(
        small_cnn,
        data,
        {
            "IG": rw.attributions.IntegratedGradients(4),
            "mine": own_method,
            "ready": maps,
            "captum": rw.attributions.Captum(Saliency, abs=False),
        },
        imputers={"linear": rw.NoisyLinear(), "gain": rw.Gain.load(gain)},
        fractions=(0.3, 0.7),
        seeds=(0, 1),
        target="prediction",
        controls=("random", "center", "blurred", "inverted"),
        until="best",
        margin=0.1,
        confidence=0.9,
        batch_size=32,
        map_batch_size=32,
        progress=False,
    )
    images = len(next(iter(comparison.predictions.values())))
    assert 32 <= images <= 70
    assert {copy.how for copy in comparison.results.copies.values()} == {"blurred", "inverted"}
    text = DIGITS.format(gain=gain)
    ran = run_both(tmp_path, text, comparison)
    assert ran.results.stopping == comparison.results.stopping
    assert ran.results.ties == comparison.results.ties
    saved = rw.load(comparison.save(tmp_path / "saved"))
    assert_equal_predictions(comparison, saved)
    assert saved.ranking().equals(comparison.ranking())


CIFAR10 = """
    [data]
    name = "cifar10"
    root = "{root}"
    images = 48

    [model]
    name = "cifar-resnet"
    depth = 20
    weights = "{root}/weights/resnet20_cifar10.safetensors"
    mean = [0.485, 0.456, 0.406]
    std = [0.229, 0.224, 0.225]

    [methods]
    IG = {{ name = "ig", steps = 2 }}
    mine = "mine:saliency"

    [evaluation]
    self_test = false
    imputers = ["linear", "gain"]
    evaluators = ["no-retrain", "retrain", "fine-tuned"]
    fractions = [0.5]
    seeds = [0, 1]
    target = "prediction"
    controls = ["random", "blurred", "inverted"]
    until = "ranked"
    margin = 0.2
    confidence = 0.8

    [train]
    images = 60

    [recipe]
    epochs = 1
    batch_size = 20
    select = "last"
    augment = "flip"
    model = {{ name = "small-cnn", classes = 10, channels = 3 }}

    [gain]
    epochs = 1
    batch_size = 20
    width = 4
    blocks = 1

    [run]
    batch_size = 16
    map_batch_size = 16
    block_size = 32
"""


@pytest.mark.slow
def test_retraining_and_trained_imputers_give_the_same_bytes_through_either_front(tmp_path, own_method, real_data):
    """ResNet-20 on CIFAR-10, own method, GAIN trained in the run, retraining, fine-tuning, early stopping, seeds."""
    torch.set_num_threads(1)
    comparison = rw.compare(
        rw.models.resnet20_cifar10(real_data / "weights" / "resnet20_cifar10.safetensors"),
        first(rw.datasets.CIFAR10(real_data, "test"), 48),
        {"IG": rw.attributions.IntegratedGradients(2), "mine": own_method},
        imputers={"linear": rw.NoisyLinear(), "gain": rw.GainRecipe(epochs=1, batch_size=20, width=4, blocks=1)},
        evaluators=("no-retrain", "retrain", "fine-tuned"),
        train=first(rw.datasets.CIFAR10(real_data, "train"), 60),
        recipe=rw.Recipe(epochs=1, batch_size=20, select="last"),
        network=lambda: rw.models.small_cnn(classes=10, channels=3),
        augment="flip",
        fractions=(0.5,),
        seeds=(0, 1),
        target="prediction",
        controls=("random", "blurred", "inverted"),
        until="ranked",
        margin=0.2,
        confidence=0.8,
        batch_size=16,
        map_batch_size=16,
        progress=False,
    )
    assert {point.evaluator for point in comparison.predictions} == {"no-retrain", "retrain", "fine-tuned"}
    run_both(tmp_path, CIFAR10.format(root=real_data), comparison)
