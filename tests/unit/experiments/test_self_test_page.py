"""docs/self-test.md shows what bench/self_test_cifar10.json holds."""

import json

import pytest

from bench import self_test_cifar10 as bench

KEPT = json.loads(bench.KEPT.read_text())


def test_the_page_shows_the_results():
    page = bench.PAGE.read_text()
    assert bench.filled(page, KEPT) == page, "run python bench/self_test_cifar10.py"
    assert KEPT["sentences"][0] in page


@pytest.mark.parametrize("name", ["known_order", "damage", "smoothness", "scope", "randomization"])
def test_a_changed_result_changes_the_page(name):
    changed = json.loads(json.dumps(KEPT))
    value = {"known_order": "accuracy", "damage": "loss", "scope": "outside"}.get(name, "change")
    for row in changed["tables"][name]:
        row[value] += 0.25
    assert bench.filled(bench.PAGE.read_text(), changed) != bench.PAGE.read_text()


def test_both_imputers_and_both_orders_are_there():
    order = KEPT["tables"]["known_order"]
    assert {(row["imputer"], row["score"]) for row in order if not row["negative"]} == {
        (imputer, score) for imputer in ("linear", "fixed") for score in ("srg", "morf", "lerf")
    }
    assert KEPT["images"] == 1000
