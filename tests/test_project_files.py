"""The files of a public project: workflows, templates, hooks and hosting are valid, and name what exists."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
FILES = [*WORKFLOWS, *TEMPLATES, ROOT / ".pre-commit-config.yaml", ROOT / ".readthedocs.yaml", ROOT / "CITATION.cff"]


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


def commands():
    """Shell commands of workflows and of the hosting."""
    lines = [line for path in WORKFLOWS for step in steps(path) for line in step.get("run", "").splitlines()]
    return [*lines, *read(ROOT / ".readthedocs.yaml")["build"]["commands"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_file_is_a_valid_mapping(path):
    assert isinstance(read(path), dict)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_triggers_few_rights_and_time_limits(workflow):
    content = read(workflow)
    assert content[True], "`on:` is read as the boolean by YAML 1.1"
    assert content["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 60 for job in content["jobs"].values())


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_major_version(workflow):
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@(?:release/)?v\d+", name)] == []


def test_make_targets_of_workflows_and_hosting_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([\w./-]+):", makefile, flags=re.MULTILINE)
    named = [word for line in commands() for word in re.findall(r"^make ([\w./-]+)", line)]
    assert {"check", "docs", "wheel-demo"} <= set(named) <= set(targets)


def test_every_supported_python_is_checked_and_declared():
    (matrix,) = [
        job["strategy"]["matrix"]["python"] for job in read(WORKFLOWS[0])["jobs"].values() if "strategy" in job
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [text.rpartition(" ")[2] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert matrix == declared
    assert project["requires-python"].startswith(f">={matrix[0]}")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_an_issue_template_has_what_the_forms_require(path):
    form = read(path)
    assert form["name"]
    assert form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(field["type"] in ("textarea", "input") and field["attributes"]["label"] for field in form["body"])


def test_the_hooks_use_the_linter_that_is_pinned():
    (hook,) = [repo for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] if "ruff" in repo["repo"]]
    assert f"ruff=={hook['rev'].removeprefix('v')}" in (ROOT / "constraints.txt").read_text().split()


def test_the_citation_has_the_version_of_the_package():
    import roadworthy

    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == roadworthy.__version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
