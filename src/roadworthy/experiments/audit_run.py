"""Audit an experiment: does the benchmark itself leak the class?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from roadworthy.audit.mask_information import check_classes
from roadworthy.audit.tables import CONCLUSION_COLUMNS
from roadworthy.core.errors import DataError
from roadworthy.core.files import write_atomically
from roadworthy.core.text import csv_bytes, csv_text
from roadworthy.experiments.audit_items import AuditDesign, AuditSettings, tables_of
from roadworthy.experiments.items import Item
from roadworthy.experiments.pending import pending
from roadworthy.experiments.recorded import as_predictions
from roadworthy.experiments.runner import Executor, GroupKey, Listener, ManifestWriter, Session, Silent, run_items
from roadworthy.experiments.source import Source

TABLES = ("conclusions", "leakage", "masks", "detection", "geometry", "leads")


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found, as tables (docs/audit.md). A comparison's own tables do not change."""

    tables: Mapping[str, pd.DataFrame]

    def conclusions(self) -> pd.DataFrame:
        """Method, order, imputer: was the class found in what the imputation reveals of the mask?"""
        table = self._table("conclusions")
        # A narrow terminal hides the middle columns: those that are least needed.
        first, last = ["method", "order"], ["imputer", "conclusion"]
        return table[[*first, *(name for name in table.columns if name not in (*first, *last)), *last]].copy()

    def leakage(self) -> pd.DataFrame:
        """How well images imputed with the masks of others predict the class of these others, per fraction."""
        return self._table("leakage").copy()

    def masks(self) -> pd.DataFrame:
        """How well a classifier of the masks alone predicts the class."""
        return self._table("masks").copy()

    def detection(self) -> pd.DataFrame:
        """How well imputed pixels can be detected."""
        return self._table("detection").copy()

    def geometry(self) -> pd.DataFrame:
        """γ, the fraction of the removed signal that linear imputation does not restore."""
        return self._table("geometry").copy()

    def leads(self) -> pd.DataFrame:
        """How much of each method's lead over the next is geometry."""
        return self._table("leads").copy()

    def _table(self, name: str) -> pd.DataFrame:
        empty = CONCLUSION_COLUMNS if name == "conclusions" else []
        return self.tables.get(name, pd.DataFrame(columns=empty))

    def __repr__(self) -> str:
        return f"<Audit of {self._table('conclusions')['method'].nunique()} methods; print(audit.conclusions())>"

    def save(self, folder: str | Path) -> None:
        """Write every table that has rows as CSV."""
        for name, table in ((name, table) for name, table in self.tables.items() if len(table)):
            write_atomically(Path(folder) / f"{name}.csv", csv_bytes(table))

    @classmethod
    def load(cls, folder: str | Path) -> "Audit | None":
        """The tables that `save` wrote; None if there are none."""
        tables = {name: _read(Path(folder) / f"{name}.csv") for name in TABLES}
        found = {name: table for name, table in tables.items() if table is not None}
        if "found" not in found.get("conclusions", pd.DataFrame(columns=["found"])):
            del found["conclusions"]  # of an earlier version, whose conclusions did not follow from its measurements
        return cls(found) if found else None


_TEXT = ("method", "rival", "order", "imputer", "evaluator", "masks", "conclusion", "why", "note", "text")
"""Columns whose empty cells are empty strings, and in which "NA" is a name."""


def _read(path: Path) -> pd.DataFrame | None:
    if not path.is_file():  # opening a pipe would wait forever
        return None
    try:
        numbers = [name for name in pd.read_csv(path, nrows=0).columns if name not in _TEXT]
        empty = dict.fromkeys(numbers, "")
        table = pd.read_csv(path, dtype=dict.fromkeys(_TEXT, str), keep_default_na=False, na_values=empty)
        return table.assign(**{name: table[name].map(csv_text) for name in _TEXT if name in table})
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{path} is not a valid table ({error}): make it again with `roadworthy audit`") from error


@dataclass(frozen=True, eq=False)
class AuditState:
    items: Sequence[Item]
    missing: tuple[Item, ...]
    """with the maps that they need"""


def audit_state(source: Source, settings: AuditSettings) -> AuditState:
    """What an audit would compute; nothing is computed."""
    audited = AuditDesign(source.design, source.state.blocks, source.state.copies, settings)
    items = list(audited.items().values())
    return AuditState(items, pending(items, set(source.store.ids())))


def run_audit(
    source: Source, settings: AuditSettings, executor: Executor, group_key: GroupKey, listener: Listener | None = None
) -> AuditState:
    """Compute the items that are missing, maps included."""
    state, manifest = audit_state(source, settings), ManifestWriter(source.store)

    def compute(items: Sequence[Item], session: Session) -> int:
        return run_items(items, source.store, session, group_key, manifest, listener or Silent())

    try:
        with executor.started() as session:
            # The labels are known once the baselines are: too few images or classes are reported before any training.
            baselines = tuple(item for item in state.missing if item.kind == "baseline")
            if state.missing and not (baselines and compute(baselines, session)):
                _check_classes(source)
                compute(audit_state(source, settings).missing, session)
    finally:
        manifest.save()
    return audit_state(source, settings)


def _check_classes(source: Source) -> None:
    baselines = [source.design.baseline(block) for block in source.state.blocks]
    labels = np.concatenate([as_predictions(source.store.read(item)).labels for item in baselines])
    check_classes(labels, len(source.experiment.data.classes))


def audit_of(source: Source, state: AuditState, curves: pd.DataFrame | None, chance: float) -> Audit:
    """Tables of the items that are stored."""
    stored = source.store.ids()
    linear = source.design.imputers_named("linear")[:1]
    own = curves[curves["imputer"].isin(linear)] if curves is not None else None
    return Audit(tables_of((item for item in state.items if item.id in stored), source.store, own, chance))
