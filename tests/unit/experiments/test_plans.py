"""Plans: what they mean, and errors that name the key, the value and the cure."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from roadworthy.core.errors import PlanError
from roadworthy.core.masks import FRACTIONS
from roadworthy.experiments.plans import Plan, plan_from, read_plan
from roadworthy.experiments.plans.plan import BLIND_CONTROLS, CONTROLS

PLANS = sorted((Path(__file__).parents[3] / "plans").glob("*.toml"))

MINIMAL = """
[data]
name = "cifar10"
root = "data"
[model]
name = "cifar-resnet"
[methods]
IG = "ig"
"""

TRAINING = {
    "evaluation": {"evaluators": ["no-retrain", "retrain", "fine-tuned"], "fractions": [0.5], "seeds": [0, 1]},
    "train": {"images": 100},
    "recipe": {"name": "tiny"},
}

GAIN = {"evaluation": {"imputers": ["fixed", "gain"]}, "train": {"images": 100}, "gain": {"epochs": 5, "width": 16}}


def plan(base=None, folder=Path(), **sections):
    """The minimal plan with some keys changed; None removes one."""
    tables = tomllib.loads(MINIMAL)
    for changes in (base or {}, sections):
        for name, values in changes.items():
            if isinstance(values, dict):
                merged = {**tables.get(name, {}), **values}
                tables[name] = {key: value for key, value in merged.items() if value is not None}
            else:
                tables[name] = values
    return plan_from(tables, folder)


def complaint(base=None, **sections):
    with pytest.raises(PlanError) as error:
        plan(base, **sections)
    return str(error.value)


# ── what a plan means ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_minimal_plan_has_the_defaults_of_compare():
    assert plan() == Plan(
        data={"name": "cifar10", "root": "data"}, model={"name": "cifar-resnet"}, methods={"IG": {"name": "ig"}}
    )
    read = plan()
    assert read.controls == CONTROLS == (*BLIND_CONTROLS, "blurred", "inverted")
    assert (read.orders, read.evaluators, read.seeds, read.copied) == (("morf", "lerf"), ("no-retrain",), (0,), ())
    assert (read.fractions, read.imputers) == (FRACTIONS, {"linear": {"name": "linear"}})
    assert (read.target, read.channel_reduction, read.units) == ("label", "sum", {"name": "pixels"})
    assert (read.until, read.confidence, read.margin) == (None, 0.95, 0.02)
    assert (read.map_seed, read.map_batch_size, read.batch_size, read.block_size, read.threads) == (0, 64, 64, None, 1)


def test_every_key_reaches_the_plan():
    read = plan(
        methods={"GB": "gb"},
        evaluation={
            "orders": ["morf"],
            "fractions": [0.5, 0.25],
            "seeds": [3, 1],
            "controls": ["random", "inverted"],
            "copied": ["GB"],
            "target": "prediction",
            "channel_reduction": "abs_sum",
            "units": {"name": "patches", "size": 4},
            "unit_reduction": "max",
            "until": "best",
            "confidence": 0.9,
            "margin": 0,
        },
        run={"map_seed": 5, "map_batch_size": 2, "batch_size": 3, "block_size": 4, "threads": 6},
        folder=Path("there"),
    )
    assert (read.orders, read.fractions, read.seeds) == (("morf",), (0.0, 0.25, 0.5), (3, 1))
    assert (read.controls, read.copied) == (("random", "inverted"), ("GB",))
    assert (read.blind_controls, read.copy_controls) == (("random",), ("inverted",))
    assert (read.target, read.channel_reduction, read.unit_reduction) == ("prediction", "abs_sum", "max")
    assert read.units == {"name": "patches", "size": 4}
    assert (read.until, read.confidence, read.margin) == ("best", 0.9, 0)
    assert (read.map_seed, read.map_batch_size, read.batch_size, read.block_size, read.threads) == (5, 2, 3, 4, 6)
    assert read.folder == Path("there")


def test_settings_are_the_product_of_the_axes():
    read = plan(evaluation={"imputers": ["fixed", "linear"], "orders": ["lerf"]})
    assert read.settings == (("lerf", "fixed", "no-retrain"), ("lerf", "linear", "no-retrain"))


def test_strategies_have_the_names_of_the_literature():
    read = plan(TRAINING, evaluation={"evaluators": None, "strategies": ["ROAD", "ROAR", "KAR"]})
    assert read.settings == (
        ("morf", "linear", "no-retrain"),
        ("lerf", "linear", "no-retrain"),
        ("morf", "fixed", "retrain"),
        ("lerf", "fixed", "retrain"),
    )
    assert set(read.imputers) == {"linear", "fixed"}


def test_counts_are_those_of_the_work():
    # IG, 3 blind controls and IG blurred (inverted copies are free); 2 orders, 10 fractions
    assert plan().counts() == {"maps": 5, "points": 5 * 2 * 10, "trainings": 0}
    three = {"IG": "ig", "GB": "gb", "G": "gradient"}
    assert plan(methods=three).counts()["maps"] == 3 + 3 + 2  # the two leading methods are copied
    assert plan(methods=three, evaluation={"copied": ["IG"]}).counts()["maps"] == 3 + 3 + 1
    assert plan(evaluation={"controls": ["random"]}).counts()["maps"] == 2


def test_the_training_without_removal_is_shared():
    read = plan(TRAINING, evaluation={"controls": list(BLIND_CONTROLS)})
    # 4 maps on two splits; 4 × 2 orders × 3 evaluators × 2 seeds × 2 fractions; retrained: 4 × 2 × 2 at .5 and one per
    # seed without removal; fine-tuned: one per seed
    assert read.counts() == {"maps": 8, "points": 96, "trainings": 16 + 2 + 2}
    assert read.point_evaluators == ("retrain",)
    assert plan().point_evaluators == ()


def test_a_warm_start_is_a_training_per_point_like_retraining():
    evaluation = {"controls": [], "evaluators": ["retrain", "warm-start"]}
    read = plan(TRAINING, evaluation=evaluation)
    # 1 map on two splits; 2 orders × 2 evaluators × 2 seeds at .5, and one per evaluator and seed without removal
    assert read.point_evaluators == ("retrain", "warm-start")
    assert read.counts() == {"maps": 2, "points": 16, "trainings": 8 + 4}


def test_the_train_split_is_the_data_with_the_options_of_train():
    assert plan(TRAINING).train == {"name": "cifar10", "root": "data", "split": "train", "images": 100}
    assert plan(TRAINING, data={"sample": 7}).train == plan(TRAINING).train
    other = {"name": "digits", "split": "train"}
    assert plan(TRAINING, train=other).train == {**other, "images": 100}


def test_a_recipe_is_a_named_one_with_changes():
    recipe = plan(TRAINING, recipe={"schedule": "step", "milestones": [2], "lr": 1}).recipe
    assert (recipe.batch_size, recipe.milestones, recipe.lr) == (32, (2,), 1)  # "tiny" has batches of 32
    read = plan(TRAINING, recipe={"model": {"name": "resnet18"}, "loss": "mine:focal", "augment": "flip"})
    assert (read.network, read.loss, read.augment) == ({"name": "resnet18"}, "mine:focal", "flip")


def test_a_gain_without_weights_is_one_training():
    read = plan(GAIN, evaluation={"controls": []})
    assert (read.trained_imputers, read.imputer_files) == (("gain",), {})
    assert (read.gain.epochs, read.gain.width) == (5, 16)
    assert read.counts() == {"maps": 1, "points": 2 * 2 * 10, "trainings": 1}


def test_a_gain_with_weights_is_a_file():
    read = plan(evaluation={"imputers": [{"name": "gain", "weights": "a.safetensors"}]}, folder=Path("there"))
    assert read.imputer_files == {"gain": Path("there/a.safetensors")}
    assert read.trained_imputers == ()
    linear = plan(evaluation={"imputers": [{"name": "linear", "weights": [0.2, 0.05]}]})
    assert linear.imputer_files == {}  # weights of neighbors: numbers, not a file


def test_the_training_of_the_model_has_its_own_data():
    weights = {"weights": "w.safetensors"}
    options = {"name": "tiny", "epochs": 9, "augment": "flip", "data": {"train_batches": [1], "sample": 50}}
    training = plan(model=weights, training=options).training
    assert (training.recipe.epochs, training.recipe.batch_size, training.augment) == (9, 32, "flip")
    split = {"name": "cifar10", "root": "data", "split": "train"}
    assert training.data == {**split, "train_batches": [1], "sample": 50}
    fewer = plan(model=weights, data={"images": 7}, training={"epochs": 1})
    assert fewer.training.data == split  # the size of [data] is not inherited
    assert fewer.counts()["trainings"] == 0  # `roadworthy train` does it, not a run


# ── methods and imputers ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        ("ig", {"name": "ig"}),
        ({"name": "ig", "steps": 8}, {"name": "ig", "steps": 8}),
        ("pkg.mine:method", {"function": "pkg.mine:method"}),
        ({"function": "mine:method", "sigma": 2}, {"function": "mine:method", "sigma": 2}),
        (
            {"name": "captum", "method": "Occlusion", "sliding_window_shapes": [3, 4, 4]},
            {"name": "captum", "method": "Occlusion", "sliding_window_shapes": [3, 4, 4]},
        ),
        ({"name": "maps", "path": "maps.npy"}, {"name": "maps", "path": "maps.npy"}),
    ],
)
def test_a_method_is_a_name_a_function_a_captum_method_or_a_file_of_maps(given, spec):
    assert plan(methods={"M": given}).methods["M"] == spec


def test_an_imputer_is_called_as_the_user_says():
    own = [{"name": "blur", "sigma": 1, "as": "soft"}, "mine:fill", {"function": "mine:fill", "depth": 2, "as": "deep"}]
    assert plan(evaluation={"imputers": own}).imputers == {
        "soft": {"name": "blur", "sigma": 1},
        "fill": {"function": "mine:fill"},
        "deep": {"function": "mine:fill", "depth": 2},
    }


def test_files_beside_the_plan_are_known(tmp_path):
    (tmp_path / "mine.py").touch()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "fill.py").touch()
    read = plan(
        TRAINING,
        model={"name": None, "factory": "mine:build"},
        methods={"own": "mine:method", "installed": "torch.nn:method"},
        evaluation={"evaluators": ["fine-tuned"], "imputers": ["tools.fill:smooth"]},
        recipe={"loss": "mine:loss", "augment": "flip"},
        folder=tmp_path,
    )
    mine = tmp_path / "mine.py"
    assert read.function_files == {
        "mine:build": mine,
        "mine:method": mine,
        "mine:loss": mine,
        "tools.fill:smooth": tmp_path / "tools" / "fill.py",
    }
    maps = plan(methods={"M": {"name": "maps", "path": "m.npy"}}, folder=tmp_path)
    assert maps.map_files == {"M": tmp_path / "m.npy"}


def test_a_model_may_come_from_the_users_factory():
    read = plan(model={"name": None, "factory": "mine:build", "depth": 3, "weights": "w.pth"})
    assert read.model == {"name": "load", "factory": "mine:build", "depth": 3, "weights": "w.pth"}


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sections", "key", "parts"),
    [
        ({"data": {"name": "cifar01"}}, "data", ["unknown dataset 'cifar01'", "did you mean 'cifar10'?"]),
        ({"data": {"spilt": "test"}}, "data.spilt", ["no such key", "did you mean data.split?"]),
        ({"data": {"root": None}}, "data.root", ["missing", "'cifar10' needs it"]),
        ({"data": {"sample": 0}}, "data.sample", ["got 0", "at least 1"]),
        ({"data": {"images": "all"}}, "data.images", ["got 'all'", "whole number"]),
        ({"data": {"sample": 5, "images": 5}}, "data.sample", ["data.images", "remove one"]),
        ({"data": 3}, "data", ["got 3", "[data]"]),
        ({"data": "mine:data"}, "data", ["got 'mine:data'", "[data]"]),
        ({"model": {"name": 5}}, "model.name", ["got 5", "give a string"]),
        ({"model": {"name": None, "depth": 8}}, "model.name", ["missing"]),
        ({"model": {"name": "resnet18", "clases": 7}}, "model.clases", ["did you mean model.classes?"]),
        ({"model": {"factory": "mine:build"}}, "model.factory", ["model.name", "remove one"]),
        ({"model": {"name": None, "factory": "mine.build"}}, "model.factory", ["'mine.build'", '"module:function"']),
        ({"methods": {"IG": None}}, "methods", ["got {}", "at least one"]),
        ({"methods": {"IG": "igg"}}, "methods.IG", ["unknown attribution 'igg'", "did you mean 'ig'?", "Available: "]),
        ({"methods": {"M": "mine.method"}}, "methods.M", ["'mine.method'", '"module:function"']),
        ({"methods": {"IG": 7}}, "methods.IG", ["got 7", "give a name"]),
        ({"methods": {"IG": {"name": "ig", "step": 7}}}, "methods.IG.step", ["did you mean methods.IG.steps?"]),
        (
            {"methods": {"S": {"name": "gb-sg", "samples": 7}}},
            "methods.S.samples",
            ["did you mean methods.S.ig_samples?"],
        ),
        ({"methods": {"M": "mine:"}}, "methods.M.function", ["'mine:'", '"module:function"']),
        ({"methods": {"M": {"function": 3}}}, "methods.M.function", ["got 3", "string"]),
        ({"methods": {"M": {"function": "a:b", "name": "ig"}}}, "methods.M.function", ["methods.M.name", "remove one"]),
        ({"methods": {"M": {"name": "captum"}}}, "methods.M.method", ["missing", "'captum' needs it"]),
        ({"methods": {"M": {"name": "maps"}}}, "methods.M.path", ["missing", "'maps' needs it"]),
        ({"evaluation": {"fractions": [10]}}, "evaluation.fractions", ["10", "0.1"]),
        ({"evaluation": {"fractions": []}}, "evaluation.fractions", ["got []", "at least one"]),
        ({"evaluation": {"fractions": ["much"]}}, "evaluation.fractions[0]", ["got 'much'", "give a number"]),
        ({"evaluation": {"orders": ["mofr"]}}, "evaluation.orders[0]", ["'mofr' is unknown", "did you mean 'morf'?"]),
        ({"evaluation": {"orders": []}}, "evaluation.orders", ["at least one"]),
        ({"evaluation": {"imputers": "linear"}}, "evaluation.imputers", ["got 'linear'", "give a list"]),
        ({"evaluation": {"imputers": ["lineer"]}}, "evaluation.imputers[0]", ["unknown imputer", "'linear'?"]),
        ({"evaluation": {"imputers": [{"name": "linear", "noice": 1}]}}, "evaluation.imputers[0].noice", ["noise?"]),
        ({"evaluation": {"imputers": ["linear", "linear"]}}, "evaluation.imputers[1]", ["'linear'", "as = "]),
        ({"evaluation": {"imputers": [{"name": "blur", "as": 3}]}}, "evaluation.imputers[0].as", ["got 3"]),
        ({"evaluation": {"evaluators": ["oracle"]}}, "evaluation.evaluators[0]", ["'oracle' is unknown", "no-retrain"]),
        ({"evaluation": {"seed": [0]}}, "evaluation.seed", ["no such key", "did you mean evaluation.seeds?"]),
        ({"evaluation": {"seeds": [0.5]}}, "evaluation.seeds[0]", ["got 0.5", "whole number"]),
        ({"evaluation": {"seeds": [0, True]}}, "evaluation.seeds[1]", ["got True", "whole number"]),
        ({"evaluation": {"seeds": [-1]}}, "evaluation.seeds[0]", ["got -1", "at least 0"]),
        ({"evaluation": {"target": "lable"}}, "evaluation.target", ["'lable'", "did you mean 'label'?"]),
        ({"evaluation": {"units": "patches"}}, "evaluation.units.size", ["missing", "'patches' needs it"]),
        ({"evaluation": {"units": "pixel"}}, "evaluation.units", ["'pixel'", "did you mean 'pixels'"]),
        ({"evaluation": {"channel_reduction": "abs"}}, "evaluation.channel_reduction", ["abs_sum"]),
        ({"evaluation": {"until": "sure"}}, "evaluation.until", ["'sure'", "ranked, best"]),
        ({"evaluation": {"confidence": 1}}, "evaluation.confidence", ["got 1", "less than 1"]),
        ({"evaluation": {"confidence": 0.4}}, "evaluation.confidence", ["got 0.4", "at least 0.5"]),
        ({"evaluation": {"margin": -0.1}}, "evaluation.margin", ["got -0.1", "at least 0"]),
        ({"evaluation": {"margin": float("inf")}}, "evaluation.margin", ["got inf", "finite"]),
        ({"evaluation": {"copied": ["GB"]}}, "evaluation.copied", ["'GB' is unknown", "Available: IG"]),
        ({"evaluation": {"copied": ["IG"], "controls": ["random"]}}, "evaluation.copied", ['"blurred" or "inverted"']),
        ({"evaluation": {"until": "best", "controls": []}}, "evaluation.until", ["'best'", "at least two"]),
        ({"evaluation": 3}, "evaluation", ["got 3", "[evaluation]"]),
        ({"run": {"batch_size": 0}}, "run.batch_size", ["got 0", "at least 1"]),
        ({"run": {"block_size": 0}}, "run.block_size", ["got 0", "at least 1"]),
        ({"runs": {}}, "runs", ["no such key", "did you mean run?"]),
    ],
)
def test_an_error_starts_with_the_key_and_names_the_value_and_the_cure(sections, key, parts):
    message = complaint(**sections)
    assert message.startswith(f"{key}: ")
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("sections", "key", "cure"),
    [
        ({"evaluation": {"judges": ["no-retrain"]}}, "evaluation.judges", "evaluation.evaluators?"),
        ({"evaluation": {"blurred": ["IG"]}}, "evaluation.blurred", "evaluation.copied?"),
        ({"evaluation": {"controls": ["centre"]}}, "evaluation.controls[0]", "'center'?"),
        ({"evaluation": {"evaluators": ["fixed-model"]}}, "evaluation.evaluators[0]", "'no-retrain'?"),
        ({"evaluation": {"evaluators": ["retrained"]}}, "evaluation.evaluators[0]", "'retrain'?"),
        ({"evaluation": {"evaluators": ["mask-tuned"]}}, "evaluation.evaluators[0]", "'fine-tuned'?"),
        ({"run": {"batch": 8}}, "run.batch", "run.batch_size?"),
        ({"run": {"map_batch": 8}}, "run.map_batch", "run.map_batch_size?"),
        ({**TRAINING, "recipe": {"epochs": 1, "optimiser": "sgd"}}, "recipe.optimiser", "recipe.optimizer?"),
    ],
)
def test_an_old_key_or_value_leads_to_the_new_one(sections, key, cure):
    message = complaint(**sections)
    assert message.startswith(f"{key}: ")
    assert f"did you mean {cure}" in message


def test_a_misspelled_section_is_reported_as_such_and_not_as_missing():
    assert complaint(data=None, dta={"name": "digits"}).startswith("dta: no such key; did you mean data?")


@pytest.mark.parametrize(
    ("name", "evaluation"),
    [
        ("random", {}),
        ("IG blurred", {}),
        ("IG inverted", {"controls": ["inverted"]}),
        ("IG blurred", {"copied": ["IG"]}),
    ],
)
def test_a_method_cannot_have_the_name_of_a_control_or_of_a_copy(name, evaluation):
    message = complaint(methods={name: "gb"}, evaluation=evaluation)
    assert message.startswith(f"methods.{name}: ")
    assert "rename" in message


@pytest.mark.parametrize(
    ("name", "evaluation"),
    [("random", {"controls": []}), ("IG blurred", {"controls": ["inverted"]}), ("IG blurred", {"copied": ["GB"]})],
)
def test_a_name_that_no_control_has_is_free(name, evaluation):
    assert name in plan(methods={name: "gradient", "GB": "gb"}, evaluation=evaluation).methods


@pytest.mark.parametrize(
    ("sections", "key", "parts"),
    [
        ({"evaluation": {"evaluators": ["retrain"]}}, "train", ["missing", "'retrain' needs it"]),
        ({"evaluation": {"strategies": ["ROAR"]}, "train": {}}, "recipe", ["missing", "'retrain' needs it"]),
        ({"train": {"images": 5}}, "train", ["no evaluator trains"]),
        ({"recipe": {"epochs": 5}}, "recipe", ["no evaluator trains"]),
        ({"evaluation": {"strategies": ["ROAD"], "orders": ["morf"]}}, "evaluation.orders", ["strategies", "remove"]),
        ({"evaluation": {"strategies": ["RAOD"]}}, "evaluation.strategies[0]", ["'RAOD'", "did you mean 'ROAD'?"]),
        ({"evaluation": {"strategies": []}}, "evaluation.strategies", ["at least one"]),
        ({"evaluation": {"imputers": ["gain"]}}, "evaluation.imputers", ["'gain' has no weights", "[gain]"]),
        ({"gain": {"epochs": 5}}, "train", ["missing", "GAIN"]),
        ({"train": {}, "gain": {"alpha": -1}}, "gain.alpha", ["got -1"]),
        ({"train": {}, "gain": {"hint": "often"}}, "gain.hint", ["got 'often'", "give a number"]),
        ({"train": {}, "gain": {"epoch": 3}}, "gain.epoch", ["did you mean gain.epochs?"]),
        ({"train": {}, "gain": 3}, "gain", ["got 3", "[gain]"]),
        ({"training": {"name": "huge"}}, "training.name", ["'huge' is unknown", "tiny"]),
        ({"training": {}}, "training.epochs", ["missing"]),
        ({"training": {"epoch": 3}}, "training.epoch", ["did you mean training.epochs?"]),
        ({"training": {"epochs": 0}}, "training.epochs", ["got 0"]),
        ({"training": {"epochs": 1, "augment": "flop"}}, "training.augment", ["'flop'", "did you mean 'flip'?"]),
        ({"training": {"epochs": 1, "data": 3}}, "training.data", ["got 3", "[training.data]"]),
        ({"training": {"epochs": 1, "data": {"sample": 0}}}, "training.data.sample", ["got 0"]),
        ({"training": {"epochs": 1}}, "model.weights", ["missing", "[training]"]),
    ],
)
def test_errors_about_sections_that_train_name_the_key(sections, key, parts):
    message = complaint(**sections)
    assert message.startswith(f"{key}: ")
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("sections", "key", "parts"),
    [
        ({"recipe": {"name": "huge"}}, "recipe.name", ["'huge' is unknown", "tiny"]),
        ({"recipe": {"epochs": 0}}, "recipe.epochs", ["got 0"]),
        ({"recipe": {"epochs": "many"}}, "recipe.epochs", ["got 'many'", "whole number"]),
        ({"recipe": {"epoch": 3}}, "recipe.epoch", ["did you mean recipe.epochs?"]),
        ({"recipe": {"model": {"name": "resnet81"}}}, "recipe.model", ["unknown model 'resnet81'", "resnet18"]),
        ({"recipe": {"select": "best"}}, "recipe.select", ["got 'best'", "'last'"]),
        ({"recipe": {"patience": 3, "select": "last"}}, "recipe", ["patience=3", "last"]),
        ({"recipe": {"milestones": [1.5]}}, "recipe.milestones[0]", ["got 1.5", "whole number"]),
        ({"recipe": {"loss": 3}}, "recipe.loss", ["got 3", "string"]),
        ({"recipe": {"loss": "focal"}}, "recipe.loss", ["'focal'", '"module:function"']),
        ({"recipe": {"augment": "flop"}}, "recipe.augment", ["'flop'", "did you mean 'flip'?"]),
        ({"recipe": {"select": "best-on-test"}}, "recipe.select", ["'best-on-test'", "'fine-tuned'", '"last"']),
        ({"train": {"images": "all"}}, "train.images", ["got 'all'", "whole number"]),
        ({"methods": {"M": {"name": "maps", "path": "m.npy"}}}, "methods.M", ["'retrain'", "train images"]),
        (
            {"evaluation": {"evaluators": ["retrain"], "until": "ranked"}},
            "evaluation.until",
            ["'ranked'", '"no-retrain"'],
        ),
    ],
)
def test_errors_about_retraining_name_the_key(sections, key, parts):
    message = complaint(TRAINING, **sections)
    assert message.startswith(f"{key}: ")
    for part in parts:
        assert part in message


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_knows_its_folder_and_its_source(tmp_path):
    (tmp_path / "plan.toml").write_text(MINIMAL)
    read = read_plan(tmp_path / "plan.toml")
    assert (read.folder, read.text) == (tmp_path.resolve(), MINIMAL)


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(PlanError, match=r"none\.toml: cannot read"):
        read_plan(tmp_path / "none.toml")
    for broken in (b"[data\n", b"\xff"):
        (tmp_path / "broken.toml").write_bytes(broken)
        with pytest.raises(PlanError, match=r"broken\.toml: not a valid TOML file"):
            read_plan(tmp_path / "broken.toml")
    (tmp_path / "wrong.toml").write_text(MINIMAL.partition("[methods]")[0])
    with pytest.raises(PlanError, match=r"wrong\.toml: methods: missing"):
        read_plan(tmp_path / "wrong.toml")


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_the_ready_made_plans_are_valid(path):
    assert read_plan(path).counts()["points"] > 0


def test_the_ready_made_plans_are_found():
    assert len(PLANS) == 26


def test_reading_plans_imports_no_engine():
    script = "import sys, roadworthy.experiments.plans; print(*(m for m in sys.modules if 'roadworthy.exp' in m))"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    allowed = ("roadworthy.experiments.plans", "roadworthy.experiments.registry")
    assert [name for name in modules if not name.startswith(allowed)] == ["roadworthy.experiments"]
