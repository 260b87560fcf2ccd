"""The import rule of CONTRIBUTING.md, checked on the real import graph."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).parent.parent
ROOT = PROJECT / "src" / "roadworthy"

LAYERS = [
    [name.strip(" ()") for name in layer.split("|")]
    for line in (PROJECT / "CONTRIBUTING.md").read_text().splitlines()
    if " ► " in line
    for layer in line.split("►")
]
POSITION = {name: position for position, layer in enumerate(LAYERS) for name in layer}
PACKAGES = list(POSITION)


class Import(NamedTuple):
    line: int
    target: str
    """a package; `__version__`; or `roadworthy`, which stands for any other public name"""


def imports(source: str, parent: str) -> list[Import]:
    """Imports of roadworthy by a module in the package `parent`, lazy ones and those for type checkers included."""
    tree = ast.parse(source)
    names = ((node.lineno, name) for node in ast.walk(tree) for name in imported_names(node, parent))
    return [Import(line, target(name)) for line, name in names if name.partition(".")[0] == "roadworthy"]


def imported_names(node: ast.AST, parent: str) -> Iterator[str]:
    """Absolute names. Of a formatted string passed to `import_module`, its constant start."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = parent.split(".")[: len(parent.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*base, *filter(None, [node.module])])
        yield from (f"{module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and last_name(node.func) in ("import_module", "__import__"):
        for argument in node.args[:1]:
            start = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
            if isinstance(start, ast.Constant):
                yield start.value


def last_name(expression: ast.expr) -> str:
    return ast.unparse(expression).rpartition(".")[2]


def target(name: str) -> str:
    first = name.split(".")[1] if "." in name else ""
    return first if first in {*PACKAGES, "__version__"} else "roadworthy"


def is_allowed(package: str, target: str) -> bool:
    if target in (package, "__version__"):
        return True
    if package == "statistics":
        return target == "core"
    return target in POSITION and POSITION[target] > POSITION[package]


def violations(package: str) -> list[str]:
    return [
        f"{path.relative_to(PROJECT)}:{line}: {package} must not import {target}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, target in sorted(set(imports(path.read_text(), parent_of(path))))
        if not is_allowed(package, target)
    ]


def parent_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(ROOT.parent).parts)


def test_the_rule_names_exactly_the_packages_that_exist():
    assert len(PACKAGES) == sum(map(len, LAYERS)) == 12
    assert {path.name for path in ROOT.iterdir()} - {"__pycache__"} == {
        *PACKAGES, "__init__.py", "__main__.py", "py.typed"
    }  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_from_packages_to_its_right(package):
    assert not violations(package), "\n".join(violations(package))


def test_main_imports_only_the_command_line():
    assert {edge.target for edge in imports((ROOT / "__main__.py").read_text(), "roadworthy")} == {"cli"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_a_package_starts_with_its_job(package):
    docstring = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    first = docstring.partition("\n")[0]
    assert first[:1].isupper(), first
    assert first.endswith((".", "?")), first


@pytest.mark.parametrize(
    ("package", "target"),
    [("report", "experiments"), ("core", "datasets"), ("imputers", "models"), ("statistics", "training"),
     ("evaluation", "roadworthy")],
)  # fmt: skip
def test_imports_to_the_left_among_siblings_and_of_the_public_names_are_forbidden(package, target):
    assert not is_allowed(package, target)


@pytest.mark.parametrize(
    ("package", "target"), [("cli", "core"), ("training", "models"), ("statistics", "core"), ("core", "core")]
)
def test_imports_to_the_right_are_allowed(package, target):
    assert is_allowed(package, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("import roadworthy.models.resnet as resnet", "models"),
        ("from roadworthy import models", "models"),
        ("from roadworthy.models import resnet18", "models"),
        ("from roadworthy import __version__", "__version__"),
        ("import roadworthy as rw", "roadworthy"),
        ("from roadworthy import compare", "roadworthy"),
        ("from ..models.resnet import ResNet", "models"),
        ("from .. import models", "models"),
        ("from . import tables", "report"),
        ("def late():\n    from roadworthy.models import resnet18", "models"),
        ("if TYPE_CHECKING:\n    from roadworthy.models import resnet18", "models"),
        ("importlib.import_module('roadworthy.models')", "models"),
        ("import_module(f'roadworthy.models.{name}')", "models"),
    ],
)
def test_every_kind_of_import_is_seen(source, target):
    assert [edge.target for edge in imports(source, "roadworthy.report")] == [target]


def test_imports_of_other_libraries_are_not_ours():
    assert imports("import torch\nfrom rich.console import Console\nimport_module(name)", "roadworthy.report") == []


def prints(source: str) -> bool:
    nodes = list(ast.walk(ast.parse(source)))
    calls = {last_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    attributes = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return bool(calls & {"print", "echo", "secho"} or "sys.stdout" in attributes)


@pytest.mark.parametrize(
    "source", ["print(1)", "console.print(1)", "def f():\n    typer.echo(1)", "sys.stdout.write('1')"]
)
def test_every_way_to_print_is_seen(source):
    assert prints(source)


def test_only_the_command_line_and_the_terminal_report_print():
    paths = {path.relative_to(ROOT) for path in ROOT.rglob("*.py") if prints(path.read_text())}
    assert {path for path in paths if path.parts[0] != "cli"} <= {Path("report/terminal.py")}


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, NoTorch())
"""


def run_without_torch(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_TORCH + code], capture_output=True, text=True)


def test_what_needs_torch_fails_where_torch_is_blocked():
    result = run_without_torch("import roadworthy.core.types")
    assert result.returncode != 0
    assert "torch is blocked" in result.stderr


EVERY_MODULE_OF_STATISTICS = """
from importlib import import_module
from pkgutil import walk_packages
import roadworthy
package = roadworthy.statistics
for module in walk_packages(package.__path__, package.__name__ + "."):
    import_module(module.name)
"""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import roadworthy; dir(roadworthy)", id="roadworthy"),
        pytest.param(EVERY_MODULE_OF_STATISTICS, id="statistics"),
        pytest.param("sys.argv = ['roadworthy', '--help']; import roadworthy.__main__", id="--help"),
    ],
)
def test_these_need_no_torch(code):
    result = run_without_torch(code)
    assert result.returncode == 0, result.stderr
