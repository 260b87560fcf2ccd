"""From a plan to items and live objects: ids follow content; what cannot be built is named."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import roadworthy as rw
from roadworthy.core.errors import DataError, PlanError, StoreError
from roadworthy.experiments.build import build, build_data, build_model, make_worker
from roadworthy.experiments.fingerprints import Fingerprints, file_fingerprints, fingerprints
from roadworthy.experiments.items import fingerprint_model
from roadworthy.experiments.plan_design import design_of
from roadworthy.experiments.plans import plan_from

MINIMAL = """
[data]
name = "cifar10"
root = "data"
[model]
name = "cifar-resnet"
[methods]
IG = "ig"
"""
PRINTS = Fingerprints("m", 50, 100, ("d0", "d1"), 30, ("t0",))
TRAINING = {
    "evaluation": {"evaluators": ["no-retrain", "retrain", "fine-tuned"], "fractions": [0.5], "controls": []},
    "train": {"images": 100},
    "recipe": {"name": "tiny"},
}
GAIN = {"evaluation": {"imputers": ["fixed", "gain"]}, "train": {"images": 100}, "gain": {"epochs": 5, "width": 16}}


def plan(base=None, **sections):
    tables = tomllib.loads(MINIMAL)
    for changes in (base or {}, sections):
        for name, values in changes.items():
            tables[name] = {**tables.get(name, {}), **values}
    return plan_from(tables)


def ids(plan, prints=PRINTS, **filters):
    """The ids of all items of a plan, by point."""
    design = design_of(plan, prints)
    return {
        point: tuple(item.id for item in design.items(point, design.blocks, {}))
        for point in design.points(design.base_methods, design.settings)
        if all(getattr(point, name) == value for name, value in filters.items())
    }


def flat(ids):
    return {id for items in ids.values() for id in items}


# ── ids follow content, not place or name ────────────────────────────────────────────────────────────────────────────


def test_another_folder_is_the_same_work():
    assert ids(plan()) == ids(plan(data={"root": "/elsewhere"}))
    weights = {"model": {"weights": "a.safetensors"}}
    assert ids(plan(weights)) == ids(plan(weights, model={"weights": "/elsewhere/b.safetensors"}))


def test_another_name_is_the_same_work():
    renamed = ids(plan(methods={"mine": "ig"}), method="mine")
    assert ids(plan(), method="IG") == {point._replace(method="IG"): items for point, items in renamed.items()}
    called = ids(plan(evaluation={"imputers": [{"name": "linear", "as": "mine"}]}))
    assert [*called.values()] == [*ids(plan()).values()]


@pytest.mark.parametrize(
    "changed",
    [
        (plan(), PRINTS._replace(data=("x", "y"))),
        (plan(), PRINTS._replace(model="x")),
        (plan(model={"depth": 32}), PRINTS),
        (plan(model={"mean": 0.4}), PRINTS),
        (plan(run={"batch_size": 7}), PRINTS),
        (plan(evaluation={"target": "prediction"}), PRINTS),
    ],
)
def test_other_data_weights_or_options_are_other_work(changed):
    assert not flat(ids(plan())) & flat(ids(*changed))


@pytest.mark.parametrize(
    "changed",
    [
        plan(methods={"IG": {"name": "ig", "steps": 7}}),
        plan(run={"map_seed": 1}),
        plan(run={"map_batch_size": 32}),
        plan(evaluation={"channel_reduction": "abs_sum"}),
    ],
)
def test_other_maps_are_other_work_but_for_the_baseline(changed):
    removed = {point for point in ids(plan(), method="IG") if point.fraction > 0}
    before, after = ids(plan()), ids(changed)
    assert all(not set(before[point]) & set(after[point]) for point in removed)
    assert ids(plan(), fraction=0.0) == ids(changed, fraction=0.0)


def test_a_training_follows_train_images_recipe_and_network():
    def trained(prints=PRINTS, **sections):
        changed = plan(TRAINING, **sections)
        tuned = {design_of(changed, prints).model_item("linear", 0).id}
        return flat(ids(changed, prints, evaluator="retrain")) | tuned

    before = trained()
    assert before == trained(train={"root": "/elsewhere"})
    assert before == trained(recipe={"epochs": 4})  # what "tiny" has anyway
    assert not before & trained(PRINTS._replace(train=("other",)))
    assert not before & trained(recipe={"epochs": 5})
    assert not before & trained(recipe={"loss": "mine:focal"})
    assert not before & trained(recipe={"augment": "flip"})
    assert not before & trained(PRINTS._replace(files={"mine:focal": "a"}), recipe={"loss": "mine:focal"})
    changed = trained(recipe={"model": {"name": "resnet18", "width": 8}})
    assert before & changed == {design_of(plan(TRAINING), PRINTS).model_item("linear", 0).id}  # from the given model


def test_evaluators_that_train_do_not_change_the_work_without_them():
    alone = plan(evaluation={"fractions": [0.5], "controls": []})
    assert ids(alone).items() <= ids(plan(TRAINING)).items()


def test_a_gain_without_weights_follows_its_images_and_recipe():
    def gain(prints=PRINTS, **sections):
        changed = plan(GAIN, **sections)
        (item,) = design_of(changed, prints).imputer_item("gain")
        points = ids(changed, prints, imputer="gain")
        return {item.id} | flat({point: items for point, items in points.items() if point.fraction > 0})

    before = gain()
    assert before == gain(train={"root": "/elsewhere"})
    assert before == gain(gain={"alpha": 100.0})  # the default
    assert not before & gain(gain={"alpha": 10.0})
    assert not before & gain(PRINTS._replace(train=("other",)))
    fixed = plan(evaluation={"imputers": ["fixed"]})
    assert ids(fixed).items() <= ids(plan(GAIN)).items()


def test_a_gain_with_weights_follows_their_content_not_their_place():
    def gain(path, fingerprint):
        changed = plan(evaluation={"imputers": [{"name": "gain", "weights": path}]})
        points = ids(changed, PRINTS._replace(files={"imputers.gain": fingerprint}))
        return flat({point: items for point, items in points.items() if point.fraction > 0})

    assert gain("a.safetensors", "x") == gain("b/a.safetensors", "x")
    assert not gain("a.safetensors", "x") & gain("a.safetensors", "y")


def test_the_weights_of_a_linear_imputer_are_numbers_in_its_id():
    def linear(weights):
        return ids(plan(evaluation={"imputers": [{"name": "linear", "weights": weights}]}), fraction=0.9)

    assert not flat(linear([0.2, 0.05])) & flat(linear([0.15, 0.1]))


def test_the_training_of_the_model_is_part_of_no_id():
    weights = {"model": {"weights": "w.safetensors"}}
    trained = plan(weights, training={"name": "tiny", "epochs": 9, "augment": "flip", "data": {"sample": 50}})
    assert ids(trained) == ids(plan(weights))


# ── the user's own code ──────────────────────────────────────────────────────────────────────────────────────────────


def project_ids(project, **sections):
    plan = project.plan(**sections)
    return ids(plan, fingerprints(plan, build(plan)))


def test_a_changed_function_is_new_work_for_its_method_alone(project):
    other = project.root / "other.py"
    other.write_text(project.mine.read_text())
    sections = {"methods": {"own": "other:brightness"}}
    before = project_ids(project, **sections)
    other.write_text(other.read_text().replace("return batch.images\n", "return -batch.images\n"))
    after = project_ids(project, **sections)
    for point in before:
        assert (before[point] == after[point]) == (point.method != "own" or point.fraction == 0)


def test_a_changed_model_is_new_work_though_its_weights_are_the_same(project):
    # The file of a model's factory was in no id.
    before, weights = project_ids(project), fingerprint_model(build(project.plan()).model)
    project.mine.write_text(project.mine.read_text().replace("images.mean(dim=1)", "images.amax(dim=1)"))
    assert fingerprint_model(build(project.plan()).model) == weights
    assert not flat(before) & flat(project_ids(project))


def test_options_of_the_users_functions_are_part_of_the_id_also_paths(project):
    project.mine.write_text(
        project.mine.read_text()
        + "\n\ndef from_file(path, power=1):\n    assert path.exists()\n    return lambda model, batch, key: "
        "batch.images ** power\n"
    )

    def own(**options):
        points = project_ids(project, methods={"own": {"function": "mine:from_file", **options}})
        return flat({point: items for point, items in points.items() if point.method == "own" and point.fraction > 0})

    for name in ("a.txt", "b.txt"):
        (project.root / name).write_text(name)
    before = own(path="a.txt")
    assert before == own(path="a.txt")
    assert not before & own(path="a.txt", power=2)
    assert not before & own(path="b.txt")
    (project.root / "a.txt").write_text("changed")
    assert not before & own(path="a.txt")


def test_the_file_beside_the_plan_is_used_as_it_is_now(project):
    # Python imports a module once: an edited file, or one of the same name beside another plan, was not seen.
    first = build(project.plan()).methods["own"]
    project.mine.write_text(project.mine.read_text().replace("return batch.images\n", "return -batch.images\n"))
    second = build(project.plan()).methods["own"]
    (batch,) = build_data(project.plan()).batches(20)
    assert torch.equal(first(None, batch, None), -second(None, batch, None))


def test_a_function_may_be_a_factory_with_options(project):
    project.mine.write_text(project.mine.read_text() + "\n\ndef power(exponent):\n    return lambda model, batch, key: "
                            "batch.images ** exponent\n")  # fmt: skip
    method = build(project.plan(methods={"own": {"function": "mine:power", "exponent": 2}})).methods["own"]
    (batch,) = build_data(project.plan()).batches(20)
    assert torch.equal(method(None, batch, None), batch.images**2)


def test_a_missing_function_is_named_with_its_key_and_file(project):
    with pytest.raises(PlanError, match=r"methods.own: .*mine.py has no 'brightnes'"):
        build(project.plan(methods={"own": "mine:brightnes"}))
    with pytest.raises(PlanError, match=r"methods.own: .*nowhere"):
        build(project.plan(methods={"own": "nowhere:method"}))


# ── live objects ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_missing_weights_are_an_error_that_names_the_cure(tmp_path):
    read = replace(plan(model={"weights": "w.safetensors"}, training={"epochs": 1}), folder=tmp_path)
    with pytest.raises(PlanError, match=r"w.safetensors does not exist yet: .*`roadworthy train`"):
        build_model(read)
    with pytest.raises(PlanError, match=r"^model: .*w.safetensors"):
        build_model(replace(read, training=None))


def test_missing_files_of_maps_and_gains_are_named(project):
    for sections, key in (
        ({"methods": {"own": {"name": "maps", "path": "none.npy"}}}, "methods.own"),
        ({"evaluation": {"imputers": [{"name": "gain", "weights": "none.safetensors"}]}}, "imputers.gain"),
    ):
        with pytest.raises(PlanError, match=f"^{key}: .*none"):
            file_fingerprints(project.plan(**sections))


def test_without_weights_every_process_builds_the_same_model_and_says_so():
    models = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        with pytest.warns(rw.errors.RandomWeightsWarning, match="cifar-resnet has no weights"):
            models.append(build_model(plan(model={"depth": 8})))
    assert fingerprint_model(models[0]) == fingerprint_model(models[1])


def test_a_sample_of_sorted_images_spans_the_classes_and_is_reproducible(tmp_path):
    for label in "abcd":
        (tmp_path / label).mkdir()
        for row in range(10):
            Image.new("RGB", (4, 4), (row, 0, 0)).save(tmp_path / label / f"{row}.png")

    def labels(**size):
        tables = {**tomllib.loads(MINIMAL), "data": {"name": "folder", "root": str(tmp_path), **size}}
        batch = next(build_data(plan_from(tables)).batches(99))
        return batch.labels.tolist(), batch.ids.tolist()

    assert labels(images=12) == ([0] * 10 + [1] * 2, list(range(12)))  # the first ones: sorted by class
    sampled, sampled_ids = labels(sample=12)
    assert len(sampled_ids) == 12
    assert set(sampled) == {0, 1, 2, 3}
    assert sampled_ids == sorted(set(sampled_ids))  # each once, in the order of the data
    assert labels(sample=12) == (sampled, sampled_ids)
    assert labels(sample=99) == labels()  # more than there are: all


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_checks_that_its_files_are_those_of_the_run(project):
    save_file({"scale": torch.tensor(40.0)}, project.root / "w.safetensors")
    plan = project.plan(model={"weights": "w.safetensors"})
    prints = fingerprints(plan, build(plan))
    design = design_of(plan, prints)
    make_worker(plan, prints).batch(design.blocks[0])
    save_file({"scale": torch.tensor(41.0)}, project.root / "w.safetensors")
    with pytest.raises(PlanError, match="weights"):
        make_worker(plan, prints)
    save_file({"scale": torch.tensor(40.0)}, project.root / "w.safetensors")
    project.mine.write_text(project.mine.read_text() + "\n")
    with pytest.raises(PlanError, match="mine:"):
        make_worker(plan, prints)


def test_a_worker_checks_that_its_images_are_those_of_the_run(project):
    plan = project.plan()
    prints = fingerprints(plan, build(plan))
    image = next(iter(sorted((project.root / "images" / "0").iterdir())))
    Image.new("RGB", (12, 12), (9, 9, 9)).save(image)
    worker, design = make_worker(plan, prints), design_of(plan, prints)
    with pytest.raises(DataError, match="block 0 of the test images"):
        worker.batch(design.blocks[0])
    worker.batch(design.blocks[1])


def test_fingerprints_survive_json():
    assert Fingerprints.from_json({**PRINTS._asdict(), "data": ["d0", "d1"], "train": ["t0"]}) == PRINTS
    with pytest.raises(StoreError, match="fingerprints"):
        Fingerprints.from_json({"modle": "m"})
    with pytest.raises(StoreError, match="2 blocks of test images, the plan makes 1"):
        design_of(plan(), PRINTS._replace(images=50))


def test_paths_of_a_plan_are_relative_to_its_folder(project, monkeypatch):
    monkeypatch.chdir(Path(project.root).parent)
    assert len(build_data(project.plan())) == 20
