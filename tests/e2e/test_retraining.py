"""The lab book with evaluators that train: killed in the middle of a training, gone on with, the same bytes."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest
from PIL import Image
from roadworthy.experiments.work import check_training
from safetensors.numpy import load_file

import worlds
from commands import contents, flat, told
from roadworthy.core.errors import InputError, PlanError, TrainTestOverlapWarning
from roadworthy.experiments import runner
from roadworthy.experiments.executors.local import Local
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.stores.run_directory import Store

CLASSES = ("north-west", "north-east", "south-west", "south-east")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder: pictures to train and to test, a model of their own, a plan with all three evaluators."""
    root = tmp_path_factory.mktemp("retraining")
    world = worlds.quadrants(n=60)
    for row, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        folder = root / "pictures" / ("train" if row < 40 else "test") / CLASSES[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0) * 255).byte().numpy()).save(folder / f"{row:02}.png")
    (root / "retrained_model.py").write_text(
        textwrap.dedent("""
        from torch import manual_seed, nn

        def build(width=8):
            return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                                 nn.Linear(4 * width, 4))

        def fixed():
            manual_seed(0)
            return build()
        """)
    )
    (root / "plan.toml").write_text(
        textwrap.dedent("""
        [data]
        name = "folder"
        root = "pictures/test"
        [model]
        factory = "retrained_model:fixed"
        [methods]
        IG = { name = "ig", steps = 3 }
        [evaluation]
        orders = ["morf"]
        imputers = ["fixed", "linear"]
        evaluators = ["no-retrain", "retrain", "fine-tuned"]
        fractions = [0.3]
        controls = []
        [train]
        root = "pictures/train"
        [recipe]
        epochs = 30
        batch_size = 8
        lr = 0.003
        model = { factory = "retrained_model:build" }
        """)
    )
    return root


def run(project, store, plan="plan.toml"):
    """In this process: starting another one takes longer than the work. Returns what is missing still."""
    target = Store(project / store)
    target.root.mkdir(exist_ok=True)
    (target.root / "plan.toml").write_text((project / plan).read_text().replace('"pictures', '"../pictures'))
    return runner.run(read_plan(project / plan), target, Local(1), lambda event: None, lambda work, complaints: None)


@pytest.fixture(scope="module")
def unbroken(project):
    run(project, "unbroken")
    return contents(project / "unbroken")


def test_each_training_is_one_trial_or_model_with_its_curve(project, unbroken):
    # PrecomputedMaps of the train and the test split; a tuned model per imputer; trials: 2 imputers × 2 fractions for the fixed
    # and for the tuned evaluator, for the retrained one 2 imputers at 0.3 and one point without removal that both share.
    assert [sum(name.startswith(folder) for name in unbroken) for folder in ("maps", "models", "trials")] == [2, 2, 11]
    curves = []
    for path in (project / "unbroken" / "trials").iterdir():
        arrays = load_file(path)
        if "curve" in arrays:
            curves.append(arrays["curve"])
            best = arrays["curve"][:, 4].max()  # validation accuracy
            assert arrays["curve"][arrays["epoch"][0], 4] == best
    assert [curve.shape for curve in curves] == [(30, 5)] * 3  # epoch, loss, lr, images, measure
    assert all(curve[0, 3] == 36 for curve in curves)  # of 40 images 4 are held out
    assert all(curve[-1, 1] < curve[0, 1] for curve in curves)  # something was learned
    assert not list((project / "unbroken" / "models").glob("*.checkpoint"))


def test_killed_in_training_and_resumed_it_ends_with_the_same_bytes(project, unbroken):
    root, hits = project / "killed", 0
    words = [sys.executable, "-m", "roadworthy", "run", "plan.toml", "--store", "killed", "--jobs", "1"]
    for _ in range(20):
        process = subprocess.Popen(words, cwd=project)
        while process.poll() is None and not list(root.glob("models/*.checkpoint")):
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        hits += bool(list(root.glob("models/*.checkpoint")))
        if hits == 2:
            break
    assert hits == 2  # twice a training was in hand
    assert len(contents(root)) < len(unbroken)
    run(project, "killed")
    assert contents(root) == unbroken
    assert not list(root.glob("models/*.checkpoint"))


def test_a_plan_is_checked_and_exported_with_its_trainings(project, unbroken):
    cost = flat(told("plan", "check", project / "plan.toml"))
    for row in ("maps 2 2", "points 12 12", "trainings 5 5"):  # all, and missing from a store of its own
        assert row in cost
    assert "20 images, 40 train images" in cost
    told("export", project / "unbroken", project / "table.csv")
    lines = (project / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + 12 * 20  # a row per point and test image
    assert "done 15  pending 0  failed 0" in told("status", project / "unbroken")


def test_a_training_that_diverges_is_told_with_its_dot_and_is_no_trial(project):
    text = (project / "plan.toml").read_text()
    wild = text.replace("lr = 0.003", 'lr = 1e30\noptimiser = "sgd"').replace(', "fine-tuned"', "")
    (project / "wild.toml").write_text(wild)
    assert run(project, "wild", "wild.toml").missing == 3
    failures = Store(project / "wild").failures().values()
    assert sorted(failure["label"]["fraction"] for failure in failures) == [0, 0.3, 0.3]
    assert all("TrainingError: the training for fraction" in failure["traceback"] for failure in failures)
    assert {failure["label"]["evaluator"] for failure in failures} == {"retrain"}
    assert len(list((project / "wild" / "trials").iterdir())) == 4  # the fixed model's


def test_a_loss_and_an_augmentation_of_ones_own_are_learned_with(project):
    (project / "my_training.py").write_text(
        textwrap.dedent("""
        from torch.nn.functional import cross_entropy

        def louder(logits, labels):
            return 3 * cross_entropy(logits, labels)

        def dark(images, ids, key):
            return 0 * images
        """)
    )
    own = 'epochs = 2\nselect = "last"\nloss = "my_training:louder"\naugment = "my_training:dark"'
    text = (project / "plan.toml").read_text().replace("epochs = 30", own).replace("0.003", "1e-9")
    (project / "own.toml").write_text(text.replace(', "fine-tuned"', ""))
    assert run(project, "own", "own.toml").missing == 0
    trials = [load_file(path) for path in (project / "own" / "trials").iterdir()]
    losses = {round(float(arrays["curve"][0, 1]), 4) for arrays in trials if "curve" in arrays}
    # Black images look alike, so a network that hardly learns says about the same of all four classes: 3 · ln 4 = 4.16,
    # give or take what its first weights prefer. Without the 3 it would be 1.39; from pictures, another one per point.
    assert len(losses) == 1
    assert losses.pop() == pytest.approx(4.16, rel=0.15)
    (project / "lost.toml").write_text(text.replace("my_training:louder", "my_training:quieter"))
    with pytest.raises(PlanError, match=r"recipe.loss: loss 'my_training:quieter': my_training .* has no 'quieter'"):
        run(project, "lost", "lost.toml")


def test_a_train_image_among_the_test_images_is_said_and_a_missing_class_is_refused(project):
    text = (project / "plan.toml").read_text()
    (project / "same.toml").write_text(text.replace('root = "pictures/train"', 'root = "pictures/test"'))
    with pytest.warns(TrainTestOverlapWarning, match="20 of 20 test images are train images too"):
        check_training(read_plan(project / "same.toml"))
    (project / "few.toml").write_text(text.replace('root = "pictures/train"', 'root = "pictures/train"\nimages = 12'))
    with pytest.raises(InputError, match="no image of south-east"):  # 12 of 40, sorted by class: two classes at most
        run(project, "few", "few.toml")
    assert contents(project / "few") == {}
