"""Pictures for the page: a few images, what the leading methods say of them, and what is left of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Imputer, Maps, Ranks
from roadworthy.experiments.registry import part
from roadworthy.experiments.study import Examples
from roadworthy.report.html.strips import Example, Picture, Strip

IMAGES = 4
_ORDERS = {"morf": "most relevant first (MoRF)", "lerf": "least relevant first (LeRF)"}


def stories(
    examples: Examples,
    methods: Sequence[str],
    imputers: Mapping[str, Imputer],
    orders: Sequence[str],
    fractions: Sequence[float],
    classes: Sequence[str],
) -> list[Example]:
    """One story per image; pixels are removed as the first of `methods` says, the others show their maps."""
    few = examples.batch[:IMAGES]
    maps = {name: examples.maps[name][:IMAGES] for name in methods}
    leader = methods[0]
    ranks: dict[str, Ranks] = {name: part("orders", name).make()(maps[leader], few.ids, Key(0)) for name in orders}
    filled = {
        (order, name, fraction): imputer(few, removed_at(ranks[order], fraction), Key(0))
        for order in orders
        for name, imputer in imputers.items()
        for fraction in fractions
    }
    return [
        Example(
            f"Image {int(few.ids[row])}, {class_name(int(few.labels[row]), classes, bool(examples.guessed[row]))}",
            [
                Strip(
                    "The image and its maps",
                    [
                        Picture("original", few.images[row].numpy()),
                        *(Picture(name, _heat(maps[name][row])) for name in methods),
                    ],
                ),
                *(
                    Strip(
                        f"Filled by {name}; {leader} removes {_ORDERS.get(order, order)}",
                        [
                            Picture(f"{share:.0%} removed", filled[order, name, share][row].numpy())
                            for share in fractions
                        ],
                    )
                    for name in imputers
                    for order in orders
                ),
            ],
        )
        for row in range(len(few))
    ]


def class_name(label: int, classes: Sequence[str], guessed: bool = False) -> str:
    """A label that nobody gave is the model's opinion, and said to be.

    >>> class_name(1, ("cat", "dog")), class_name(1, ()), class_name(1, (), guessed=True)
    ('class dog', 'class 1', 'predicted 1')
    """
    name = classes[label] if label < len(classes) else str(label)
    return f"predicted {name}" if guessed else f"class {name}"


def _heat(maps: Maps) -> NDArray[np.float32]:
    """Ranks as gray levels: maps differ too much in scale to be shown as they are. White is most relevant."""
    order = torch.argsort(torch.argsort(maps.flatten())).reshape(1, *maps.shape)
    return (order / max(1, maps.numel() - 1)).numpy().astype(np.float32)
