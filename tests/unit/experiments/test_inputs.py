"""What a model shows of its inputs and outputs: in facts, ids and every process."""

import numpy as np
import pytest

import roadworthy as rw
from roadworthy.experiments.build import build
from roadworthy.experiments.fingerprints import Fingerprints, fingerprints
from roadworthy.experiments.plan_design import design_of

IG = {"methods": {"IG": {"name": "ig", "steps": 2}, "SG": {"name": "ig-sg", "steps": 2, "ig_samples": 2}}}
NORMALIZED = {"model": {"mean": 0.4, "std": 0.3}}
SOFTMAX = """

class Softmax(Quadrants):
    def forward(self, images):
        return super().forward(images).softmax(dim=1)
"""


def design(plan):
    return design_of(plan, fingerprints(plan, build(plan)))


def map_ids(found):
    return {name: found.map_item(name, found.blocks[0]).id for name in found.base_methods}


def without(prints, *fields):
    """As a manifest was written before these fields existed."""
    return Fingerprints.from_json({name: value for name, value in prints._asdict().items() if name not in fields})


def test_ids_of_a_normalized_model_are_those_of_a_plan_that_knows_no_baseline(project):
    plan = project.plan(**IG, **NORMALIZED)
    prints = fingerprints(plan, build(plan))
    assert map_ids(design_of(plan, prints)) == map_ids(design_of(plan, without(prints, "baselines", "outputs")))


def test_methods_whose_baseline_became_gray_have_new_ids_and_the_others_keep_theirs(project):
    plan = project.plan(**IG)
    prints = fingerprints(plan, build(plan))
    now, before = (map_ids(design_of(plan, p)) for p in (prints, without(prints, "baselines", "outputs")))
    assert {name for name in now if now[name] != before[name]} == {"IG", "SG"}  # not G, own, random


def test_another_baseline_is_another_item(project):
    ids = [
        map_ids(design(project.plan(methods={"IG": {"name": "ig", "steps": 2, "baseline": baseline}}, **NORMALIZED)))[
            "IG"
        ]
        for baseline in ("black", "blur", 0.5, [0.1, 0.2, 0.3])
    ]
    assert len(set(ids)) == 4


def test_a_wrong_baseline_in_a_plan_is_an_error_that_names_the_method(project):
    plan = project.plan(methods={"IG": {"name": "ig", "baseline": "white"}})
    with pytest.raises(rw.errors.PlanError, match=r"methods\.IG: baseline='white'"):
        build(plan)


GRAY = "gray .5 (the model shows no normalization)"
BLACK = {"methods": {"IG": {"name": "ig", "steps": 2, "baseline": "black"}}}


@pytest.mark.parametrize(
    ("sections", "text"),
    [(NORMALIZED, "normalization mean"), ({}, GRAY), (BLACK, f"black: IG; {GRAY}: SG")],
    ids=["mean", "gray", "two"],
)
def test_both_fronts_show_the_baseline_in_use(project, sections, text):
    methods = {**IG["methods"], **sections.get("methods", {})}
    plan = project.write_plan(**{**sections, "methods": {**methods, "own": None, "G": None}})
    comparison = rw.run(project.path, store=project.store, progress=False)
    assert comparison.results.about["Baseline"] == text
    experiment = build(plan)
    compared = rw.compare(
        experiment.model, experiment.data, {name: experiment.methods[name] for name in IG["methods"]}, fractions=(0.5,),
        controls=(), progress=False,
    )  # fmt: skip
    assert compared.results.about["Baseline"] == text
    assert text in compared.report(project.root / "page.html").read_text()


def test_methods_without_a_baseline_show_none(project):
    project.write_plan()
    assert "Baseline" not in rw.run(project.path, store=project.store, progress=False).results.about


def test_every_process_takes_probabilities_as_they_are(project):
    project.mine.write_text(project.mine.read_text() + SOFTMAX)
    probability = {}
    for factory, jobs in (("mine:Quadrants", 1), ("mine:Softmax", 1), ("mine:Softmax", 2)):
        project.write_plan(model={"factory": factory}, methods={"G": None}, evaluation={"controls": []})
        store = project.root / f"{factory[5:]} {jobs}"
        if factory == "mine:Softmax":
            with pytest.warns(rw.errors.NotLogitsWarning):
                comparison = rw.run(project.path, store=store, jobs=jobs, progress=False)
        else:
            comparison = rw.run(project.path, store=store, jobs=jobs, progress=False)
        probability[factory, jobs] = np.concatenate([p.probability for p in comparison.predictions.values()])
    expected, *others = probability.values()
    for other in others:
        assert np.allclose(other, expected, atol=1e-6)


def test_a_model_that_returns_probabilities_has_other_ids_than_before(project):
    project.mine.write_text(project.mine.read_text() + SOFTMAX)
    plan = project.plan(model={"factory": "mine:Softmax"})
    prints = fingerprints(plan, build(plan))
    assert prints.outputs == "probabilities"
    now, before = (design_of(plan, p) for p in (prints, without(prints, "outputs")))
    assert now.baseline(now.blocks[0]).id != before.baseline(before.blocks[0]).id
