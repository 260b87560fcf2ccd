"""`roadworthy demo`: which data, what is missing, and the page in the browser."""

import sys

import pytest
from typer.testing import CliRunner

from roadworthy import attributions
from roadworthy.cli.app import app
from roadworthy.experiments import demo as demos


def invoke(*words):
    return CliRunner().invoke(app, ["demo", *map(str, words)])


@pytest.fixture
def quick(monkeypatch):
    """One method, that of a moment."""
    monkeypatch.setattr(demos, "paper_methods", lambda **options: {"gradient": attributions.Gradient()})
    monkeypatch.setattr(demos, "FEW_FRACTIONS", (0.5,))


@pytest.mark.parametrize(("found", "shown"), [(True, ""), (False, "No browser was found")])
def test_the_page_is_opened_if_asked_for(monkeypatch, quick, tmp_path, found, shown):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or found)
    monkeypatch.setitem(sys.modules, "mlxtend", None)  # not needed
    result = invoke("--images", 2, "--out", tmp_path / "page.html", "--open")
    assert result.exit_code == 0, result.output
    assert opened == [(tmp_path / "page.html").as_uri()]
    assert shown in result.output


def test_the_page_is_not_opened_otherwise(monkeypatch, quick, tmp_path):
    monkeypatch.setattr("webbrowser.open", lambda address: pytest.fail("opened"))
    assert invoke("--images", 2, "--out", tmp_path / "page.html").exit_code == 0


@pytest.mark.parametrize(("flags", "tested"), [((), True), (("--no-self-test",), False)])
def test_whether_the_benchmark_ranks_right_is_tested_unless_it_is_not_wanted(quick, tmp_path, flags, tested):
    result = invoke("--images", 4, "--out", tmp_path / "page.html", *flags)
    assert result.exit_code == 0, result.output
    assert ("Self-test" in result.output) == tested
    assert ('id="self-test"' in (tmp_path / "page.html").read_text()) == tested


def test_a_page_that_cannot_be_written_is_refused_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr("roadworthy.experiments.compare.compare", lambda *_, **__: pytest.fail("worked"))
    assert invoke("--out", tmp_path).exit_code == 1


def test_a_missing_cifar10_says_how_to_get_it(tmp_path):
    result = invoke("--data", "cifar10", "--root", tmp_path)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "roadworthy data download cifar10 --root" in " ".join(result.output.split())


def test_the_demo_takes_the_whole_sample_or_fewer_images():
    assert len(demos.sample_demo().data) == 200
    assert demos.sample_demo(24).data.ids.tolist() == demos.sample_demo().data.ids[:24].tolist()
