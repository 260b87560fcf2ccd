"""The ids under which a run directory records the points and the audit of a plan, from the plan and fingerprints alone.

A point is usually one item. If its images fill several blocks, it is one item per block: its id is then the hash of
theirs, in the order of the blocks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from roadworthy.core.results import Point
from roadworthy.experiments.audit_items import AuditDesign, AuditSettings, Measure, most_relevant_share
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import Item, canonical, combined
from roadworthy.experiments.plans import Plan

RANDOM_MASKS = ("scatter", "blobs")
"""`masks` of the table `detection` that belong to no method"""


def settings_id(settings: Mapping[str, Any]) -> str:
    """Of a number that belongs to no plan: the hash of the settings of its computation."""
    return combined([canonical(settings)])[:32]


def point_id(items: Sequence[Item]) -> str:
    return items[0].id if len(items) == 1 else combined(item.id for item in items)[:32]


def points_id(ids: Iterable[str]) -> str:
    """Of a number that depends on several points: the hash of their ids."""
    return combined(sorted(set(ids)))[:32]


def point_ids(design: Design) -> dict[Point, str]:
    copies = {copy.name: copy for copy in design.copies(design.copied)}
    points = design.points([*design.base_methods, *copies], design.settings)
    return {point: point_id(design.items(point, design.blocks, copies)) for point in points}


def audit_ids(design: Design, fractions: tuple[float, ...]) -> dict[Measure, str]:
    copies = {copy.name: copy for copy in design.copies(design.copied)}
    audit = AuditDesign(design, design.blocks, copies, AuditSettings(fractions))
    return {measure: item.id for measure, item in audit.items().items()}


def mask_measure(method: str, order: str, fraction: float) -> Measure:
    """The item behind a row of the table `masks`."""
    return Measure("masks", method, fraction=most_relevant_share(order, fraction))


def detection_measure(imputer: str, masks: str) -> Measure:
    """The item behind a row of the table `detection`."""
    return Measure("detector", imputer=imputer) if masks in RANDOM_MASKS else Measure("detection", masks, imputer)


def geometry_measure(method: str) -> Measure:
    """The item behind a row of the table `geometry`."""
    return Measure("geometry", method)


def with_root(plan: Plan, root: Path) -> Plan:
    """The plan with its data in `root`."""
    place = {"root": str(root.resolve())}
    return replace(plan, data={**plan.data, **place}, train=None if plan.train is None else {**plan.train, **place})
