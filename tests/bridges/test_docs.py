"""The page about other libraries is true: its table, its notebooks and its examples."""

import os
import re
import warnings
from importlib.metadata import PackageNotFoundError, version

import matplotlib
import pytest

import roadworthy as rw
import worlds
from libraries import library
from table import NOTEBOOKS, PAGE, about, cells, glue, pinned, written

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the libraries


def test_the_table_has_not_drifted():
    assert PAGE.read_text() == written(PAGE.read_text()), "run: make docs"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_version_in_the_table_is_the_one_that_runs_here(notebook):
    package = about(notebook)["package"]
    try:
        installed = version(package)
    except PackageNotFoundError:
        if os.environ.get("ROADWORTHY_BRIDGES"):
            raise
        pytest.skip(f"{package} is not installed: make .venv/bridges")
    if os.environ.get("ROADWORTHY_BRIDGES"):
        assert installed == pinned(package)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs_and_needs_one_line_of_glue(notebook, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "agg")
    library(about(notebook)["module"])
    variables = {}
    for number, source in enumerate(cells(notebook)):
        exec(compile(source, f"{notebook.name} cell {number}", "exec"), variables)
    assert glue(notebook) == 1


EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def test_the_examples_of_the_page_run(network, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world, network.layer4 = worlds.quadrants(n=8, size=16), network.layer2
    variables = {"network": network, "images": world.images, "labels": world.labels, "maps": world.truth, "rw": rw}
    for code in EXAMPLES:
        for name in re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE):
            library(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, PAGE.name, "exec"), variables)
