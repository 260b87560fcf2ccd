"""The self-test on CIFAR-10 with a ResNet-20: the tables of docs/self-test.md. Needs $ROADWORTHY_DATA.

    python bench/self_test_cifar10.py FOLDER [IMAGES]

compares four of the paper's methods on the first 1,000 test images, saves the comparison in FOLDER and prints the
tables.
"""

import os
import sys
import time
from pathlib import Path

import pandas as pd

import roadworthy as rw
from roadworthy.attributions import paper_methods
from roadworthy.experiments.demo import FEW_FRACTIONS, PAPER_NOISE


def compared(images: int) -> rw.Comparison:
    data = rw.datasets.first(rw.datasets.CIFAR10(os.environ["ROADWORTHY_DATA"], "test"), images)
    methods = paper_methods(steps=8, ig_samples=4, gb_samples=8, **PAPER_NOISE)
    methods = {name: methods[name] for name in ("IG", "IG-SG", "GB", "GB-SG")}
    return rw.compare(
        rw.models.resnet20_cifar10(),
        data,
        methods,
        imputers=["linear", "fixed"],
        fractions=FEW_FRACTIONS,
        self_test=True,
        progress=False,
    )


def markdown(table: pd.DataFrame) -> str:
    """A table of a page."""
    rows = [list(table.columns), ["---"] * len(table.columns), *table.astype(str).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def interval(table: pd.DataFrame, value: str, low: str, high: str, digits: int = 3) -> list[str]:
    shown = zip(table[value], table[low], table[high], strict=True)
    return [f"{v:.{digits}f} [{a:.{digits}f}, {b:.{digits}f}]".replace("-", "−") for v, a, b in shown]


def pages(test: rw.SelfTest) -> dict[str, pd.DataFrame]:
    order, damage, smooth, scope, weights = (
        test.known_order(), test.damage(), test.smoothness(), test.scope(), test.randomization()
    )  # fmt: skip
    key = ["imputer", "score", "method"]
    losses = damage.assign(loss=interval(damage, "loss", "low", "high"))
    losses = losses[losses["share"] > 0].pivot_table(
        index=key, columns="share", values="loss", aggfunc="first", sort=False
    )
    return {
        "known order": order[[*key, "state"]].assign(
            pairs=interval(order, "accuracy", "accuracy_low", "accuracy_high", 2),
            spearman=interval(order, "spearman", "spearman_low", "spearman_high", 2),
            smallest=order["smallest"],
        ),
        "damage": losses.reset_index(),
        "smoothness": smooth[smooth["leading"]][["imputer", "method", "how", "amount", "original"]].assign(
            change=interval(smooth[smooth["leading"]], "change", "low", "high")
        ),
        "scope": scope[["imputer", "order", "measure", "fraction"]].assign(
            outside=interval(scope, "outside", "low", "high", 2)
        ),
        "randomization": weights[weights["leading"]][["method", "amount", "original", "value", "state"]].assign(
            change=interval(weights[weights["leading"]], "change", "low", "high")
        ),
    }


def main() -> None:
    folder, images = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    started = time.monotonic()
    comparison = compared(images) if not folder.exists() else rw.load(folder)
    if not folder.exists():
        comparison.save(folder)
    test = comparison.self_test()
    print(comparison, "\n", test, "\n", f"{time.monotonic() - started:.0f} s; share of the self-test: {test.share:.0%}")
    for name, table in pages(test).items():
        print(f"\n## {name}\n\n{markdown(table)}")


if __name__ == "__main__":
    main()
