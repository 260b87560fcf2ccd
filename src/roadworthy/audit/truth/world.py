"""What a world holds, and the true quality of its maps: exact, as the margin after ideal removal is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor, nn

from roadworthy.core.errors import InputError, RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Labels, Maps, Model, Removed
from roadworthy.datasets import Arrays
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first


@final
@dataclass(frozen=True, eq=False)
class KnownMaps:
    """An attribution that looks up its maps by id: of train images too, which retraining needs."""

    maps: Maps = field(repr=False)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return self.maps[batch.ids.cpu()]


@final
@dataclass(frozen=True, eq=False)
class IdealRemoval:
    """The imputer that knows the background of every image, and what is planted there on average.

    It exists in these worlds only. A benchmark that uses it errs by the number of images alone.
    """

    expected: Images = field(repr=False)
    """by id: each image if nothing is known about what is planted in it"""

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        return torch.where(removed[:, None].cpu(), self.expected[batch.ids.cpu()], batch.images.cpu())


@final
@dataclass(frozen=True, eq=False)
class World:
    """A model whose evidence is known, images, and maps whose true order is known.

    Ids are positions: first the images of `data`, then those of `train`.
    """

    name: str
    model: nn.Module
    data: Arrays
    train: Arrays
    """images of the same kind, for evaluators that train"""
    maps: Mapping[str, KnownMaps]
    order: tuple[tuple[str, ...], ...]
    """names of maps, best first; those in one group are equally good"""
    patch_order: tuple[tuple[str, ...], ...]
    """of the same maps pooled to patches of 4×4 pixels, which averages noise out; those in one group are equally good,
    or so nearly that hundreds of images do not separate them"""
    ideal: IdealRemoval
    network: Callable[[], nn.Module] = field(repr=False)
    """makes a network with new weights that can learn this world, for evaluators that retrain"""

    def margin(self, images: Images, labels: Labels) -> Tensor:
        """float64 `(n,)`: the logit of the label minus the mean of the other logits."""
        with torch.no_grad():
            logits: Tensor = self.model(images).double()
        own = logits.gather(1, labels[:, None])[:, 0]
        return own - (logits.sum(dim=1) - own) / (logits.shape[1] - 1)

    def quality(self, name: str, steps: int = 32, seed: int = 0) -> Tensor:
        """The true quality of a map for each image of `data`: LeRF area minus MoRF area after ideal removal.

        The areas are those of the margin, over `steps` equal steps from nothing to everything removed.
        """
        if name not in self.maps:
            raise InputError(f"map {name!r}: the world {self.name!r} has {', '.join(self.maps)}")
        if steps < 1:
            raise RangeError(f"steps={steps}: give a number of at least 1")
        batch, key = next(self.data.batches(len(self.data))), Key(seed).fold("quality")
        maps = self.maps[name].maps[batch.ids]
        counts = [round(step * maps[0].numel() / steps) for step in range(steps + 1)]

        def area(ranks: Tensor) -> Tensor:
            curve = [self.margin(self.ideal(batch, ranks < count, key), batch.labels) for count in counts]
            return torch.trapezoid(torch.stack(curve), dim=0) / steps

        lerf, morf = (order(maps, batch.ids, key) for order in (least_relevant_first, most_relevant_first))
        return area(lerf) - area(morf)
