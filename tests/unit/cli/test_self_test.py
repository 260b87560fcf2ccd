"""`roadworthy self-test`."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from roadworthy.cli.app import app
from roadworthy.core.errors import InputError
from roadworthy.experiments.self_test import truth_test

FEW = ("--world", "gate", "--world", "absence", "--benchmark", "ROAD", "--benchmark", "fixed", "--images", 8)


def invoke(*words):
    return CliRunner().invoke(app, ["self-test", *map(str, words)])


def test_it_shows_a_table_per_world_and_writes_them(tmp_path):
    result = invoke(*FEW, "--draws", 2, "--out", tmp_path / "table.csv")
    assert result.exit_code == 0, result.output
    assert "gate: exact > blurred > noisy > ungated > very noisy > constant > inverted" in result.output
    assert result.output.count("whole order, %") == 3  # two worlds and all
    assert "all worlds: clearly better than ROAD: " in result.output
    assert all(len(line) <= 80 for line in result.output.splitlines() if "[" in line)
    table = pd.read_csv(tmp_path / "table.csv")
    assert table["world"].unique().tolist() == ["gate", "absence", "all worlds"]
    assert set(table["draws"]) == {2}


def test_quick_leaves_out_what_trains_for_every_point(monkeypatch):
    seen = {}
    stopped = InputError("seen")

    def run(*_, **options):
        seen.update(options)
        raise stopped

    monkeypatch.setattr(truth_test, "truth_test", run)
    assert invoke("--quick", "--draws", 100).exit_code == 1
    assert (seen["draws"], seen["trained_draws"]) == (5, 0)


def test_a_table_that_cannot_be_written_is_refused_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr(truth_test, "truth_test", lambda *_, **__: pytest.fail("worked"))
    assert invoke(*FEW, "--out", tmp_path / "table.xlsx").exit_code == 1


def test_its_help_has_an_example():
    assert "roadworthy self-test --quick" in " ".join(invoke("--help").output.split())
