"""Every figure and table: what it is called, what it needs, how it is drawn."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from roadworthy.audit.debiasing import debiased
from roadworthy.core.files import write_atomically
from roadworthy.experiments.figure_data import Material
from roadworthy.report.figures import curves, latex, leakage, pictures
from roadworthy.report.figures.style import write_figure

Sheet = TypeVar("Sheet")


class Entry(NamedTuple, Generic[Sheet]):
    name: str
    needs: tuple[str, ...]
    """names of what may be among the material's gaps"""
    draw: Callable[[Material], Iterator[tuple[str, Sheet]]]
    """(what tells it from its sisters, the sheet)"""


def write_all(
    material: Material, folder: Path, on_entry: Callable[[float], object] = lambda count: None
) -> tuple[list[Path], list[str]]:
    """Draw whatever can be drawn: the files, and a line for each entry that was skipped, with the cure."""
    paths: list[Path] = []
    skipped: list[str] = []
    names: set[str] = set()
    for entry in FIGURES:
        for name, figure in _sheets(entry, material, names, skipped):
            paths += write_figure(figure, folder, name)
        on_entry(1)
    for table in TABLES:
        for name, text in _sheets(table, material, names, skipped):
            paths.append(folder / f"{name}.tex")
            write_atomically(paths[-1], text.encode())
        on_entry(1)
    return paths, skipped


def _sheets(
    entry: Entry[Sheet], material: Material, names: set[str], skipped: list[str]
) -> Iterator[tuple[str, Sheet]]:
    if reasons := [material.gaps[need] for need in entry.needs if need in material.gaps]:
        skipped.append(f"{entry.name}: {reasons[0]}")
        return
    for end, sheet in entry.draw(material):
        yield _file_name(f"{entry.name} {end}", names), sheet


def _file_name(text: str, taken: set[str]) -> str:
    """Names come from users: letters, digits and hyphens are left, and two never share one."""
    base = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower() or "unnamed"
    name = next(name for name in (base, *(f"{base}-{k}" for k in range(2, 10_000))) if name not in taken)
    taken.add(name)
    return name


def _by_family(material: Material) -> Iterator[tuple[str, Figure]]:
    for family, members in curves.families(material.methods).items():
        own = material.curves[material.curves["method"].isin([*members, "random"])]
        for imputer, rows in own.groupby("imputer", sort=False):
            yield f"{family} {imputer}", curves.family_curves(rows, material.looks)


def _by_method(material: Material) -> Iterator[tuple[str, Figure]]:
    for (evaluator, imputer), rows in material.curves.groupby(["evaluator", "imputer"], sort=False):
        yield f"{evaluator} {imputer}", curves.method_curves(rows, material.looks)


def _debiased(material: Material) -> Iterator[tuple[str, Figure]]:
    table = material.curves
    linear = table[(table["evaluator"] == "retrain") & (table["imputer"] == "linear")]
    clean = debiased(linear, material.audit["geometry"], 1 / material.classes)
    for family, members in curves.families(material.methods).items():
        own, freed = (rows[rows["method"].isin(members)] for rows in (linear, clean))
        yield family, curves.debiased_curves(own, freed, material.looks)


def _evaluators(material: Material) -> Iterator[tuple[str, Figure]]:
    own = material.curves[material.curves["method"] == material.method]
    yield material.method, curves.evaluator_curves(own, material.looks[material.method])


def _information(material: Material) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.information(material.audit["masks"], material.classes, material.looks)


def _masks(material: Material) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.mask_accuracy(material.audit["masks"], material.looks)


def _masks_over_scores(material: Material) -> Iterator[tuple[str, Figure]]:
    masks = material.audit["masks"]
    evaluator, imputer, rows = leaky_scores(material.curves)
    own = masks[(masks["order"] == "morf") & masks["method"].isin(rows["method"])]
    yield f"{evaluator} {imputer}", leakage.mask_over_scores(own, rows, material.looks)


def leaky_scores(table: pd.DataFrame) -> tuple[str, str, pd.DataFrame]:
    """The MoRF curves that a mask can leak into most: retrained and with a fixed fill where there are such."""
    there = table[table["order"] == "morf"]
    evaluator = "retrain" if "retrain" in set(there["evaluator"]) else str(there["evaluator"].iloc[0])
    there = there[there["evaluator"] == evaluator]
    imputer = "fixed" if "fixed" in set(there["imputer"]) else str(there["imputer"].iloc[0])
    return evaluator, imputer, there[there["imputer"] == imputer]


def _recovery(material: Material) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.recovery_error(material.audit["recovery"])


def _bias(material: Material) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.bias_indicator(material.audit["geometry"], material.looks)


def _modified(material: Material) -> Iterator[tuple[str, Figure]]:
    yield "", pictures.modified_data(material.scenes[0])


def _imputations(material: Material) -> Iterator[tuple[str, Figure]]:
    yield "", pictures.imputations(material.scenes)


FIGURES: tuple[Entry[Figure], ...] = (
    Entry("curves", (), _by_family),
    Entry("methods", (), _by_method),
    Entry("information", (), _information),
    Entry("predictor-error", ("recovery",), _recovery),
    Entry("mask-only", ("masks",), _masks),
    Entry("mask-only-over", ("masks", "masked scores"), _masks_over_scores),
    Entry("debiased", ("retrain", "geometry"), _debiased),
    Entry("evaluators", ("evaluators",), _evaluators),
    Entry("modified-data", ("scenes",), _modified),
    Entry("imputations", ("scenes",), _imputations),
    Entry("bias-indicator", ("geometry",), _bias),
)


def _consistency(material: Material) -> Iterator[tuple[str, str]]:
    yield "", latex.agreement_table(material.agreement)


def _accuracies(material: Material) -> Iterator[tuple[str, str]]:
    for method in material.methods:
        yield method, latex.accuracy_table(material.curves, method)


def _runtimes(material: Material) -> Iterator[tuple[str, str]]:
    yield "", latex.runtime_table(material.runtimes)


TABLES: tuple[Entry[str], ...] = (
    Entry("agreement", ("agreement",), _consistency),
    Entry("accuracies", (), _accuracies),
    Entry("runtimes", ("runtimes",), _runtimes),
)
