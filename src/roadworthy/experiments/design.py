"""The design of an experiment: its parts as JSON, the items they amount to, and which of them come next.

It holds no data and no weights, so a run directory can be read without them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, NamedTuple

from roadworthy import statistics
from roadworthy.attributions.controls import Blurred
from roadworthy.core.results import Copy, Point
from roadworthy.evaluation.experiment import POINT_EVALUATORS, Setting
from roadworthy.experiments.items import Block, Item, Spec

Until = Literal["ranked", "best"]
Population = Literal["infinite", "finite"]


class EarlyStopping(NamedTuple):
    until: Until
    confidence: float = 0.95
    margin: float = 0.02
    population: Population = "infinite"
    """what statements are about: images like these, or the images of this data set"""


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
    units: Spec = field(default_factory=dict)
    """what is removed at a time and how maps are pooled to it; empty for pixels, so that ids do not mention them"""
    unit_name: str = Point._field_defaults["units"]
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
    confidence: float = statistics.CONFIDENCE
    """of all intervals"""
    margin: float = statistics.MARGIN
    """scores that surely differ by less are tied"""
    self_test: bool = False
    """whether damaged copies of the leading methods are evaluated too, once everything else is"""
    answered: dict[int, bool] = field(default_factory=dict, init=False, repr=False)
    """whether so many blocks answer the question of early stopping: what is stored under an id never changes"""
    _items: dict[Any, Item] = field(default_factory=dict, init=False, repr=False)

    # ── methods and points ───────────────────────────────────────────────────────────────────────────────────────────

    @property
    def base_methods(self) -> dict[str, Spec]:
        """All methods that are explained on their own: the user's and the blind controls."""
        return {**self.methods, **self.blind_controls}

    @property
    def unit_spec(self) -> Spec:
        """What the spec of an item that depends on units says of them."""
        return {"units": self.units} if self.units else {}

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
        """The error is shared by every pair that could ever be shown: in all blocks, with copies of any method.

        Which methods are copied depends on the data. To hold for any choice, the pairs of all possible copies count.
        """
        rule = self.early_stopping
        if rule is None:
            return None
        copied = len(self.copied) or len(self.methods)
        contenders = len(self.base_methods) + len(self._copy_kinds) * copied
        blocks = {(setting.evaluator, setting.imputer) for setting in self.settings}
        pairs = contenders * (contenders - 1) // 2 * len(blocks)
        return statistics.StoppingRule(
            rule.confidence,
            rule.margin,
            pairs,
            until=rule.until,
            methods=tuple(self.methods),
            controls=tuple(self.blind_controls),
            blocks=len(blocks),
            images=sum(len(block.rows) for block in self.blocks),
            seed=self.seeds[0],
            finite=rule.population == "finite",
        )

    @property
    def _copy_kinds(self) -> tuple[str, ...]:
        """An inverted map's MoRF is the map's LeRF, so a copy needs both orders."""
        both = {"morf", "lerf"} <= {setting.order for setting in self.settings}
        return tuple(kind for kind in self.copy_controls if kind != "inverted" or both)

    @property
    def copies_leaders(self) -> bool:
        """Which methods are copied depends on results."""
        return bool(self._copy_kinds) and not self.copied

    def copies(self, methods: Sequence[str]) -> list[Copy]:
        return [Copy(name, kind) for kind, name in product(self._copy_kinds, methods)]

    def points(
        self, methods: Iterable[str], settings: Iterable[Setting], fractions: Sequence[float] | None = None
    ) -> Iterator[Point]:
        """By default at all fractions."""
        shares = (0.0, *(self.fractions if fractions is None else fractions))
        for method, setting, seed, fraction in product(methods, settings, self.seeds, shares):
            yield Point(method, setting.order, setting.imputer, setting.evaluator, fraction, seed, units=self.unit_name)

    # ── items ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def items(self, point: Point, blocks: Sequence[Block], copies: Mapping[str, Copy]) -> tuple[Item, ...]:
        """The items that hold a point's predictions, block by block."""
        copy = copies.get(point.method)
        if copy is not None and copy.how == "inverted":
            swapped = {"morf": "lerf", "lerf": "morf"}[point.order]
            return self.items(point._replace(method=copy.of, order=swapped), blocks, {})
        if point.fraction == 0 and point.evaluator == "no-retrain":
            return tuple(self.baseline(block) for block in blocks)
        if point.evaluator in POINT_EVALUATORS:
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
        spec = {**self.maps, "attribution": self.base_methods[method], **self.unit_spec}
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
            **self.unit_spec,
        }
        label = {"evaluator": "fine-tuned", "imputer": imputer, "seed": seed}
        make = lambda: Item("model", spec, label, self.imputer_item(imputer))  # noqa: E731
        return self._kept(("model", imputer, seed), make)

    def predictions(self, point: Point, block: Block, copy: Copy | None) -> Item:
        def make() -> Item:
            return self.predictions_with(point, block, self.map_item(point.method, block, copy))

        return self._kept((point, block), make)

    def predictions_with(self, point: Point, block: Block, maps: Item) -> Item:
        """At a point, with these maps."""
        needs = [self.baseline(block)]
        spec: dict[str, Any] = {"evaluator": point.evaluator, "fraction": point.fraction, "seed": point.seed}
        label = {**point._asdict(), "block": block.index}
        if point.evaluator == "fine-tuned":
            needs.append(self.model_item(point.imputer, point.seed))
        if point.fraction == 0:  # depends on no method, order or mask
            label |= {"method": "", "order": ""}
        else:
            needs += [maps, *self.imputer_item(point.imputer)]
            spec |= {"order": self.orders[point.order], "imputer": self.imputers[point.imputer], **self.unit_spec}
        return Item("predictions", spec, label, tuple(needs), block)

    def retrained(self, point: Point, blocks: Sequence[Block], copy: Copy | None) -> Item:
        """A training and its predictions on all blocks. Without removal it depends on no method: one per seed."""
        if point.fraction == 0:
            point, copy = point._replace(method="", order="", imputer=""), None
        return self._kept((point, blocks[-1].index), lambda: self._retrained(point, blocks, copy))

    def _retrained(self, point: Point, blocks: Sequence[Block], copy: Copy | None) -> Item:
        needs = [self.baseline(block) for block in blocks]
        spec: dict[str, Any] = {"evaluator": point.evaluator, "fraction": point.fraction, "seed": point.seed}
        start = {"network": self.network} if point.evaluator == "retrain" else {"model": self.model}
        spec |= {"training": self.training, **start, "threads": self.threads}
        if point.fraction > 0:
            needs += [self.map_item(point.method, block, copy) for block in (*blocks, *self.train_blocks)]
            needs += self.imputer_item(point.imputer)
            spec |= {"order": self.orders[point.order], "imputer": self.imputers[point.imputer], **self.unit_spec}
        return Item("predictions", spec, point._asdict(), tuple(needs))

    def _kept(self, key: Any, make: Callable[[], Item]) -> Item:
        """Equal items are one object, so that ids are computed once."""
        if key not in self._items:
            self._items[key] = make()
        return self._items[key]
