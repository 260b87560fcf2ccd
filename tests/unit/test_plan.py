"""Plans: what they mean, and complaints that name the key and the cure."""

import tomllib
from pathlib import Path

import pytest

from roadworthy.errors import PlanError
from roadworthy.items import Fingerprints, canonical, map_items, trial_items
from roadworthy.plan import plan_from, read_plan
from roadworthy.removal import FRACTIONS

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
        tables[name] = {**tables.get(name, {}), **values}
    return plan_from(tables)


def test_a_minimal_plan_has_sensible_defaults():
    read = plan()
    assert read.orders == ("morf", "lerf")
    assert read.fractions == FRACTIONS
    assert list(read.imputers) == ["linear"]
    # 1 method and 3 controls; times 2 orders, 1 imputer, 1 judge, 1 seed, 10 fractions
    assert read.counts() == {"maps": 4, "dots": 80, "trainings": 0}


def test_the_product_of_the_axes_is_the_work():
    read = plan(evaluation={"imputers": ["fixed", "linear"], "fractions": [0.5], "seeds": [0, 1], "blurred": ["IG"]})
    dots = [dot for dot, _ in trial_items(read, PRINTS)]
    assert (
        len(dots) == len(set(dots)) == 5 * 2 * 2 * 1 * 2 * 2
    )  # maps, orders, imputers, judges, seeds, fractions 0, .5
    assert "IG blurred" in map_items(read, PRINTS)


def test_ids_follow_content_not_place_or_name():
    here = {dot: item.id for dot, item in trial_items(plan(), PRINTS)}
    moved = {dot: item.id for dot, item in trial_items(plan(data={"root": "/elsewhere"}), PRINTS)}
    assert here == moved
    changed = [
        trial_items(plan(), Fingerprints("other", "m")),
        trial_items(plan(), Fingerprints("d", "other")),
        trial_items(plan(methods={"IG": {"name": "ig", "steps": 7}}), PRINTS),
        trial_items(plan(run={"batch": 7}), PRINTS),
        trial_items(plan(run={"map_seed": 1}), PRINTS),
    ]
    for other in changed:
        ids = {dot: item.id for dot, item in other}
        assert all(ids[dot] != here[dot] for dot in here if dot.method == "IG")


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert canonical({"a": 1, "b": {"d": 2.5, "c": [1]}}) == canonical({"b": {"c": [1], "d": 2.5}, "a": 1})


@pytest.mark.parametrize(
    ("sections", "complaint"),
    [
        ({"data": {"name": "cifar01"}}, "data: no part 'cifar01' .* did you mean 'cifar10'"),
        ({"model": {"name": 5}}, "model = .*give a name"),
        ({"methods": {"IG": "igg"}}, "methods.IG: no part 'igg' .*did you mean 'ig'"),
        ({"methods": {"random": "ig"}}, "methods.random: a control has that name"),
        ({"evaluation": {"fractions": [10]}}, "evaluation.fractions: fraction 10.0"),
        ({"evaluation": {"fractions": []}}, "evaluation.fractions = .*at least one"),
        ({"evaluation": {"fractions": ["much"]}}, "evaluation.fractions"),
        ({"evaluation": {"orders": ["mofr"]}}, "evaluation.orders: 'mofr' is unknown; did you mean 'morf'"),
        ({"evaluation": {"imputers": "linear"}}, "evaluation.imputers = 'linear': give a list"),
        ({"evaluation": {"imputers": ["linear", "linear"]}}, "evaluation.imputers: two have the same name"),
        ({"evaluation": {"blurred": ["GB"]}}, "evaluation.blurred: 'GB' is unknown"),
        ({"evaluation": {"judges": ["oracle"]}}, "evaluation.judges: 'oracle' is unknown"),
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
    assert read_plan(path).counts()["dots"] > 0
