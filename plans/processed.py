"""Blurred and sharpened maps, for cifar10-tables-filtered.toml: processing that adds no information to a map."""

from dataclasses import dataclass
from typing import Any

from roadworthy.attributions.controls import Blurred, blurred
from roadworthy.core.random import Key
from roadworthy.core.types import Attribution, Batch, Maps, Model
from roadworthy.experiments.registry import lookup


@dataclass(frozen=True)
class Sharpened:
    """Unsharp masking: a map plus its difference to its blurred copy."""

    source: Attribution
    sigma: float

    def finish(self, computed: Any, batch: Batch) -> Maps:
        return 2 * computed - blurred(computed, self.sigma)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return self.finish(self.source(model, batch, key), batch)


def blur(of: str, sigma: float, **options: Any) -> Blurred:
    return Blurred(lookup("attributions", of).make(**options), sigma)


def sharpen(of: str, sigma: float, **options: Any) -> Sharpened:
    return Sharpened(lookup("attributions", of).make(**options), sigma)
