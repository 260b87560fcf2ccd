"""The self-test as items of the same graph: damaged copies of the leading methods, and the scope of imputed images.

They are evaluated after everything else, on the images that were taken, so that they change neither a ranking nor
when early stopping stops.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, product
from math import isqrt
from typing import NamedTuple

from roadworthy.core.results import Degraded, Point
from roadworthy.evaluation.experiment import POINT_EVALUATORS, Setting
from roadworthy.evaluation.token_removal import NAME as TOKEN_REMOVAL
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import Block, Item

WIDTHS = {"blurred": (1.0, 2.0, 4.0), "sharpened": (1.0,)}
"""of copies that show how far smoothing alone moves a score, in pixels"""
LAYERS = (0.5, 1.0)
"""shares of the layers whose weights are shuffled, from the output on"""
SAMPLE, FEW = 500, 100
"""Images for smoothness and scope: half of all, but not more and not fewer than these, if there are as many."""
NEGATIVE = "center"
"""The control whose map is the same for every image: nothing is lost if images exchange theirs."""
AHEAD = 0.618
"""Images take the map of the one about so far ahead, of all."""


class _Part(NamedTuple):
    """Copies, and where they are evaluated."""

    copies: list[Degraded]
    settings: list[Setting]
    fractions: tuple[float, ...]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, eq=False)
class SelfTestDesign:
    design: Design
    blocks: tuple[Block, ...]
    """that were evaluated"""
    leaders: tuple[str, ...]
    _maps: dict[tuple[str, Block], Item] = field(default_factory=dict, init=False, repr=False)

    @property
    def settings(self) -> list[Setting]:
        """All whose evaluator does not train a model for each point: that would be as many trainings again."""
        return [setting for setting in self.design.settings if setting.evaluator not in POINT_EVALUATORS]

    @property
    def main(self) -> list[Setting]:
        """Those of the evaluator and imputer to look at first."""
        pairs = [(setting.evaluator, setting.imputer) for setting in self.settings]
        preferred = self.design.preferred
        main = preferred if preferred in pairs else next(iter(pairs), None)
        return [setting for setting in self.settings if (setting.evaluator, setting.imputer) == main]

    @property
    def images(self) -> int:
        return sum(len(block.rows) for block in self.blocks)

    @property
    def sample(self) -> tuple[Block, ...]:
        """Of which smoothness and scope are measured."""
        return spaced(self.blocks, sample_size(self.images))

    @property
    def few(self) -> tuple[Block, ...]:
        """Those of which all methods are explained once more, on a model with shuffled weights."""
        return spaced(self.blocks, FEW)

    def swapped(self) -> list[Degraded]:
        return [Degraded(name, "swapped") for name in self.leaders] if self.images > 1 else []

    def negative(self) -> list[Degraded]:
        """A copy that loses nothing: it shows that the self-test is sound, which needs no second setting."""
        known = NEGATIVE in self.design.blind_controls and self.images > 1
        return [Degraded(NEGATIVE, "swapped")] if known else []

    def smoothed(self) -> list[Degraded]:
        return [
            Degraded(name, how, width) for name in self.leaders for how, widths in WIDTHS.items() for width in widths
        ]

    def randomized(self) -> list[Degraded]:
        return [Degraded(name, "randomized", share) for name, share in product(self.design.methods, LAYERS)]

    def copies(self) -> dict[str, Degraded]:
        return {copy.name: copy for copy in (*self.swapped(), *self.negative(), *self.smoothed(), *self.randomized())}

    def maps(self) -> int:
        """How many maps of images that is."""
        return sum(len(part.copies) * sum(len(block.rows) for block in part.blocks) for part in self._parts())

    def points(self) -> dict[Point, tuple[Item, ...]]:
        return {
            point: self._items(point, copy, part.blocks)
            for part in self._parts()
            for copy in part.copies
            for point in self.design.points([copy.name], part.settings, part.fractions)
        }

    def _parts(self) -> list[_Part]:
        every = self.design.fractions
        return [
            _Part(self.swapped(), self.settings, every, self.blocks),
            _Part(self.negative(), self.main, every, self.blocks),
            _Part(self.smoothed(), self.settings, few_fractions(every), self.sample),
            _Part(self.randomized(), self.main, few_fractions(every), self.few),
        ]

    def _items(self, point: Point, copy: Degraded, blocks: Sequence[Block]) -> tuple[Item, ...]:
        if point.fraction == 0:
            return self.design.items(point._replace(method=copy.of), blocks, {})
        return tuple(self.design.predictions_with(point, block, self.map_item(copy, block)) for block in blocks)

    def map_item(self, copy: Degraded, block: Block) -> Item:
        key = copy.name, block
        if key not in self._maps:
            self._maps[key] = self._map_item(copy, block)
        return self._maps[key]

    def _map_item(self, copy: Degraded, block: Block) -> Item:
        design = self.design
        label = {"method": copy.name, "split": block.split, "block": block.index, "copy_of": copy.of}
        if copy.how == "swapped":
            donors = list(donated(self.blocks, block))
            needs = tuple(design.map_item(copy.of, donor) for donor, _, _ in donors)
            return Item("maps", {"swapped": [[start, stop] for _, start, stop in donors]}, label, needs, block)
        if copy.how == "randomized":
            spec = {**design.maps, "attribution": design.base_methods[copy.of], "randomized": copy.amount}
            spec |= design.unit_spec
            return Item("maps", spec, label, (design.baseline(block),), block)
        return Item("maps", {copy.how: copy.amount}, label, (design.map_item(copy.of, block),), block)

    def measures(self) -> list[Item]:
        """All but predictions."""
        return [*self.gamma_items().values(), *self.scope_items().values()]

    def gamma_items(self) -> dict[str, Item]:
        """The geometry of the leading methods and of their smoothed copies, where linear imputation is used."""
        imputers = {setting.imputer for setting in self.settings}
        if not imputers & set(self.linear) or sum(len(block.rows) for block in self.sample) < 2:
            return {}
        maps = {name: [self.design.map_item(name, block) for block in self.sample] for name in self.leaders}
        maps |= {copy.name: [self.map_item(copy, block) for block in self.sample] for copy in self.smoothed()}
        return {name: self._gamma_item(name, items) for name, items in maps.items()}

    @property
    def linear(self) -> tuple[str, ...]:
        """The names of the linear imputer."""
        return self.design.imputers_named("linear")

    def _gamma_item(self, name: str, maps: Sequence[Item]) -> Item:
        design = self.design
        orders = list(dict.fromkeys(setting.order for setting in self.settings))
        fractions = {"fractions": list(few_fractions(design.fractions))}
        spec = {
            "measure": "gamma",
            "seed": design.seeds[0],
            "threads": design.threads,
            "orders": {order: design.orders[order] for order in orders},
            **fractions,
            **design.unit_spec,
        }
        label = {"name": "gamma", "method": name, "orders": orders, **fractions}
        return Item("audit", spec, label, (*(design.baseline(block) for block in self.sample), *maps))

    def scope_items(self) -> dict[str, Item]:
        """Imputer to the measurement of its images, removed by the first of the leading methods."""
        if not self.leaders:
            return {}
        # Tokens that are left out leave no image that the model reads.
        named = {name for name, spec in self.design.imputers.items() if spec.get("name") == TOKEN_REMOVAL}
        imputers = dict.fromkeys(setting.imputer for setting in self.design.settings if setting.imputer not in named)
        return {imputer: self._scope_item(imputer, self.leaders[0]) for imputer in imputers}

    def _scope_item(self, imputer: str, method: str) -> Item:
        design = self.design
        orders = list(dict.fromkeys(setting.order for setting in design.settings if setting.imputer == imputer))
        spec = {
            "measure": "scope",
            "seed": design.seeds[0],
            "threads": design.threads,
            "imputer": design.imputers[imputer],
            "orders": {name: design.orders[name] for name in orders},
            "fractions": list(design.fractions),
            "reference": "scatter",
            **design.unit_spec,
        }
        needs = [design.baseline(block) for block in self.sample]
        needs += [design.map_item(method, block) for block in self.sample]
        label = {"name": "scope", "method": method, "imputer": imputer, "orders": orders}
        return Item("audit", spec, label, (*needs, *design.imputer_item(imputer)))


def sample_size(images: int) -> int:
    """
    >>> [sample_size(images) for images in (50, 200, 600, 10_000)]
    [100, 100, 300, 500]
    """
    return min(SAMPLE, max(FEW, images // 2))


def few_fractions(fractions: Sequence[float]) -> tuple[float, ...]:
    """The smallest, the middle and the largest.

    >>> few_fractions((0.1, 0.3, 0.5, 0.7, 0.9)), few_fractions((0.2, 0.5)), few_fractions((0.3,))
    ((0.1, 0.5, 0.9), (0.2, 0.5), (0.3,))
    """
    return tuple(dict.fromkeys((fractions[0], fractions[(len(fractions) - 1) // 2], fractions[-1])))


def spaced(blocks: Sequence[Block], images: int) -> tuple[Block, ...]:
    """The fewest blocks, evenly spaced, that hold so many images; all of them where they hold fewer."""
    for count in range(1, len(blocks)):
        chosen = [blocks[row * len(blocks) // count] for row in range(count)]
        if sum(len(block.rows) for block in chosen) >= images:
            return tuple(chosen)
    return tuple(blocks)


def shift(images: int) -> int:
    """How far ahead the image is whose map an image takes: a prime number, about 62 % of all images.

    Far, because data may be sorted by class; prime, because their classes may take turns: with k classes, an image k
    ahead, or a multiple of that, has the same one.

    >>> shift(2), shift(10), shift(64), shift(1000)
    (1, 7, 41, 619)
    """
    prime = (n for n in range(round(AHEAD * images), images) if n > 1 and all(n % k for k in range(2, isqrt(n) + 1)))
    return next(prime, 1)


def donated(blocks: Sequence[Block], block: Block) -> Iterator[tuple[Block, int, int]]:
    """Where the maps for the images of a block come from: blocks with the first and the last of their places.

    Images are numbered in the order of the blocks, whatever the size of these; each takes the map of the one that is a
    fixed number ahead, so a block needs the maps of few others.

    >>> blocks = [Block("test", index, rows, "") for index, rows in enumerate([(0, 1, 2), (3, 4)])]
    >>> [[(donor.index, start, stop) for donor, start, stop in donated(blocks, block)] for block in blocks]
    [[(1, 0, 2), (0, 0, 1)], [(0, 1, 3)]]
    """
    ends = list(accumulate(len(each.rows) for each in blocks))
    total, position = ends[-1], [each.index for each in blocks].index(block.index)
    at, left = (ends[position] - len(block.rows) + shift(total)) % total, len(block.rows)
    while left:
        row = next(row for row, end in enumerate(ends) if at < end)
        start = at - (ends[row] - len(blocks[row].rows))
        stop = min(start + left, len(blocks[row].rows))
        yield blocks[row], start, stop
        left -= stop - start
        at = (at + stop - start) % total
