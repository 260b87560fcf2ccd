"""Plans: what they mean, and complaints that name the key and the cure."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from roadworthy.core.errors import PlanError
from roadworthy.core.masks import FRACTIONS
from roadworthy.experiments.build import build_data, build_model
from roadworthy.experiments.items import (
    Fingerprints,
    canonical,
    imputer_items,
    map_items,
    model_items,
    train_map_items,
    trial_items,
)
from roadworthy.experiments.plans.reading import plan_from, read_plan

MINIMAL = """
[data]
name = "cifar10"
root = "data"
[model]
name = "cifar-resnet"
[methods]
IG = "ig"
"""
PRINTS = Fingerprints("d", "m")


def plan(text=MINIMAL, **sections):
    tables = tomllib.loads(text)
    for name, values in sections.items():
        merged = {**tables.get(name, {}), **values}
        tables[name] = {key: value for key, value in merged.items() if value is not None}
    return plan_from(tables)


def test_a_minimal_plan_has_sensible_defaults():
    read = plan()
    assert read.orders == ("morf", "lerf")
    assert read.fractions == FRACTIONS
    assert list(read.imputers) == ["linear"]
    # 1 method and 3 controls; times 2 orders, 1 imputer, 1 evaluator, 1 seed, 10 fractions
    assert read.counts() == {"maps": 4, "points": 80, "trainings": 0}


def test_the_product_of_the_axes_is_the_work():
    read = plan(evaluation={"imputers": ["fixed", "linear"], "fractions": [0.5], "seeds": [0, 1], "blurred": ["IG"]})
    points = [point for point, _ in trial_items(read, PRINTS)]
    assert (
        len(points) == len(set(points)) == 5 * 2 * 2 * 1 * 2 * 2
    )  # maps, orders, imputers, evaluators, seeds, fractions 0, .5
    assert "IG blurred" in map_items(read, PRINTS)


def test_ids_follow_content_not_place_or_name():
    here = {point: item.id for point, item in trial_items(plan(), PRINTS)}
    moved = {point: item.id for point, item in trial_items(plan(data={"root": "/elsewhere"}), PRINTS)}
    assert here == moved
    changed = [
        trial_items(plan(), Fingerprints("other", "m")),
        trial_items(plan(), Fingerprints("d", "other")),
        trial_items(plan(methods={"IG": {"name": "ig", "steps": 7}}), PRINTS),
        trial_items(plan(run={"batch": 7}), PRINTS),
        trial_items(plan(run={"map_seed": 1}), PRINTS),
    ]
    for other in changed:
        ids = {point: item.id for point, item in other}
        assert all(ids[point] != here[point] for point in here if point.method == "IG")


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical({"a": 1, "b": {"d": 2.5, "c": [1]}}) == canonical({"b": {"c": [1], "d": 2.5}, "a": 1})


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"data": {"name": "cifar01"}}, "data: no part 'cifar01' .* did you mean 'cifar10'"),
        ({"model": {"name": 5}}, "model = .*give a name"),
        ({"methods": {"IG": "igg"}}, "methods.IG: no part 'igg' .*did you mean 'ig'"),
        ({"methods": {"IG": {"name": "ig", "step": 7}}}, "methods.IG.step: no such key; did you mean methods.IG.steps"),
        ({"methods": {"S": {"name": "gb-sg", "samples": 7}}}, "did you mean methods.S.ig_samples|methods.S.gb_samples"),
        ({"data": {"spilt": "test"}}, "data.spilt: no such key; did you mean data.split"),
        ({"model": {"name": "resnet18", "clases": 7}}, "model.clases: no such key; did you mean model.classes"),
        ({"evaluation": {"imputers": [{"name": "linear", "noice": 1}]}}, r"imputers\[0\].noice: .*noise"),
        ({"methods": {"random": "ig"}}, "methods.random: a control has that name"),
        ({"evaluation": {"fractions": [10]}}, "evaluation.fractions: fraction 10.0"),
        ({"evaluation": {"fractions": []}}, "evaluation.fractions = .*at least one"),
        ({"evaluation": {"fractions": ["much"]}}, "evaluation.fractions"),
        ({"evaluation": {"orders": ["mofr"]}}, "evaluation.orders: 'mofr' is unknown; did you mean 'morf'"),
        ({"evaluation": {"imputers": "linear"}}, "evaluation.imputers = 'linear': give a list"),
        ({"evaluation": {"imputers": ["linear", "linear"]}}, "evaluation.imputers: two have the same name"),
        ({"evaluation": {"blurred": ["GB"]}}, "evaluation.blurred: 'GB' is unknown"),
        ({"evaluation": {"evaluators": ["oracle"]}}, "evaluation.evaluators: 'oracle' is unknown"),
        ({"evaluation": {"seed": [0]}}, "evaluation.seed: no such key; did you mean evaluation.seeds"),
        ({"evaluation": {"seeds": [0.5]}}, r"evaluation.seeds\[0\] = 0.5"),
        ({"run": {"batch": 0}}, "run.batch = 0: give a whole number of at least 1"),
        ({"runs": {}}, "runs: no such key; did you mean run"),
    ],
)
def test_complaints_name_the_key_and_the_cure(sections, complaint):
    with pytest.raises(PlanError, match=complaint):
        plan(**sections)


def test_missing_sections_and_files_are_named(tmp_path):
    with pytest.raises(PlanError, match=r"\[methods\] is missing"):
        plan(MINIMAL.partition("[methods]")[0])
    with pytest.raises(PlanError, match=r"none.toml: no plan could be read"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("[data\n")
    with pytest.raises(PlanError, match=r"broken.toml is no TOML"):
        read_plan(tmp_path / "broken.toml")


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "plans").glob("*.toml")), ids=lambda path: path.name
)
def test_the_ready_plans_are_right(path):
    assert read_plan(path).counts()["points"] > 0


# ── evaluators that train ────────────────────────────────────────────────────────────────────────────────────────────────

TRAINING = {
    "evaluation": {"evaluators": ["no-retrain", "retrain", "fine-tuned"], "fractions": [0.5], "seeds": [0, 1]},
    "train": {"images": 100},
    "recipe": {"name": "tiny"},
}


def with_training(**sections):
    return plan(**{name: {**TRAINING.get(name, {}), **sections.get(name, {})} for name in {*TRAINING, *sections}})


def test_trials_of_the_fixed_model_keep_the_ids_that_they_had_before_other_judges_came():
    # As computed by the version before: stores that were filled then stay filled.
    point, item = next(trial_items(plan(), PRINTS))
    assert (point.method, point.fraction, item.id) == ("IG", 0.0, "f3cea66ec64bdaf7887054ae74971a57")
    assert map_items(plan(), PRINTS)["IG"].id == "ce5130099c7db62ee2d0f48512784ab3"
    both = dict(trial_items(with_training(), PRINTS))
    alone = dict(trial_items(plan(evaluation={"fractions": [0.5], "seeds": [0, 1]}), PRINTS))
    assert {point: both[point].id for point in alone} == {point: item.id for point, item in alone.items()}


def test_trainings_are_counted_and_the_one_without_removal_is_shared():
    read = with_training()
    # 4 maps on two splits; 4 × 2 orders × 3 evaluators × 2 seeds × 2 fractions; retrained: 4 × 2 × 2 at .5 and one per seed
    # without removal; tuned: one per seed
    assert read.counts() == {"maps": 8, "points": 96, "trainings": 16 + 2 + 2}
    retrained = {point: item.id for point, item in trial_items(read, PRINTS) if point.evaluator == "retrain"}
    assert len(retrained) == 32
    assert len(set(retrained.values())) == 16 + 2
    assert len(model_items(read, PRINTS)) == 2
    assert set(train_map_items(read, PRINTS)) == set(read.maps)


def test_a_training_is_told_by_train_images_recipe_and_network():
    def ids(prints=PRINTS, **sections):
        return {
            item.id for point, item in trial_items(with_training(**sections), prints) if point.evaluator == "retrain"
        } | {item.id for item in model_items(with_training(**sections), prints).values()}

    here = ids()
    assert here == ids(train={"root": "/elsewhere"})
    assert here == ids(recipe={"epochs": 4})  # what "tiny" says anyway
    assert not here & ids(Fingerprints("d", "m", "other"))
    assert not here & ids(recipe={"epochs": 5})
    assert not here & ids(recipe={"loss": "mine:focal"})
    assert not here & ids(recipe={"augment": "flip"})
    changed = ids(recipe={"model": {"name": "resnet18", "width": 8}})
    assert len(here & changed) == 2  # the tuned models start from the given one


def test_the_train_split_is_the_data_with_what_train_says():
    assert with_training().train == {"name": "cifar10", "root": "data", "split": "train", "images": 100}
    other = {"name": "digits", "split": "train"}
    assert with_training(train=other).train == {**other, "images": 100}
    assert with_training(recipe={"milestones": [2], "schedule": "step"}).recipe.milestones == (2,)


def test_strategies_of_the_literature_have_their_names():
    read = with_training(evaluation={"evaluators": None, "strategies": ["ROAD", "ROAR", "KAR"]})
    assert read.settings == (
        ("morf", "linear", "no-retrain"),
        ("lerf", "linear", "no-retrain"),
        ("morf", "fixed", "retrain"),
        ("lerf", "fixed", "retrain"),
    )
    assert read.counts()["points"] == 4 * 4 * 2 * 2  # maps, settings, seeds, fractions
    alone = plan(evaluation={"strategies": ["ROAD"]})
    assert {point: i.id for point, i in trial_items(alone, PRINTS)} == {
        point: i.id for point, i in trial_items(plan(), PRINTS)
    }


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"evaluation": {"evaluators": ["retrain"]}}, r"\[train\] is missing: the evaluator 'retrain' needs it"),
        ({"evaluation": {"strategies": ["ROAR"]}, "train": {}}, r"\[recipe\] is missing: the evaluator 'retrain'"),
        ({"train": {"images": 5}}, r"\[train\]: no evaluator trains here"),
        ({"recipe": {"epochs": 5}}, r"\[recipe\]: no evaluator trains here"),
        ({"evaluation": {"strategies": ["ROAD"], "orders": ["morf"]}}, "evaluation.orders: the strategies say that"),
        ({"evaluation": {"strategies": ["RAOD"]}}, "evaluation.strategies: 'RAOD' is unknown; did you mean 'ROAD'"),
        ({"evaluation": {"strategies": []}}, "evaluation.strategies = .*at least one"),
    ],
)
def test_complaints_about_training_name_the_key(sections, complaint):
    with pytest.raises(PlanError, match=complaint):
        plan(**sections)


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"recipe": {"name": "huge"}}, "recipe.name: 'huge' is unknown"),
        ({"recipe": {"epochs": 0}}, "recipe: epochs=0"),
        ({"recipe": {"epochs": "many"}}, "recipe: "),
        ({"recipe": {"epoch": 3}}, "recipe.epoch: no such key; did you mean recipe.epochs"),
        ({"recipe": {"model": {"name": "resnet81"}}}, "recipe.model: no part 'resnet81'"),
        ({"recipe": {"select": "best"}}, "recipe: select='best'"),
        ({"recipe": {"loss": 3}}, "recipe.loss = 3: name a function"),
        ({"recipe": {"augment": "flop"}}, "recipe.augment: 'flop' is unknown; did you mean 'flip'"),
        (
            {"recipe": {"select": "best-on-test"}},
            "recipe.select = 'best-on-test': a fine-tuned model evaluators all points",
        ),
        ({"train": {"images": "all"}}, "train.images = 'all': give a whole number"),
    ],
)
def test_complaints_about_a_recipe_name_the_key(sections, complaint):
    with pytest.raises(PlanError, match=complaint):
        with_training(**sections)


GAIN = {"evaluation": {"imputers": ["fixed", "gain"]}, "train": {"images": 100}, "gain": {"epochs": 5, "width": 16}}


def with_gain(**sections):
    return plan(**{name: {**GAIN.get(name, {}), **sections.get(name, {})} for name in {*GAIN, *sections}})


def test_a_gain_without_weights_is_one_training_told_by_its_images_and_recipe():
    read = with_gain()
    assert read.trained_imputers == ("gain",)
    assert read.counts() == {"maps": 4, "points": 4 * 2 * 2 * 10, "trainings": 1}  # no maps of the train split
    assert not train_map_items(read, PRINTS)

    def ids(read, prints=PRINTS):
        return {item.id for item in imputer_items(read, prints).values()} | {
            item.id for point, item in trial_items(read, prints) if point.imputer == "gain"
        }

    here = ids(read)
    assert here == ids(with_gain(train={"root": "/elsewhere"}))
    assert here == ids(with_gain(gain={"alpha": 100.0}))  # the default
    assert not here & ids(with_gain(gain={"alpha": 10.0}))
    assert not here & ids(read, PRINTS._replace(train="other"))
    fixed = {point: item.id for point, item in trial_items(plan(evaluation={"imputers": ["fixed"]}), PRINTS)}
    both = {point: item.id for point, item in trial_items(read, PRINTS)}
    assert fixed.items() <= both.items()


def test_a_gain_with_weights_is_told_by_their_content_not_by_their_place():
    def ids(path, fingerprint):
        read = plan(evaluation={"imputers": [{"name": "gain", "weights": path}]})
        assert read.trained_imputers == ()
        return {item.id for _, item in trial_items(read, PRINTS._replace(imputers={"gain": fingerprint}))}

    assert ids("a.safetensors", "x") == ids("b/a.safetensors", "x")
    linear = plan(evaluation={"imputers": [{"name": "linear", "weights": [0.2, 0.05]}]})
    assert linear.imputer_files == {}  # weights of neighbors: numbers, not a file
    assert not ids("a.safetensors", "x") & ids("a.safetensors", "y")


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"evaluation": {"imputers": ["gain"]}}, "evaluation.imputers: 'gain' has no weights: name a file"),
        ({"gain": {"epochs": 5}}, r"\[train\] is missing: a GAIN learns from images of its own"),
        ({"train": {}, "gain": {"alpha": -1}}, "gain: alpha=-1: the weight of reconstruction"),
        ({"train": {}, "gain": {"hint": 3}}, "gain: hint=3"),
        ({"train": {}, "gain": {"hint": "often"}}, "gain: "),
        ({"train": {}, "gain": {"epoch": 3}}, "gain.epoch: no such key; did you mean gain.epochs"),
    ],
)
def test_complaints_about_a_gain_name_the_key(sections, complaint):
    with pytest.raises(PlanError, match=complaint):
        plan(**sections)


# ── a model that is yet to be trained, and parts of a data set ───────────────────────────────────────────────────────


def test_training_is_a_recipe_with_the_train_split_and_belongs_to_no_id():
    there = {"weights": "w.safetensors"}
    training = {"name": "tiny", "epochs": 9, "augment": "flip", "data": {"train_batches": [1], "sample": 50}}
    read = plan(model=there, training=training)
    assert (read.training.recipe.epochs, read.training.recipe.batch_size) == (9, 32)  # "tiny" says 32
    assert read.training.augment == "flip"
    here = {"name": "cifar10", "root": "data", "split": "train"}
    assert read.training.data == {**here, "train_batches": [1], "sample": 50}
    fewer = plan(model=there, data={"images": 7}, training={"epochs": 1})
    assert fewer.training.data == here  # [data] images are not its own
    assert {item.id for _, item in trial_items(read, PRINTS)} == {item.id for _, item in trial_items(plan(), PRINTS)}
    assert read.counts()["trainings"] == 0  # `roadworthy train` does it, not a run


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"training": {"name": "huge"}}, "training.name: 'huge' is unknown"),
        ({"training": {"epoch": 3}}, "training.epoch: no such key; did you mean training.epochs"),
        ({"training": {"epochs": 0}}, "training: epochs=0"),
        ({"training": {"epochs": 1, "augment": "flop"}}, "training.augment: 'flop' is unknown; did you mean 'flip'"),
        ({"training": {"epochs": 1, "data": 3}}, r"training.data = 3: write it as a table, \[training.data\]"),
        ({"training": {"epochs": 1}}, r"\[training\]: say in \[model\] where its weights belong"),
        ({"data": {"sample": 0}}, "data.sample = 0: give a whole number of at least 1"),
        ({"data": {"sample": 5, "images": 5}}, "data: images takes the first so many, sample draws so many at random"),
    ],
)
def test_complaints_about_training_and_sizes_name_the_key(sections, complaint):
    with pytest.raises(PlanError, match=complaint):
        plan(**sections)


def test_missing_weights_are_an_error_that_names_the_cure(tmp_path):
    read = replace(plan(model={"weights": "w.safetensors"}, training={"epochs": 1}), folder=tmp_path)
    with pytest.raises(PlanError, match=r"there is no .*w.safetensors yet: make it with `roadworthy train`"):
        build_model(read)


def test_a_sample_of_a_sorted_set_spans_the_classes_and_is_the_same_every_time(tmp_path):
    for label in "abcd":
        (tmp_path / label).mkdir()
        for row in range(10):
            Image.new("RGB", (4, 4), (row, 0, 0)).save(tmp_path / label / f"{row}.png")

    def labels(**size):
        data = build_data(
            plan_from({**tomllib.loads(MINIMAL), "data": {"name": "folder", "root": str(tmp_path), **size}})
        )
        batch = next(data.batches(99))
        return batch.labels.tolist(), batch.ids.tolist()

    assert labels(images=12) == ([0] * 10 + [1] * 2, list(range(12)))  # the first ones: sorted by class
    found, ids = labels(sample=12)
    assert len(ids) == 12
    assert set(found) == {0, 1, 2, 3}
    assert ids == sorted(set(ids))  # each once, in the set's own order
    assert labels(sample=12) == (found, ids)
    assert labels(sample=99) == labels()  # more than there are: all
