"""The design of an experiment: its parts as JSON, the items they amount to, and which of them come next.

It holds no data and no weights, so a run directory can be read without them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal, NamedTuple

from roadworthy import statistics
from roadworthy.attributions.controls import Blurred
from roadworthy.core.results import Copy, Point, Predictions
from roadworthy.evaluation.experiment import Setting
from roadworthy.experiments.items import Arrays, Block, Item, Spec
from roadworthy.experiments.stores import Store

LEADERS = 2
"""Methods of which control copies are made, if no others are named."""

Until = Literal["ranked", "best"]


class EarlyStopping(NamedTuple):
    until: Until
    confidence: float = 0.95
    margin: float = 0.02


@dataclass(frozen=True, eq=False, kw_only=True)
class Design:
    model: Spec
    methods: Mapping[str, Spec]
    """the user's"""
    blind_controls: Mapping[str, Spec]
    copy_controls: tuple[str, ...]
    """kinds of copies: blurred, inverted"""
    copied: tuple[str, ...] = ()
    """methods to copy; the leading ones if empty"""
    orders: Mapping[str, Spec]
    imputers: Mapping[str, Spec]
    trained_imputers: tuple[str, ...] = ()
    """those that are trained here; their spec says how"""
    settings: tuple[Setting, ...]
    fractions: tuple[float, ...]
    """above 0; every curve also has a point at 0"""
    seeds: tuple[int, ...]
    target: str
    maps: Spec
    """how maps are computed: seed, batch size, channel reduction"""
    batch_size: int
    threads: int
    blocks: tuple[Block, ...]
    train_blocks: tuple[Block, ...] = ()
    training: Spec = field(default_factory=dict)
    """recipe, loss, augmentation and train images of the evaluators that train"""
    network: Spec = field(default_factory=dict)
    early_stopping: EarlyStopping | None = None
    _items: dict[Any, Item] = field(default_factory=dict, init=False, repr=False)

    # ── methods and points ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def base_methods(self) -> dict[str, Spec]:
        """All methods that are explained on their own: the user's and the blind controls."""
        return {**self.methods, **self.blind_controls}

    @property
    def preferred(self) -> tuple[str, str] | None:
        """The evaluator and imputer that the paper recommends, if they are here: no retraining, Noisy Linear."""
        linear = self.imputers_named("linear")
        pairs = [(setting.evaluator, setting.imputer) for setting in self.settings]
        return next((pair for pair in pairs if pair[0] == "no-retrain" and pair[1] in linear), None)

    def imputers_named(self, name: str) -> tuple[str, ...]:
        """The imputers that are that entry of the registry, whatever they are called here."""
        return tuple(own for own, spec in self.imputers.items() if spec.get("name") == name)

    @property
    def stopping_rule(self) -> statistics.StoppingRule | None:
        """The error is shared by every pair that will ever be compared, copies and imputers included."""
        if self.early_stopping is None:
            return None
        contenders = len(self.base_methods) + len(self._copy_kinds) * min(LEADERS, len(self.methods))
        blocks = {(setting.evaluator, setting.imputer) for setting in self.settings}
        pairs = contenders * (contenders - 1) // 2 * len(blocks)
        return statistics.StoppingRule(self.early_stopping.confidence, self.early_stopping.margin, pairs)

    @property
    def _copy_kinds(self) -> tuple[str, ...]:
        """An inverted map's MoRF is the map's LeRF, so a copy needs both orders."""
        both = {"morf", "lerf"} <= {setting.order for setting in self.settings}
        return tuple(kind for kind in self.copy_controls if kind != "inverted" or both)

    def copies(self, methods: Sequence[str]) -> list[Copy]:
        return [Copy(name, kind) for kind, name in product(self._copy_kinds, methods)]

    def points(self, methods: Iterable[str], settings: Iterable[Setting]) -> Iterator[Point]:
        for method, setting, seed, fraction in product(methods, settings, self.seeds, (0.0, *self.fractions)):
            yield Point(method, setting.order, setting.imputer, setting.evaluator, fraction, seed)

    # ── items ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def items(self, point: Point, blocks: Sequence[Block], copies: Mapping[str, Copy]) -> tuple[Item, ...]:
        """The items that hold a point's predictions, block by block."""
        copy = copies.get(point.method)
        if copy is not None and copy.how == "inverted":
            swapped = {"morf": "lerf", "lerf": "morf"}[point.order]
            return self.items(point._replace(method=copy.of, order=swapped), blocks, {})
        if point.fraction == 0 and point.evaluator == "no-retrain":
            return tuple(self.baseline(block) for block in blocks)
        if point.evaluator == "retrain":
            return (self.retrained(point, blocks, copy),)
        return tuple(self.predictions(point, block, copy) for block in blocks)

    def baseline(self, block: Block) -> Item:
        """The model's predictions on the unmodified images: labels where they are unknown, targets, point 0."""
        return self._kept(("baseline", block), lambda: self._baseline(block))

    def _baseline(self, block: Block) -> Item:
        spec = {"model": self.model, "target": self.target, "batch_size": self.batch_size, "threads": self.threads}
        return Item("baseline", spec, {"split": block.split, "block": block.index}, (), block)

    def map_item(self, method: str, block: Block, copy: Copy | None = None) -> Item:
        return self._kept(("maps", method, block), lambda: self._map_item(method, block, copy))

    def _map_item(self, method: str, block: Block, copy: Copy | None) -> Item:
        label = {"method": method, "split": block.split, "block": block.index}
        if copy is not None:
            return Item(
                "maps",
                {"blurred": Blurred.sigma},
                {**label, "copy_of": copy.of},
                (self.map_item(copy.of, block),),
                block,
            )
        spec = {**self.maps, "attribution": self.base_methods[method]}
        return Item("maps", spec, label, (self.baseline(block),), block)

    def imputer_item(self, name: str) -> tuple[Item, ...]:
        """The training of an imputer, where it has one."""
        if name not in self.trained_imputers:
            return ()
        spec = {"imputer": self.imputers[name], "threads": self.threads}
        return (self._kept(("imputer", name), lambda: Item("imputer", spec, {"imputer": name})),)

    def model_item(self, imputer: str, seed: int) -> Item:
        """The model fine-tuned on images imputed by `imputer`."""
        spec = {
            "model": self.model,
            "training": self.training,
            "imputer": self.imputers[imputer],
            "seed": seed,
            "threads": self.threads,
        }
        label = {"evaluator": "fine-tuned", "imputer": imputer, "seed": seed}
        make = lambda: Item("model", spec, label, self.imputer_item(imputer))  # noqa: E731
        return self._kept(("model", imputer, seed), make)

    def predictions(self, point: Point, block: Block, copy: Copy | None) -> Item:
        return self._kept((point, block), lambda: self._predictions(point, block, copy))

    def _predictions(self, point: Point, block: Block, copy: Copy | None) -> Item:
        needs = [self.baseline(block)]
        spec: dict[str, Any] = {"evaluator": point.evaluator, "fraction": point.fraction, "seed": point.seed}
        label = {**point._asdict(), "block": block.index}
        if point.evaluator == "fine-tuned":
            needs.append(self.model_item(point.imputer, point.seed))
        if point.fraction == 0:  # depends on no method, order or mask
            label |= {"method": "", "order": ""}
        else:
            needs += [self.map_item(point.method, block, copy), *self.imputer_item(point.imputer)]
            spec |= {"order": self.orders[point.order], "imputer": self.imputers[point.imputer]}
        return Item("predictions", spec, label, tuple(needs), block)

    def retrained(self, point: Point, blocks: Sequence[Block], copy: Copy | None) -> Item:
        """A training and its predictions on all blocks. Without removal it depends on no method: one per seed."""
        if point.fraction == 0:
            point, copy = point._replace(method="", order="", imputer=""), None
        return self._kept((point, blocks[-1].index), lambda: self._retrained(point, blocks, copy))

    def _retrained(self, point: Point, blocks: Sequence[Block], copy: Copy | None) -> Item:
        needs = [self.baseline(block) for block in blocks]
        spec: dict[str, Any] = {"evaluator": "retrain", "fraction": point.fraction, "seed": point.seed}
        spec |= {"training": self.training, "network": self.network, "threads": self.threads}
        if point.fraction > 0:
            needs += [self.map_item(point.method, block, copy) for block in (*blocks, *self.train_blocks)]
            needs += self.imputer_item(point.imputer)
            spec |= {"order": self.orders[point.order], "imputer": self.imputers[point.imputer]}
        return Item("predictions", spec, point._asdict(), tuple(needs))

    def _kept(self, key: Any, make: Callable[[], Item]) -> Item:
        """Equal items are one object, so that ids are computed once."""
        if key not in self._items:
            self._items[key] = make()
        return self._items[key]


# ── what is done and what comes next ─────────────────────────────────────────────────────────────────────────────────


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

    @cached_property
    def goals(self) -> dict[str, Item]:
        """All items, needed ones included, by id."""
        return {item.id: item for item in closure(item for items in self.points.values() for item in items)}

    def complete(self, point: Point) -> bool:
        return all(item.id in self.stored for item in self.points[point])


def survey(design: Design, store: Store) -> Survey:
    """Look at a store. Which points belong to an experiment may depend on results: early stopping, leading methods."""
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
            if _decided(read_predictions(points, store), rule, design):
                break
        if missing := extended(design.base_methods, slow):
            return at(missing)
    elif missing := extended([*design.base_methods, *copies], design.settings):
        return at(missing, final=bool(copies) or not design.copies(tuple(design.methods)[:1]))
    if not copies and design.copies(tuple(design.methods)[:1]):  # reads every prediction
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
    pairs = statistics.pairwise(predictions, stopping=rule)
    if design.early_stopping is not None and design.early_stopping.until == "best":
        ranking = statistics.ranking(predictions, stopping=rule)
        best = ranking.drop_duplicates(["evaluator", "imputer"])[["evaluator", "imputer", "method"]]
        pairs = pairs.merge(best, on=["evaluator", "imputer"])
        pairs = pairs[(pairs["method_a"] == pairs["method"]) | (pairs["method_b"] == pairs["method"])]
    return not statistics.undecided(pairs).any()


def leading_methods(predictions: Mapping[Point, Predictions], design: Design) -> tuple[str, ...]:
    """The best of the user's methods, by the combined score where there are both orders."""
    ranked = statistics.ranking(predictions)["method"].drop_duplicates()
    return tuple(name for name in ranked if name in design.methods)[:LEADERS]


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_FIELDS = ("ids", "labels", "predicted", "probability")


def prediction_arrays(predictions: Predictions) -> dict[str, Any]:
    return {name: getattr(predictions, name) for name in _FIELDS}


def as_predictions(arrays: Arrays) -> Predictions:
    """A file may hold more: the training curve of its evaluator."""
    return Predictions(**{name: arrays[name] for name in _FIELDS})


def read_predictions(points: Mapping[Point, tuple[Item, ...]], store: Store) -> dict[Point, Predictions]:
    """Of points that are complete, in the order of the images' rows."""
    cache: dict[str, Predictions] = {}
    joined: dict[tuple[str, ...], Predictions] = {}
    result = {}
    for point, items in points.items():
        key = tuple(item.id for item in items)
        if key not in joined:
            for item in items:
                if item.id not in cache:
                    cache[item.id] = as_predictions(store.read(item))
            joined[key] = _in_row_order([cache[item.id] for item in items], items)
        result[point] = joined[key]
    return result


def _in_row_order(parts: Sequence[Predictions], items: Sequence[Item]) -> Predictions:
    whole = Predictions.join(parts)
    rows = [row for item in items for row in (item.block.rows if item.block else ())]
    return whole if rows == sorted(rows) else whole.take(sorted(range(len(rows)), key=rows.__getitem__))
