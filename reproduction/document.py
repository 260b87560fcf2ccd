"""Write docs/reproduction.md from the committed tables: python -m reproduction.document [--results DIR --out FILE]"""

import argparse
from collections.abc import Callable
from pathlib import Path

from reproduction import page_claims, page_later, page_measures, page_tables
from reproduction.tables import HERE, RESULTS, Results

DOCUMENT = HERE.parent / "docs" / "reproduction.md"
SECTIONS: tuple[Callable[[Results], str], ...] = (
    page_claims.introduction,
    page_claims.rules,
    page_claims.stages,
    page_claims.differences,
    page_tables.agreement,
    page_later.filtered,
    page_later.targets,
    page_later.carried,
    page_later.stopping,
    page_measures.gain,
    page_measures.masks,
    page_measures.detection,
    page_measures.geometry,
    page_measures.toy,
    page_measures.neighbors,
    page_measures.runtimes,
    page_tables.accuracies,
    page_tables.matrix("cifar10"),
    page_tables.matrix("food101"),
)


def document(results: Results) -> str:
    return "\n\n".join(section(results) for section in SECTIONS).strip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    options.out.write_text(document(Results(options.results)), encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
