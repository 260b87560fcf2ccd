"""How far an experiment has come: which points belong to it, and which items are still missing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from roadworthy import statistics
from roadworthy.core.results import Copy, Point, Predictions
from roadworthy.evaluation.experiment import Setting
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import Block, Item
from roadworthy.experiments.plans.plan import LEADERS
from roadworthy.experiments.recorded import read_predictions
from roadworthy.experiments.self_test.design import SelfTestDesign
from roadworthy.experiments.stores import Store
from roadworthy.statistics.scores import table_blocks


@dataclass(frozen=True, eq=False)
class Survey:
    """How far an experiment has come: the points that are known to belong to it, and the items they lack."""

    points: Mapping[Point, tuple[Item, ...]]
    blocks: tuple[Block, ...]
    """all, or those taken by early stopping so far"""
    copies: Mapping[str, Copy]
    missing: tuple[Item, ...]
    """in the order in which they can be computed"""
    stored: frozenset[str]
    final: bool
    """no further points will follow"""
    self_test: SelfTestDesign | None = None
    """known once everything else is done"""

    @cached_property
    def self_test_points(self) -> dict[Point, tuple[Item, ...]]:
        """Of damaged copies: apart from the points, so that no table counts them among the methods."""
        return self.self_test.points() if self.self_test else {}

    @property
    def self_test_items(self) -> list[Item]:
        found = [item for items in self.self_test_points.values() for item in items]
        measured = self.self_test.measures() if self.self_test else ()
        return [*found, *measured]

    @cached_property
    def goals(self) -> dict[str, Item]:
        """All items, needed ones included, by id."""
        points = [item for items in self.points.values() for item in items]
        return {item.id: item for item in closure([*points, *self.self_test_items])}

    def complete(self, point: Point) -> bool:
        return all(item.id in self.stored for item in self.points[point])


def survey(design: Design, store: Store) -> Survey:
    """Look at a store. Which points belong to an experiment may depend on results: early stopping, leading methods.

    The self-test comes after everything else.
    """
    state = _compared(design, store)
    if not design.self_test:
        return state
    if state.missing or not state.final:
        return replace(state, final=False)
    leaders = leading_methods(read_predictions(state.points, store), design)
    state = replace(state, self_test=SelfTestDesign(design, state.blocks, leaders))
    return replace(state, missing=pending(_block_major([tuple(state.self_test_items)]), state.stored))


def _compared(design: Design, store: Store) -> Survey:
    """All but the self-test."""
    stored = frozenset(store.ids())
    quick = [setting for setting in design.settings if setting.evaluator == "no-retrain"]
    slow = [setting for setting in design.settings if setting.evaluator != "no-retrain"]
    points: dict[Point, tuple[Item, ...]] = {}
    blocks, copies = design.blocks, {copy.name: copy for copy in design.copies(design.copied)}

    def extended(methods: Iterable[str], settings: Iterable[Setting]) -> tuple[Item, ...]:
        """Add points; returns the items that are missing now."""
        more = {point: design.items(point, blocks, copies) for point in design.points(methods, settings)}
        points.update(more)
        return pending(_block_major(points.values()), stored)

    def at(missing: tuple[Item, ...], final: bool = False) -> Survey:
        return Survey(points, blocks, copies, missing, stored, final)

    if rule := design.stopping_rule:
        for count in range(1, len(design.blocks) + 1):
            blocks = design.blocks[:count]
            if missing := extended(design.base_methods, quick):
                return at(missing)
            if count not in design.answered:
                design.answered[count] = _decided(read_predictions(points, store), rule, design)
            if design.answered[count]:
                break
        if missing := extended(design.base_methods, slow):
            return at(missing)
    elif missing := extended([*design.base_methods, *copies], design.settings):
        return at(missing, final=not design.copies_leaders)
    if design.copies_leaders:
        leaders = leading_methods(read_predictions(points, store), design)
        copies = {copy.name: copy for copy in design.copies(leaders)}
    return at(extended(copies, design.settings), final=True)


def _block_major(points: Iterable[tuple[Item, ...]]) -> Iterator[Item]:
    """All items of a block before those of the next: its images and maps are still at hand."""
    items = {item.id: item for group in points for item in group}.values()
    return iter(sorted(items, key=lambda item: item.block.index if item.block else len(items)))


def closure(items: Iterable[Item]) -> Iterator[Item]:
    """The items and all that they need, needed ones first, each once."""
    seen: set[str] = set()

    def visit(item: Item) -> Iterator[Item]:
        if item.id not in seen:
            seen.add(item.id)
            for need in item.needs:
                yield from visit(need)
            yield item

    for item in items:
        yield from visit(item)


def pending(goals: Iterable[Item], stored: frozenset[str] | set[str]) -> tuple[Item, ...]:
    """The items to compute: goals that are not stored, and of what they need whatever is not stored either."""
    seen: set[str] = set()

    def visit(item: Item) -> Iterator[Item]:
        if item.id not in seen and item.id not in stored:
            seen.add(item.id)
            for need in item.needs:
                yield from visit(need)
            yield item

    return tuple(found for goal in goals for found in visit(goal))


def _decided(predictions: Mapping[Point, Predictions], rule: statistics.StoppingRule, design: Design) -> bool:
    """Whether the question of the rule is answered in every block."""
    pairs = statistics.pairwise(predictions, tuple(design.blind_controls), stopping=rule)
    return all(statistics.answered(block, rule.until) for block in table_blocks(pairs).values())


def leading_methods(predictions: Mapping[Point, Predictions], design: Design) -> tuple[str, ...]:
    """The best of the user's methods, by the combined score where there are both orders."""
    ranked = statistics.methods_by_score(predictions)
    return tuple(name for name in ranked if name in design.methods)[:LEADERS]
