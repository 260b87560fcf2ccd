"""Plans with evaluators that train: killed during a training and resumed, the same bytes."""

import pytest
from safetensors.numpy import load_file

import worlds
from commands import contents, flat, invoke, killed_when, output_of
from projects import QUADRANTS, edited, save_images, write
from roadworthy.core.errors import TrainTestOverlapWarning
from roadworthy.experiments.stores.run_directory import RunDirectory

PLAN = """
[data]
name = "folder"
root = "images/test"
[model]
factory = "my_model:fixed"
[methods]
IG = { name = "ig", steps = 3 }
[evaluation]
self_test = false
orders = ["morf"]
imputers = ["fixed", "linear"]
evaluators = ["no-retrain", "retrain", "fine-tuned"]
fractions = [0.3]
controls = []
[train]
root = "images/train"
[recipe]
epochs = 30
batch_size = 8
lr = 0.003
model = { factory = "my_model:build" }
"""

MODEL = """
from torch import manual_seed, nn

def build(width=8):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Linear(4 * width, 4))

def fixed():
    manual_seed(0)
    return build()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder: train and test images, a model, a plan with all three evaluators."""
    root = tmp_path_factory.mktemp("retraining")
    world = worlds.quadrants(n=60)
    save_images(root / "images" / "train", world, QUADRANTS, range(40))
    save_images(root / "images" / "test", world, QUADRANTS, range(40, 60))
    write(root / "my_model.py", MODEL)
    write(root / "plan.toml", PLAN)
    return root


def run(project, store, plan="plan.toml", code=0):
    return invoke(project, "run", plan, "--store", store, "--jobs", 1, code=code)


@pytest.fixture(scope="module")
def uninterrupted(project):
    run(project, "uninterrupted")
    return contents(project / "uninterrupted")


def predictions_of(project, store):
    directory = RunDirectory(project / store)
    return [directory.read_file(path) for path in directory.files("predictions")]


def test_each_training_is_one_item_with_its_curve(project, uninterrupted):
    # Maps of the train and of the test images; a fine-tuned model per imputer. Predictions: the baseline of the test
    # images, and of the train images where maps need it; 2 imputers at 0.3 without training; for the fine-tuned models
    # 2 imputers × 2 fractions; for retraining 2 imputers at 0.3 and one training without removal that both share.
    counts = [sum(name.startswith(folder) for name in uninterrupted) for folder in ("maps", "models", "predictions")]
    assert counts == [2, 2, 2 + 2 + 4 + 3]
    curves = []
    for path in (project / "uninterrupted" / "predictions").glob("*/*"):
        arrays = load_file(path)
        if "curve" in arrays:
            curves.append(arrays["curve"])
            best = arrays["curve"][:, 4].max()  # validation accuracy
            assert arrays["curve"][arrays["epoch"][0], 4] == best
    assert [curve.shape for curve in curves] == [(30, 5)] * 3  # epoch, loss, learning rate, images, measure
    assert all(curve[0, 3] == 36 for curve in curves)  # of 40 images 4 are held out
    assert all(curve[-1, 1] < curve[0, 1] for curve in curves)  # the loss fell
    assert not list((project / "uninterrupted" / "models").glob("*.checkpoint"))


def test_killed_during_a_training_and_resumed_it_ends_with_the_same_bytes(project, uninterrupted):
    root = project / "killed"

    def checkpoints():
        return list(root.glob("models/*.checkpoint"))

    killed_when(checkpoints, project, "run", "plan.toml", "--store", "killed", "--jobs", 1)
    assert checkpoints()  # a training was interrupted
    assert len(contents(root)) < len(uninterrupted)
    run(project, "killed")
    assert contents(root) == uninterrupted
    assert not checkpoints()


def test_the_commands_count_trainings(project, uninterrupted):
    cost = output_of(project, "run", "plan.toml", "--dry-run")
    for row in ("maps 2 2", "points 12 12", "trainings 5 5"):  # all, and missing from a directory that does not exist
        assert row in cost
    assert "20 images, 40 train images" in cost
    output_of(project, "export", "uninterrupted", "table.csv")
    lines = (project / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + 12 * 20  # a row per point and test image
    assert f"done {len(uninterrupted)} pending 0 failed 0" in output_of(project, "status", "uninterrupted")
    assert "retrain" in output_of(project, "show", "uninterrupted")


def test_roar_and_kar_are_strategies_of_a_plan(project):
    text = (project / "plan.toml").read_text()
    for line in ('orders = ["morf"]', 'imputers = ["fixed", "linear"]'):
        text = text.replace(f"{line}\n", "")
    text = text.replace('evaluators = ["no-retrain", "retrain", "fine-tuned"]', 'strategies = ["ROAR", "KAR"]')
    write(project / "roar.toml", text.replace("epochs = 30", "epochs = 2"))
    run(project, "roar", "roar.toml")
    labels = [header["label"] for header, _ in predictions_of(project, "roar") if "fraction" in header["label"]]
    assert sorted((label["order"], label["imputer"], label["evaluator"], label["fraction"]) for label in labels) == [
        ("", "", "retrain", 0.0),
        ("lerf", "fixed", "retrain", 0.3),
        ("morf", "fixed", "retrain", 0.3),
    ]


def test_a_training_that_diverges_is_recorded_with_its_point(project):
    plan = edited(
        project / "plan.toml", "wild.toml", lr='1e30\noptimizer = "sgd"', evaluators='["no-retrain", "retrain"]'
    )
    run(project, "wild", plan, code=1)
    failures = RunDirectory(project / "wild").failures().values()
    assert sorted(failure["label"]["fraction"] for failure in failures) == [0, 0.3, 0.3]
    assert all("TrainingError" in failure["traceback"] for failure in failures)
    assert {failure["label"]["evaluator"] for failure in failures} == {"retrain"}
    stored = [header["label"] for header, _ in predictions_of(project, "wild") if "fraction" in header["label"]]
    assert [label["evaluator"] for label in stored] == ["no-retrain"] * 2


def test_a_loss_and_an_augmentation_of_ones_own_are_trained_with(project):
    write(
        project / "my_training.py",
        """
        from torch.nn.functional import cross_entropy

        def louder(logits, labels):
            return 3 * cross_entropy(logits, labels)

        def dark(images, ids, key):
            return 0 * images
        """,
    )
    plan = edited(
        project / "plan.toml",
        "own.toml",
        epochs='2\nselect = "last"\nloss = "my_training:louder"\naugment = "my_training:dark"',
        lr="1e-9",
        evaluators='["retrain"]',
    )
    run(project, "own", plan)
    losses = {
        round(float(arrays["curve"][0, 1]), 4) for _, arrays in predictions_of(project, "own") if "curve" in arrays
    }
    # Black images look alike, so a network that hardly learns predicts about the same for all four classes: 3 · ln 4 =
    # 4.16, give or take what its first weights prefer. Without the 3 it would be 1.39; with images, one per point.
    assert len(losses) == 1
    assert losses.pop() == pytest.approx(4.16, rel=0.15)
    text = (project / "own.toml").read_text().replace("my_training:louder", "my_training:quieter")
    write(project / "lost.toml", text)
    error = flat(run(project, "lost", "lost.toml", code=1).stderr)
    assert "recipe.loss" in error
    assert "'quieter'" in error


def test_train_images_among_the_test_images_are_a_warning_and_a_missing_class_is_an_error(project):
    text = (project / "plan.toml").read_text()
    write(project / "same.toml", text.replace("images/train", "images/test").replace("epochs = 30", "epochs = 1"))
    with pytest.warns(TrainTestOverlapWarning, match="20 of 20 test images are train images too"):
        run(project, "same", "same.toml")
    # 12 of 40 images, sorted by class: two classes at most
    write(project / "few.toml", text.replace('root = "images/train"', 'root = "images/train"\nimages = 12'))
    assert f"no image of {QUADRANTS[2]}" in flat(run(project, "few", "few.toml", code=1).stderr)
    assert contents(project / "few") == {}
