import re
from pathlib import Path

import pytest

import roadworthy
from printed import pages

PROJECT = Path(__file__).parent.parent

PUBLIC = {
    "CONTROLS", "FRACTIONS", "PAPER_FRACTIONS", "REGISTRY",
    "Attribution", "Audit", "Batch", "Blur", "Comparison", "Conclusion", "Constant", "DataLike", "Dataset",
    "DatasetMean", "Evaluator", "FeatureMask", "Gain", "GainRecipe", "ImageMean", "Imputer", "ImputerLike", "Key",
    "MethodLike", "Model", "ModelLike", "NoisyLinear", "Normalized", "Order", "Patches", "Plan", "Point", "Predictions",
    "Recipe", "SelfTest", "Superpixels", "TokenRemoval", "Tokens", "TruthTest", "Units", "UnitsLike",
    "VisionTransformer",
    "attributions", "compare", "datasets", "errors", "impute", "imputers", "load", "models", "read_plan",
    "removal_mask", "road", "run", "statistics", "truth", "truth_test",
}  # fmt: skip
"""Adding a name adds a promise, removing or renaming one breaks users: change this set on purpose."""


def test_all_lists_the_public_names_once_and_sorted():
    """Constants, then classes, then modules and functions, as ruff sorts `__all__`."""
    names = roadworthy.__all__
    assert set(names) == PUBLIC
    assert names == sorted(PUBLIC, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def test_dir_shows_the_public_names_only():
    assert {name for name in dir(roadworthy) if not name.startswith("_")} == PUBLIC


def test_every_public_name_can_be_imported():
    namespace = {}
    exec("from roadworthy import *", namespace)
    assert namespace.keys() - {"__builtins__"} == PUBLIC
    assert [name for name in PUBLIC if namespace[name] is not getattr(roadworthy, name)] == []


def test_a_public_name_is_that_of_the_object():
    for name in PUBLIC:
        public = getattr(roadworthy, name)
        if hasattr(public, "__name__") and not name.endswith("Like"):  # unions have no name of their own
            assert public.__name__.rpartition(".")[2] == name


def test_other_names_are_an_attribute_error():
    with pytest.raises(AttributeError, match="'nothing'"):
        roadworthy.nothing  # noqa: B018


@pytest.mark.parametrize(
    "page",
    [PROJECT / "README.md", *pages(), *sorted(PROJECT.glob("examples/**/*.py"))],
    ids=lambda page: str(page.relative_to(PROJECT)),
)
def test_documents_use_public_names_only(page):
    assert set(re.findall(r"\brw\.(\w+)", page.read_text())) <= PUBLIC
