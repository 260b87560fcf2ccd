"""All figures and tables: their names, what they need, and how they are drawn."""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from roadworthy.audit.debiasing import debiased
from roadworthy.core.files import write_atomically
from roadworthy.report.figures import curves, latex, leakage, pictures
from roadworthy.report.figures.agreement import agreement_map
from roadworthy.report.figures.answers import answered
from roadworthy.report.figures.critical import critical_difference, not_separated
from roadworthy.report.figures.data import FigureData
from roadworthy.report.figures.forest import forest
from roadworthy.report.figures.setting_curves import setting_curves
from roadworthy.report.figures.slopes import slopes
from roadworthy.report.figures.style import write_figure
from roadworthy.report.ranks import rank_panels
from roadworthy.statistics.scores import table_blocks

Output = TypeVar("Output")


class Entry(NamedTuple, Generic[Output]):
    name: str
    needs: tuple[str, ...]
    """keys of `FigureData.gaps`: the entry is skipped if one of them is missing"""
    draw: Callable[[FigureData], Iterator[tuple[str, Output]]]
    """yields (suffix of the file name, figure or LaTeX)"""


def write_all(
    data: FigureData, folder: Path, on_entry: Callable[[float], object] = lambda count: None
) -> tuple[list[Path], list[str]]:
    """Write every figure and table that the data allow: the files, and a line per skipped entry with the reason."""
    paths: list[Path] = []
    skipped: list[str] = []
    names: set[str] = set()
    for entry in FIGURES:
        with _only_new_garbage():
            for name, figure in _outputs(entry, data, names, skipped):
                paths += write_figure(figure, folder, name)
        on_entry(1)
    for table in TABLES:
        for name, text in _outputs(table, data, names, skipped):
            paths.append(folder / f"{name}.tex")
            write_atomically(paths[-1], text.encode())
        on_entry(1)
    return paths, skipped


@contextmanager
def _only_new_garbage() -> Iterator[None]:
    """Garbage is collected among new objects only: each font makes so many that all others would be looked at again."""
    if gc.get_freeze_count():  # somebody else's
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _outputs(
    entry: Entry[Output], data: FigureData, names: set[str], skipped: list[str]
) -> Iterator[tuple[str, Output]]:
    if reasons := [data.gaps[need] for need in entry.needs if need in data.gaps]:
        skipped.append(f"{entry.name}: {reasons[0]}")
        return
    for suffix, output in entry.draw(data):
        yield _file_name(f"{entry.name} {suffix}", names), output


def _file_name(text: str, taken: set[str]) -> str:
    """A unique name of letters, digits and hyphens: users name methods, and their names must not become paths."""
    base = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower() or "unnamed"
    name = next(name for name in (base, *(f"{base}-{k}" for k in range(2, 10_000))) if name not in taken)
    taken.add(name)
    return name


def _by_family(data: FigureData) -> Iterator[tuple[str, Figure]]:
    for family, members in curves.families(data.methods).items():
        family_rows = data.curves[data.curves["method"].isin([*members, "random"])]
        for imputer, rows in family_rows.groupby("imputer", sort=False):
            yield f"{family} {imputer}", curves.family_curves(rows, data.looks)


def _by_method(data: FigureData) -> Iterator[tuple[str, Figure]]:
    for (evaluator, imputer), rows in data.curves.groupby(["evaluator", "imputer"], sort=False):
        shown = data.emphasized(str(evaluator), str(imputer))
        yield f"{evaluator} {imputer}", setting_curves(data.blind(rows), data.looks, shown, data.references)


def _headline(data: FigureData) -> Iterator[tuple[str, Figure]]:
    """The paper's main figure: a fixed color above Noisy Linear, MoRF beside LeRF."""
    for evaluator, table in data.curves.groupby("evaluator", sort=False):
        rows = [table[table["imputer"] == imputer] for imputer in (data.fixed_imputer, data.linear_imputer)]
        if all(len(each) for each in rows):
            shown = data.emphasized(str(evaluator), data.linear_imputer)
            yield str(evaluator), setting_curves(data.blind(pd.concat(rows)), data.looks, shown, data.references)


def _ranking(data: FigureData) -> Iterator[tuple[str, Figure]]:
    for key, standing in data.standings.items():
        if standing.methods:
            yield f"{key.evaluator} {key.imputer}", forest(standing, data.looks, data.confidence)


def _ranks(data: FigureData) -> Iterator[tuple[str, Figure]]:
    panels = rank_panels(data.ranking, data.agreement, data.preferred)
    yield "by-imputer", slopes(panels, data.looks, data.leaders, data.headline)


def _agreement_map(data: FigureData) -> Iterator[tuple[str, Figure]]:
    for pairing in data.agreement["pairing"].unique():
        yield pairing, agreement_map(data.agreement, pairing=pairing, confidence=data.confidence)


def _critical_difference(data: FigureData) -> Iterator[tuple[str, Figure]]:
    ranking = table_blocks(data.ranking)
    for key, ranks in table_blocks(data.average_ranks).items():
        groups = not_separated(ranking[key], set(ranks["method"]))
        yield f"{key.evaluator} {key.imputer}", critical_difference(ranks, groups, data.looks)


def _debiased(data: FigureData) -> Iterator[tuple[str, Figure]]:
    table = data.curves
    linear = table[(table["evaluator"] == "retrain") & (table["imputer"] == data.linear_imputer)]
    points = debiased(linear, data.audit["geometry"], 1 / data.classes)
    for family, members in curves.families(data.methods).items():
        before, after = (rows[rows["method"].isin(members)] for rows in (linear, points))
        yield family, curves.debiased_curves(before, after, data.looks)


def _evaluators(data: FigureData) -> Iterator[tuple[str, Figure]]:
    rows = data.curves[data.curves["method"] == data.method]
    yield data.method, curves.evaluator_curves(rows, data.looks[data.method])


def _information(data: FigureData) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.information(data.audit["masks"], data.classes, data.looks)


def _masks(data: FigureData) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.mask_accuracy(data.audit["masks"], data.looks)


def _masks_over_curves(data: FigureData) -> Iterator[tuple[str, Figure]]:
    masks = data.audit["masks"]
    evaluator, imputer, rows = leakiest_curves(data.curves, data.fixed_imputer)
    morf_masks = masks[(masks["order"] == "morf") & masks["method"].isin(rows["method"])]
    yield f"{evaluator} {imputer}", leakage.mask_over_curves(morf_masks, rows, data.looks)


def leakiest_curves(table: pd.DataFrame, fixed: str) -> tuple[str, str, pd.DataFrame]:
    """(evaluator, imputer, rows) of the MoRF curves most exposed to leakage: retrained, with a fixed color, if any."""
    rows = table[table["order"] == "morf"]
    evaluator = "retrain" if "retrain" in set(rows["evaluator"]) else str(rows["evaluator"].iloc[0])
    rows = rows[rows["evaluator"] == evaluator]
    imputer = fixed if fixed in set(rows["imputer"]) else str(rows["imputer"].iloc[0])
    return evaluator, imputer, rows[rows["imputer"] == imputer]


def _detection(data: FigureData) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.detection_error(data.audit["detection"])


def _bias(data: FigureData) -> Iterator[tuple[str, Figure]]:
    yield "", leakage.bias_indicator(data.audit["geometry"], data.looks)


def _modified(data: FigureData) -> Iterator[tuple[str, Figure]]:
    yield "", pictures.modified_data(data.examples[0])


def _answers(data: FigureData) -> Iterator[tuple[str, Figure]]:
    if data.gallery.lead is not None:
        yield "", answered(data.gallery, data.gallery.lead)


def _imputations(data: FigureData) -> Iterator[tuple[str, Figure]]:
    yield "", pictures.imputations(data.examples)


FIGURES: tuple[Entry[Figure], ...] = (
    Entry("headline", ("headline",), _headline),
    Entry("ranking", (), _ranking),
    Entry("ranks", ("ranks",), _ranks),
    Entry("agreement", ("agreement",), _agreement_map),
    Entry("critical-difference", ("several methods",), _critical_difference),
    Entry("methods", (), _by_method),
    Entry("curves", (), _by_family),
    Entry("information", (), _information),
    Entry("detection-error", ("detection",), _detection),
    Entry("mask-only", ("masks",), _masks),
    Entry("mask-only-over", ("masks", "masked scores"), _masks_over_curves),
    Entry("debiased", ("retrain", "geometry"), _debiased),
    Entry("evaluators", ("evaluators",), _evaluators),
    Entry("examples", ("examples",), _answers),
    Entry("modified-data", ("examples",), _modified),
    Entry("imputations", ("examples",), _imputations),
    Entry("bias-indicator", ("geometry",), _bias),
)


def _agreement(data: FigureData) -> Iterator[tuple[str, str]]:
    yield "", latex.agreement_table(data.agreement)


def _accuracies(data: FigureData) -> Iterator[tuple[str, str]]:
    for method in data.methods:
        yield method, latex.accuracy_table(data.curves, method)


def _runtimes(data: FigureData) -> Iterator[tuple[str, str]]:
    yield "", latex.runtime_table(data.runtimes)


TABLES: tuple[Entry[str], ...] = (
    Entry("agreement", ("agreement",), _agreement),
    Entry("accuracies", (), _accuracies),
    Entry("runtimes", ("runtimes",), _runtimes),
)
