"""The command line as a user meets it."""

import pytest
from typer.testing import CliRunner

from roadworthy import REGISTRY, __version__
from roadworthy.cli.app import app


def run(*words):
    return CliRunner().invoke(app, list(words))


def test_version_and_parts():
    assert run("--version").output.strip() == f"roadworthy {__version__}"
    listed = run("parts").output
    for family, parts in REGISTRY.items():
        assert family in listed
        for name in parts:
            assert f"  {name} " in listed


def test_every_part_has_one_line_about_it():
    for parts in REGISTRY.values():
        for name, part in parts.items():
            assert 10 < len(part.summary) < 120, name


@pytest.mark.parametrize(
    "words",
    [
        *[("demo",), ("parts",), ("data", "get"), ("plan", "check"), ("run",), ("status",), ("export",), ("merge",)],
        *[("figures",), ("compare-runs",), ("audit",), ("report",), ("imputers", "compare")],
    ],
)
def test_every_command_has_help_with_an_example(words):
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert f"roadworthy {' '.join(words)}" in result.output.replace("\n", " ")


def test_errors_are_one_line_with_the_cure_and_exit_code_1(tmp_path):
    result = run("demo", "--data", "cifar10", "--root", str(tmp_path))
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "resnet20_cifar10.safetensors is missing" in result.output.replace("\n", "")


def test_an_unknown_data_set_is_refused_with_the_names_that_exist():
    result = run("data", "get", "imagenet")
    assert result.exit_code == 2
    assert "cifar10" in result.output
