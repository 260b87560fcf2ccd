"""The self-test on CIFAR-10 with a ResNet-20: the figures of docs/self-test.md.

roadworthy run plans/cifar10-self-test.toml --store FOLDER    measure; an interrupted run continues
python bench/self_test_cifar10.py FOLDER                      keep its tables as a JSON file, and write the page
python bench/self_test_cifar10.py                             write the page from what is kept
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import roadworthy as rw

KEPT = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parent.parent / "docs" / "self-test.md"
SCORES = {"srg": "LeRF − MoRF", "morf": "MoRF", "lerf": "LeRF"}
ORDERS = {"morf": "MoRF", "lerf": "LeRF", "random": "random"}


def kept(comparison: rw.Comparison) -> dict[str, Any]:
    """What the page needs of a comparison, as plain values."""
    test = comparison.self_test()
    tables = {name: json.loads(_short(table).to_json(orient="records")) for name, table in test.tables.items()}
    images = len(next(iter(comparison.predictions.values())))
    share = round(test.share or 0.0, 4)
    return {"images": images, "share": share, "state": test.state, "sentences": list(test.sentences), "tables": tables}


def _short(table: pd.DataFrame) -> pd.DataFrame:
    """Without columns that have one value here, or are not shown."""
    return table.round(6).drop(columns=["evaluator", "model", "units", "limit", "out", "same"], errors="ignore")


def filled(page: str, found: Mapping[str, Any]) -> str:
    """The page with the results between its markers."""
    begin, end = "<!-- cifar10 -->", "<!-- end -->"
    return re.sub(rf"({begin}).*?({end})", lambda match: f"{match[1]}\n\n{text(found)}\n\n{match[2]}", page, flags=re.S)


def text(found: Mapping[str, Any]) -> str:
    tables = {name: pd.DataFrame(rows) for name, rows in found["tables"].items()}
    sizes = {name: f"{int(tables[name]['images'].max()):,}" for name in ("smoothness", "scope", "randomization")}
    parts = [
        f"State: **{found['state']}**. The self-test took {found['share']:.0%} of the processor time of the run. "
        "Its sentences:",
        "\n".join(f"- {sentence}" for sentence in found["sentences"]),
        f"**Known order**, {found['images']:,} images. What it costs if that share of them carry another image's map:",
        markdown(known_order(tables["known_order"], tables["damage"])),
        f"**Smoothness**, {sizes['smoothness']} images at 10, 50 and 90 %. Change of LeRF − MoRF, and γ before and "
        "after:",
        markdown(smoothness(tables["smoothness"])),
        f"**Scope**, {sizes['scope']} images. Percentage outside of the range of 95 % of the real images, and R-OMS, "
        "with pixels removed at random:",
        markdown(scope(tables["scope"])),
        f"**Shuffled weights**, {sizes['randomization']} images at 10, 50 and 90 %. LeRF − MoRF, imputed with linear:",
        markdown(randomization(tables["randomization"])),
    ]
    return "\n\n".join(parts)


def known_order(order: pd.DataFrame, damage: pd.DataFrame) -> pd.DataFrame:
    key = ["imputer", "score", "method"]
    losses = damage[damage["share"] > 0].assign(loss=lambda rows: interval(rows, "loss", "low", "high"))
    wide = losses.pivot(index=key, columns="share", values="loss").rename(columns="{:.0%}".format)
    table = order.merge(wide.reset_index(), on=key)
    shown = {
        "imputer": table["imputer"],
        "score": table["score"].map(SCORES),
        "method": table["method"],
        "true order": table["state"],
        "pairs in order": interval(table, "accuracy", "accuracy_low", "accuracy_high", 2),
        "Spearman": interval(table, "spearman", "spearman_low", "spearman_high", 2),
    }
    return pd.DataFrame({**shown, **{name: table[name] for name in wide.columns}})


def smoothness(table: pd.DataFrame) -> pd.DataFrame:
    table = table[table["leading"]]
    gammas = {
        f"γ in {ORDERS[order]}": [
            "–" if pd.isna(after) else f"{before:.2f} → {after:.2f}"
            for before, after in zip(table[f"gamma_{order}_original"], table[f"gamma_{order}"], strict=True)
        ]
        for order in ("morf", "lerf")
    }
    copies = [f"{how}, {amount:g} px" for how, amount in zip(table["how"], table["amount"], strict=True)]
    shown = {"imputer": table["imputer"], "method": table["method"], "copy": copies}
    return pd.DataFrame({**shown, "change": interval(table, "change", "low", "high"), **gammas})


def scope(table: pd.DataFrame) -> pd.DataFrame:
    """Rows by imputer, order and measure; R-OMS knows no order."""
    shown = table.assign(cell=interval(table, "outside", "low", "high", 0, 100))
    reference = table.drop_duplicates(["imputer", "fraction"]).assign(order="random", measure="R-OMS")
    reference = reference.assign(cell=interval(reference, "r_oms", "r_oms_low", "r_oms_high", 2))
    both = pd.concat([shown, reference]).assign(share=lambda rows: rows["fraction"].map("{:.0%}".format))
    both = both.assign(order=both["order"].map(ORDERS))
    wide = both.pivot_table(
        index=["imputer", "order", "measure"], columns="share", values="cell", aggfunc="first", sort=False
    )
    return wide.reset_index().fillna("–").rename_axis(columns=None)


def randomization(table: pd.DataFrame) -> pd.DataFrame:
    table = table[table["leading"]]
    shown = {"method": table["method"], "layers": table["amount"].map("{:.0%}".format)}
    shown |= {"score": numbers(table["original"])}
    shown |= {"with shuffled weights": numbers(table["value"])}
    return pd.DataFrame({**shown, "change": interval(table, "change", "low", "high"), "state": table["state"]})


def interval(table: pd.DataFrame, value: str, low: str, high: str, digits: int = 3, scale: float = 1) -> list[str]:
    rows = zip(*(scale * table[name].astype(float) for name in (value, low, high)), strict=True)
    return [
        "–" if pd.isna(v) else f"{v:.{digits}f} [{a:.{digits}f}, {b:.{digits}f}]".replace("-", "−") for v, a, b in rows
    ]


def numbers(values: pd.Series) -> list[str]:
    return [f"{value:.3f}".replace("-", "−") for value in values]


def markdown(table: pd.DataFrame) -> str:
    rows = [list(table.columns), ["---"] * len(table.columns), *table.astype(str).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def main() -> None:
    if len(sys.argv) > 1:
        KEPT.write_text(json.dumps(kept(rw.load(Path(sys.argv[1]))), indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), json.loads(KEPT.read_text())))


if __name__ == "__main__":
    main()
