"""The documents are true today: examples run, pages have not drifted, named columns and files exist, plain words."""

import ast
import contextlib
import inspect
import io
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from PIL import Image

import roadworthy as rw
import worlds
from printed import blocks, pages, printed_blocks, same_text
from roadworthy.audit import gamma_table, geometry_of, leads
from roadworthy.audit.debiasing import debiased
from roadworthy.experiments.plans import plan_from
from roadworthy.training.recipe import Recipe
from site_tools import MODULES, linked, listed, module_names, site_links

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *pages()]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TEMPLATES = sorted(path for path in (ROOT / "src").rglob("templates/**/*") if path.is_file())


def short(path):
    return str(path.relative_to(ROOT))


# ── examples ─────────────────────────────────────────────────────────────────────────────────────────────────────────


PLAN = """
[data]
name = "folder"
root = "images"
[model]
factory = "my_model:build"
[methods]
"IG" = { name = "ig", steps = 8 }
"mine" = "my_methods:saliency"
[evaluation]
fractions = [0.2, 0.5, 0.8]
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with what the examples of plans name: images, a model, a method and a plan."""
    world = worlds.quadrants(n=12)
    for number, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        path = tmp_path / "images" / f"quadrant{label}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0).numpy() * 255).round().astype("uint8")).save(path)
    (tmp_path / "my_model.py").write_text("from worlds import Quadrants as build\n")
    method = next(code for code in blocks(ROOT / "docs/learn/own-model.md", "python") if "def saliency" in code)
    (tmp_path / "my_methods.py").write_text(re.search(r"def saliency.*?\n\n\n", method, re.DOTALL).group())
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names():
    """The variables that examples may use without defining them."""
    world, train = worlds.quadrants(n=12), worlds.quadrants(n=40)
    torch.manual_seed(0)
    return {
        "network": rw.models.small_cnn(4, channels=3),
        "images": world.images,
        "labels": world.labels,
        "maps": world.truth,
        "train_images": train.images[12:],
        "train_labels": train.labels[12:],
    }


# The examples of bridges.md need other libraries: tests/bridges/test_docs.py runs them.
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "bridges.md"], ids=short)
def test_python_examples_run_and_print_what_the_page_shows(page, workplace):
    variables = names()
    for code, shown in printed_blocks(page.read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, str(page), "exec"), variables)
        assert shown is None or same_text(out.getvalue(), shown), f"run: make docs-tables; it prints\n{out.getvalue()}"
    if page.name == "README.md":
        assert (workplace / "report.html").stat().st_size > 10_000


BASE = {
    "data": {"name": "cifar10", "root": "data"},
    "model": {"name": "resnet18"},
    "methods": {"IG": "ig", "gradient": "gradient"},
}


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_toml_examples_are_valid_plans(page):
    for code in blocks(page, "toml"):
        plan_from({**BASE, **tomllib.loads(code)})


def test_the_example_of_your_own_method_runs(capsys):
    comparison = runpy.run_path(str(ROOT / "examples" / "own_method.py"))["main"](images=30)
    assert comparison.ranking().query("~control")["method"].iloc[0] == "IG"
    assert "darkness" in capsys.readouterr().out


def test_the_example_of_leakage_agrees_with_its_page(capsys):
    table = runpy.run_path(str(ROOT / "examples" / "leakage_identity.py"))["main"]()
    outcome = table.set_index(["world", "order", "imputer"])["outcome"]
    # Derived in tests/unit/audit/test_identity.py: a visible mask carries 1 bit; hidden, half of 1 − H₂(¼) is left.
    assert outcome["top/bottom, map of nothing", "lerf", "invertible"] == pytest.approx(1)
    assert outcome["top/bottom, map of nothing", "lerf", "minimally revealing"] == pytest.approx(0.0944, abs=1e-4)
    assert "outcome = feature + mask - mitigator" in capsys.readouterr().out


# ── drift ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_make_targets_exist():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for page in PAGES:
        for target in re.findall(r"^make ([\w-]+)|`make ([\w-]+)`", page.read_text(), flags=re.MULTILINE):
            assert "".join(target) in targets, f"{page.name} names make {''.join(target)}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_pages_and_sources_cite_exist():
    """Folders of the repository that are cited with a file: a page, a plan, a test, an example, a benchmark."""
    cited = re.compile(r"\b((?:docs|plans|tests|examples|bench|reproduction)/[\w./-]*\w\.\w+|PAPER(?:\.md)?)\b")
    for path in [*PAGES, ROOT / "CHANGELOG.md", *SOURCES]:
        for name in cited.findall(path.read_text()):
            assert (ROOT / name).exists(), f"{short(path)} cites {name}"


def test_the_page_of_the_command_has_not_drifted(tmp_path):
    out = tmp_path / "cli.md"
    words = ["utils", "docs", "--name", "roadworthy", "--title", "The command roadworthy", "--output", str(out)]
    subprocess.run([sys.executable, "-m", "typer", "roadworthy.cli", *words], check=True, capture_output=True)
    assert out.read_text() == (ROOT / "docs" / "cli.md").read_text(), "run: make docs"


def test_the_page_of_plan_keys_has_not_drifted():
    from plan_keys import page

    assert page() == (ROOT / "docs" / "plan-keys.md").read_text(), "run: make docs-tables"


def test_the_reference_documents_every_public_name_once():
    """Every name of `rw`, and of its public modules. `rw.imputers` holds names of `rw`, documented there."""
    directives = re.compile(
        r"^\.\. (?:autoclass|autofunction|autodata|autoexception|py:data):: roadworthy\.([\w.]+)", re.MULTILINE
    )
    found = [
        name
        for page in [*(ROOT / "docs" / "api").glob("*.md"), ROOT / "docs" / "errors.md"]
        for name in directives.findall(page.read_text())
    ]
    beside = {"experiments.plot.Plot", "experiments.shortcuts.RoadScore"}  # what public calls return
    nested = {f"{module}.{name}" for module in MODULES if module != "imputers" for name in module_names(module)}
    assert sorted(set(found) - beside) == sorted({*rw.__all__} - {*MODULES} | nested)
    assert len(found) == len(set(found))


def test_the_page_of_errors_draws_the_same_tree_as_the_module():
    (tree,) = blocks(ROOT / "docs" / "errors.md", "text")
    assert tree in inspect.getdoc(rw.errors)


def test_commands_in_the_pages_exist():
    commands = set(re.findall(r"^#+ `roadworthy ([\w -]+)`", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE))
    for page in PAGES:
        for name in re.findall(r"roadworthy ((?:data |gain |imputers )?[a-z][\w-]*)", "\n".join(blocks(page, "sh"))):
            assert name in commands, f"{page.name}: roadworthy {name}"


def test_the_page_about_plans_names_every_key():
    from roadworthy.experiments.plans.schema import Tables, _Evaluation, _Run

    page = (ROOT / "docs" / "plans.md").read_text()
    for section in Tables.__annotations__:
        assert f"`[{section}]`" in page, section
    for key in (*_Evaluation.__annotations__, *_Run.__annotations__):
        assert f"`{key}`" in page, key


def test_the_page_about_retraining_names_every_field_of_a_recipe():
    page = (ROOT / "docs" / "retraining.md").read_text()
    assert [name for name in Recipe.__dataclass_fields__ if f"`{name}`" not in page] == []


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def tables():
    """Every table that the pages describe, by the text in the first column of the page's table."""
    world = worlds.quadrants(n=12)
    data = (world.images, world.labels)
    comparison = rw.compare(
        world.model, data, {"mine": world.truth, "other": "gradient"}, fractions=(0.3,), controls=(), progress=False
    )
    audit = comparison.audit(fractions=(0.3,), progress=False)
    orders = {name: rw.REGISTRY["orders"][name].make() for name in ("morf", "lerf")}
    maps = {"mine": lambda: world.truth, "other": lambda: world.truth}
    geometry = gamma_table(geometry_of(rw.datasets.Arrays(*data), world.labels, maps, orders, (0.3,), rw.Key(0)))
    points = debiased(comparison.curves(), geometry, 0.25)
    found = {
        f"{name}()": getattr(comparison, name)()
        for name in (
            "ranking",
            "scores",
            "pairwise",
            "plain_accuracy",
            "curves",
            "agreement",
            "warnings",
            "per_class",
            "per_image",
        )
    }
    return {
        **found,
        "gamma_table(geometry)": geometry,
        "audit.geometry()": audit.geometry(),
        "debiased(curves, geometry, chance)": points,
        "leads(points)": leads(points),
        "audit.leads()": audit.leads(),
        "rw.statistics.diff(before, after)": rw.statistics.diff(comparison.predictions, comparison.predictions),
        "masks": audit.masks(),
        "detection": audit.detection(),
        "conclusions": audit.conclusions(),
    }


def described(page):
    """The rows of tables with a column "columns": (names of tables, names of columns)."""
    for table in re.findall(r"^\| table \| columns \|\n\|---\|---\|\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE):
        for row in table.splitlines():
            name, columns = row.strip("| ").split(" | ", 1)
            yield re.findall(r"`([^`]+)`", name), re.findall(r"`(\w+)`", columns)


@pytest.mark.parametrize("page", ["statistics", "leakage", "figures"])
def test_tables_have_exactly_the_columns_that_the_pages_name(page, tables):
    rows = list(described(ROOT / "docs" / f"{page}.md"))
    assert rows
    for names, columns in rows:
        for name in names:
            expected = set(tables[name].columns)
            if name == "ranking()":  # the page spells out one score
                expected = {column for column in expected if not column.startswith(("morf", "lerf"))}
            assert set(columns) == expected, name


@pytest.mark.parametrize("table", ["masks", "detection"])
def test_the_page_about_the_audit_names_exactly_the_columns_of_its_tables(table, tables):
    page = (ROOT / "docs" / "audit.md").read_text()
    (section,) = re.findall(rf"^## [^\n]*`{table}`\n(.*?)\n## ", page, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| ((?:`\w+` ?)+)\|", section, re.MULTILINE)
    assert set(re.findall(r"\w+", " ".join(rows))) == set(tables[table].columns)


def test_the_page_about_the_audit_names_the_columns_of_the_conclusions(tables):
    page = (ROOT / "docs" / "audit.md").read_text()
    (names,) = re.findall(r"The columns of `conclusions` are ((?:`\w+`\s?)+)", page)
    assert re.findall(r"\w+", names) == list(tables["conclusions"].columns)


# ── language ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PRIVATE = (
    r"houses?|doors?|lab.?books?|judg\w+|verdicts?|dots?|school\w*|pupils?|painters?|shel(?:f|ves)|stor(?:y|ies)|beware"
    r"|told|tell(?:s|ing)?|holes?|gone|whoever|by heart|filled by|in hand"
)
"""Words that stand for something else here, or for nothing that a PyTorch user knows."""
BRITISH = (
    r"\w*colour\w*|\w*(?:normal|optim|initial|summar|organ|recogn|minim|maxim|visual|random|general|regular|standard)is"
    r"(?:e|ed|es|er|ers|ing|ation|ations)|centre\w*|neighbour\w*|grey\w*|behaviour\w*|\w*labell\w*|favour\w*|modell(?:ed|ing|er)"
    r"|analys(?:e|ed|ing)|licence|artefacts?|catalogue|whilst|learnt"
)
WORDS = re.compile(rf"(?<![\w-])(?:{PRIVATE}|{BRITISH})(?![\w-])", re.IGNORECASE)
ALLOWED = {
    "src/roadworthy/experiments/plans/plan_errors.py": {"judges", "optimiser", "centre"},  # keys of earlier versions
}


def prose(path):
    """Everything in a page; of a Python file its strings (docstrings and messages) and comments."""
    text = path.read_text()
    if path.suffix != ".py":
        return text
    strings = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    return "\n".join([*filter(lambda value: isinstance(value, str), strings), *re.findall(r"#.*", text)])


@pytest.mark.parametrize(
    "path",
    [
        *(page for page in PAGES if page.name != "reproduction.md"),  # generated from reproduction/
        *sorted(ROOT.glob("plans/*.toml")),
        *sorted(ROOT.glob("examples/**/*.py")),
    ],
    ids=short,
)
def test_pages_use_plain_american_english(path):
    assert sorted(set(WORDS.findall(prose(path))) - ALLOWED.get(short(path), set())) == []


def test_sources_use_plain_american_english():
    found = {short(path): set(WORDS.findall(prose(path))) - ALLOWED.get(short(path), set()) for path in SOURCES}
    found |= {short(path): set(WORDS.findall(path.read_text())) for path in TEMPLATES}
    assert {path: sorted(words) for path, words in found.items() if words} == {}


# ── site ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_options_in_a_docstring_become_a_list():
    lines = ["Measure.", "", "`a`: first,", "and more.", "`b`: second.", "", "`c` is text."]
    assert listed(lines) == ["Measure.", "", "", "* `a`: first,", "  and more.", "* `b`: second.", "", "`c` is text."]


def test_pages_in_a_docstring_become_links_if_they_exist():
    assert linked(["see docs/audit.md", "docs/nothing.md"]) == ["see :doc:`/audit`", "docs/nothing.md"]


def test_links_to_files_are_links_to_pages_on_the_site():
    script = "[blur](../../examples/gallery/plot_3_blur_trick.py)"
    assert site_links(script) == "[blur](/gallery/plot_3_blur_trick.rst)"
    assert (
        site_links("see [docs/audit.md](docs/audit.md) and [a table](x.md)")
        == "see [audit](docs/audit.md) and [a table](x.md)"
    )


def test_printed_numbers_may_differ_a_little_and_words_may_not():
    assert same_text("IG  0.31 of 1,000", "IG 0.29 of 950")
    assert not same_text("IG 0.31", "IG 0.20")
    assert not same_text("IG 0.31", "GB 0.31")


def test_every_script_of_the_gallery_has_a_title_and_is_run_by_the_site():
    """`make docs-site` runs those whose name begins with plot_, and fails if one fails."""
    scripts = sorted((ROOT / "examples" / "gallery").glob("*.py"))
    assert len(scripts) >= 6
    for script in scripts:
        title, rule = ast.get_docstring(ast.parse(script.read_text())).splitlines()[:2]
        assert script.name.startswith("plot_")
        assert rule == "=" * len(title)
