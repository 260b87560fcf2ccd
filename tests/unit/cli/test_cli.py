"""The command line: help, errors, and the list of names."""

import pytest
import typer
from typer.testing import CliRunner

from roadworthy import REGISTRY, __version__
from roadworthy.cli.app import app

GROUPS = {(), ("data",), ("gain",), ("imputers",)}
COMMANDS = {
    *[("audit",), ("demo",), ("diff",), ("export",), ("figures",), ("list",), ("merge",), ("report",), ("run",)],
    *[("self-test",), ("show",), ("status",), ("train",), ("data", "download"), ("gain", "search"), ("gain", "train")],
    ("imputers", "compare"),
}


def invoke(*words):
    return CliRunner().invoke(app, list(words))


def walk(command, words=()):
    """Every group and command, by the words that call it."""
    yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from walk(child, (*words, name))


TREE = dict(walk(typer.main.get_command(app)))


def test_groups_and_commands_are_the_documented_ones():
    assert {words for words, command in TREE.items() if hasattr(command, "commands")} == GROUPS
    assert TREE.keys() - GROUPS == COMMANDS


@pytest.mark.parametrize("words", sorted(TREE), ids=lambda words: " ".join(words) or "roadworthy")
def test_every_command_has_help_with_an_example(words):
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    shown = " ".join(result.output.replace("│", " ").split())
    assert f"roadworthy {' '.join(words)}" in shown.partition("Example: ")[2]


@pytest.mark.parametrize("words", sorted(COMMANDS), ids=" ".join)
def test_every_argument_and_option_is_explained(words):
    for parameter in TREE[words].params:
        text = parameter.help if parameter.name != "help" else "Show this message."
        assert text, parameter.name
        assert text[0].isupper(), f"{parameter.name}: {text}"
        assert text[-1] == ".", f"{parameter.name}: {text}"


def test_version():
    assert invoke("--version").output.strip() == f"roadworthy {__version__}"


def test_list_shows_every_name_of_the_registry():
    listed = invoke("list").output
    for family, entries in REGISTRY.items():
        assert family in listed
        for name in entries:
            assert f"  {name} " in listed


def test_every_entry_of_the_registry_has_a_summary_of_one_line():
    for entries in REGISTRY.values():
        for name, entry in entries.items():
            assert 10 < len(entry.summary) < 120, name


def test_an_error_is_one_line_with_the_cure_and_exit_code_1(tmp_path):
    result = invoke("show", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "is not a run directory: make one with `roadworthy run PLAN" in " ".join(result.output.split())


def test_weights_that_come_with_the_package_are_copied_without_a_network(tmp_path):
    result = invoke("data", "download", "resnet20-cifar10", "--root", str(tmp_path))
    assert result.exit_code == 0
    assert (tmp_path / "weights" / "resnet20_cifar10.safetensors").stat().st_size == 1_092_520
    assert "is ready" in result.output


def test_commands_are_grouped_in_panels_that_fit_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = invoke("--help").output.splitlines()
    titles = [line.strip("╭─╮ ") for line in lines if line.startswith("╭")]
    assert titles == ["Options", "First steps", "Run an experiment", "Read its results", "Networks and imputers"]
    assert max(map(len, lines)) <= 80


def test_an_unknown_data_set_is_refused_with_the_names_that_exist():
    result = invoke("data", "download", "imagenet")
    assert result.exit_code == 2
    assert "cifar10" in result.output
