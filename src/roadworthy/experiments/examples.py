"""Pictures for the report and the figures: a few images, their maps, and what is left of them."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from roadworthy.core.errors import InputError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Imputer, Ranks
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import imputed
from roadworthy.experiments.source import Source
from roadworthy.report.examples import Example, Pixels

IMAGES = 4


def examples(
    source: Source, methods: Sequence[str], imputers: Sequence[str] = (), most_fractions: int = 9, images: int = IMAGES
) -> list[Example]:
    """Images from all over the data, which may be sorted by class. Pixels are removed as the first seed did.

    The first of `methods` is shown with every imputer of `imputers` (default: all), the others with the first one.
    Imputers that are code of a plan are left out.
    """
    source.check_images()
    rows = [source.rows[place] for place in np.unique(np.linspace(0, len(source.rows) - 1, images).round().astype(int))]
    (batch, predicted), parts, key = source.images(rows), source.parts, Key(source.design.seeds[0])
    ready = source.imputers()
    available = {name: ready[name] for name in imputers or ready if name in ready}
    if not available:
        raise InputError(
            f"the imputers ({', '.join(parts.left_out) or 'none'}) are functions of the plan, and reading results runs "
            "no code of a plan"
        )
    inner = [fraction for fraction in source.design.fractions if fraction < 1] or list(source.design.fractions)
    places = np.linspace(0, len(inner) - 1, min(most_fractions, len(inner))).round().astype(int)
    fractions = tuple(inner[place] for place in places)
    ranks = {name: rank(parts.orders, source.maps(name, rows), batch.ids, key, batch.units) for name in methods}
    shown = {
        (method, order, name): _imputed(imputer, batch, ranks[method][order], fractions, key)
        for (place, method), order, (name, imputer) in product(enumerate(methods), parts.orders, available.items())
        if place == 0 or name == next(iter(available))
    }
    first_order = next(iter(parts.orders))
    return [
        Example(
            _title(int(batch.ids[row]), int(batch.labels[row]), parts.data.classes, predicted[row]),
            batch.images[row].numpy(),
            fractions,
            {name: _gray(ranks[name][first_order][row], reverse=first_order == "lerf") for name in methods},
            {setting: [pictures[row] for pictures in series] for setting, series in shown.items()},
        )
        for row in range(len(batch))
    ]


def _title(id: int, label: int, classes: Sequence[str], predicted: bool) -> str:
    return f"Image {id}, {class_name(label, classes, predicted)}"


def _imputed(imputer: Imputer, batch: Batch, ranks: Ranks, fractions: Sequence[float], key: Key) -> list[list[Pixels]]:
    """Fraction by fraction, image by image."""
    return [list(images.numpy()) for _, images in imputed(imputer, batch, ranks, fractions, key)]


def _gray(ranks: Ranks, reverse: bool) -> Pixels:
    """Ranks as gray levels, because maps differ too much in scale to be shown as they are: white is most relevant."""
    level = (ranks[None] / max(1, int(ranks.max()))).numpy().astype(np.float32)
    return level if reverse else 1 - level


def class_name(label: int, classes: Sequence[str], predicted: bool = False) -> str:
    """A label that is the model's own prediction is called one; a name that several classes have gets its number.

    >>> class_name(1, ("cat", "dog")), class_name(1, ()), class_name(1, (), predicted=True)
    ('class dog', 'class 1', 'predicted 1')
    >>> class_name(2, ("crane", "dog", "crane"))
    'class crane (2)'
    """
    name = classes[label] if label < len(classes) else str(label)
    name = f"{name} ({label})" if classes.count(name) > 1 else name
    return f"predicted {name}" if predicted else f"class {name}"
