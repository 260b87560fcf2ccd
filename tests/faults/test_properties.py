"""What holds for whatever is given: orders, masks, counts, keys and plans, on many random cases with fixed seeds."""

import json
import math
import random
import string
from fractions import Fraction

import numpy as np
import pytest
import torch

import roadworthy as rw
from roadworthy.core.errors import PlanError
from roadworthy.core.masks import blobs, checked_fractions, count, random_removal, removed_at, scattered
from roadworthy.core.random import Key
from roadworthy.core.text import csv_cell, csv_text, printable
from roadworthy.core.types import Batch
from roadworthy.evaluation.orders import rank
from roadworthy.experiments.plans import plan_from
from roadworthy.experiments.registry import lookup

CASES = 150
ORDERS = {name: lookup("orders", name).make() for name in ("morf", "lerf")}


def cases(name, number=CASES):
    """Generators, one per case; a case that fails is found again by its number."""
    return [random.Random(f"{name} {case}") for case in range(number)]


def some_maps(chance):
    """Maps of any size, scale and number of ties."""
    n, height, width = chance.randint(1, 4), chance.randint(1, 9), chance.randint(1, 9)
    values = torch.tensor([[[chance.gauss(0, 1) for _ in range(width)] for _ in range(height)] for _ in range(n)])
    kind = chance.choice(["plain", "ties", "constant", "tiny", "huge", "sparse"])
    changed = {
        "plain": values,
        "ties": values.round(),
        "constant": torch.zeros_like(values),
        "tiny": values * 1e-30,
        "huge": values * 1e30,
        "sparse": torch.where(values > 1, values, 0.0),
    }[kind]
    ids = torch.tensor(chance.sample(range(10**6), n))
    return changed, ids, Key(chance.randint(0, 10**6))


@pytest.mark.parametrize("order", ["morf", "lerf"])
def test_an_order_is_a_permutation_that_respects_the_map(order):
    for chance in cases(order):
        maps, ids, key = some_maps(chance)
        ranks = ORDERS[order](maps, ids, key)
        for one, values in zip(ranks.flatten(1), maps.flatten(1), strict=True):
            assert sorted(one.tolist()) == list(range(values.numel()))
            removed_values = values[one.argsort()]
            steps = removed_values.diff()
            assert (steps <= 0).all() if order == "morf" else (steps >= 0).all()


def test_ranks_depend_on_the_image_and_its_id_not_on_its_neighbors():
    for chance in cases("neighbors"):
        maps, ids, key = some_maps(chance)
        together = rank(ORDERS, maps, ids, key)
        row = chance.randrange(len(ids))
        alone = rank(ORDERS, maps[row : row + 1], ids[row : row + 1], key)
        assert all(torch.equal(alone[name][0], together[name][row]) for name in ORDERS)


def test_ranks_do_not_change_when_a_map_is_scaled():
    for chance in cases("scaled"):
        maps, ids, key = some_maps(chance)
        scaled = maps * 2.0 ** chance.randint(-10, 10)  # exact in floating point
        assert torch.equal(ORDERS["morf"](maps, ids, key), ORDERS["morf"](scaled, ids, key))


def test_a_fraction_removes_exactly_its_count_and_more_of_it_removes_more():
    for chance in cases("masks"):
        maps, ids, key = some_maps(chance)
        ranks, pixels = ORDERS["morf"](maps, ids, key), maps[0].numel()
        low, high = sorted((chance.random(), chance.random()))
        few, many = removed_at(ranks, low), removed_at(ranks, high)
        assert (few.flatten(1).sum(dim=1) == count(low, pixels)).all()
        assert not (few & ~many).any()  # what is removed stays removed
        assert not removed_at(ranks, 0.0).any()
        assert removed_at(ranks, 1.0).all()


def test_a_count_is_the_fraction_rounded_half_up():
    for chance in cases("counts", 1000):
        pixels, parts = chance.randint(1, 300 * 300), chance.randint(1, 100)
        fraction = chance.randint(0, parts) / parts
        exact = Fraction(fraction) * pixels + Fraction(1, 2)
        # Computed in floating point, so exact unless within rounding of the boundary.
        if abs(exact - round(exact)) > Fraction(1, 10**6):
            assert count(fraction, pixels) == math.floor(exact)
        assert 0 <= count(fraction, pixels) <= pixels
        assert count(0.0, pixels) == 0
        assert count(1.0, pixels) == pixels


def test_random_masks_remove_their_count_whatever_the_batch():
    for chance in cases("random masks", 60):
        n, size, fraction = chance.randint(1, 5), chance.randint(2, 12), chance.random()
        ids, key = torch.tensor(chance.sample(range(10**9), n)), Key(chance.randint(0, 99))
        batch = Batch(ids, torch.zeros(n, 1, size, size), torch.zeros(n, dtype=torch.int64))
        for masks in ("scatter", "blobs"):
            removed = random_removal(batch, masks, fraction, key)
            assert (removed.flatten(1).sum(dim=1) == count(fraction, size * size)).all()
        for make in (scattered, blobs):
            assert torch.equal(make(ids, (size, size), key)[-1], make(ids[-1:], (size, size), key)[0])


def test_a_stream_depends_on_seed_path_and_id_alone():
    seen = {}
    for chance in cases("keys", 300):
        seed, path = (
            chance.randint(0, 5),
            tuple(chance.choice(["a", "b", 1, 2, "1"]) for _ in range(chance.randint(0, 3))),
        )
        ids = chance.sample(range(50), chance.randint(1, 6))
        drawn = Key(seed).fold(*path).uniform(ids, (4,))
        assert ((drawn >= 0) & (drawn < 1)).all()
        for id, values in zip(ids, drawn.tolist(), strict=True):
            # JSON tells 1 from "1", so these are different keys.
            known = seen.setdefault((seed, json.dumps(path), id), values)
            assert known == values
    values = [tuple(value) for value in seen.values()]
    assert len(set(values)) == len(values)  # no two streams are the same


def test_a_permutation_holds_every_number_once():
    for chance in cases("permutations"):
        size = chance.randint(0, 200)
        assert sorted(Key(chance.randint(0, 99)).permutation(chance.randint(0, 99), size)) == list(range(size))


def test_checked_fractions_are_sorted_distinct_and_those_given():
    for chance in cases("fractions"):
        given = [round(chance.random(), 2) for _ in range(chance.randint(1, 9))]
        assert checked_fractions(given) == tuple(sorted(set(given)))


def test_imputing_keeps_what_is_kept_and_depends_on_the_id_alone():
    for chance in cases("imputing", 20):
        n, size = chance.randint(2, 4), chance.randint(3, 9)
        images = Key(chance.randint(0, 99)).uniform(range(n), (3, size, size))
        removed = Key(1).fold("mask").uniform(range(n), (size, size)) < chance.uniform(0.1, 0.9)
        removed[:, 0, 0] = False
        ids = torch.tensor(chance.sample(range(1000), n))
        imputer = chance.choice(["linear", "image-mean", "blur"])
        filled = rw.impute(imputer, images, removed, seed=3, ids=ids)
        assert torch.equal(filled.permute(0, 2, 3, 1)[~removed], images.permute(0, 2, 3, 1)[~removed])
        alone = rw.impute(imputer, images[-1:], removed[-1:], seed=3, ids=ids[-1:])
        assert torch.allclose(alone[0], filled[-1], atol=1e-6)
        assert torch.isfinite(filled).all()


def nonsense(chance, depth=0):
    """Any value that TOML can hold."""
    kinds = [
        lambda: chance.choice([0, 1, -1, 2, 8, 10**12, -(10**12)]),
        lambda: chance.choice([0.0, 0.5, -0.5, 1.5, 1e300, float("inf"), float("nan")]),
        lambda: chance.choice(["", "ig", "linear", "a:b", "..", "\x1b", "morf", "label", "x" * 1000]),
        lambda: chance.random() < 0.5,
        lambda: [nonsense(chance, depth + 1) for _ in range(chance.randint(0, 3))],
        lambda: {_word(chance): nonsense(chance, depth + 1) for _ in range(chance.randint(0, 3))},
    ]
    return chance.choice(kinds[: 4 if depth > 3 else 6])()


def _word(chance):
    return chance.choice(["name", "function", "factory", "steps", "images", "as", "weights", "epochs", "", "a.b"])


TABLES = {
    "data": {"name": "folder", "root": "images"},
    "model": {"factory": "mine:build"},
    "methods": {"IG": "ig"},
    "evaluation": {"fractions": [0.5]},
    "run": {"batch_size": 8},
    "train": {"root": "train"},
    "recipe": {"name": "tiny"},
    "gain": {"epochs": 1},
}
KEYS = {
    "data": ["name", "root", "images", "sample", "resize", "classes"],
    "model": ["name", "factory", "weights", "mean", "std"],
    "methods": ["IG", "other", "random"],
    "evaluation": ["orders", "imputers", "evaluators", "strategies", "fractions", "seeds", "controls", "copied",
                   "target", "channel_reduction", "units", "until", "confidence", "margin"],
    "run": ["map_seed", "map_batch_size", "batch_size", "block_size", "threads"],
    "train": ["root", "name", "images"],
    "recipe": ["name", "epochs", "batch_size", "lr", "model", "loss", "augment"],
    "gain": ["epochs", "batch_size", "width", "validation"],
}  # fmt: skip


def complaint(tables):
    """What the PlanError says, or ""; any other error is a failure of the test."""
    try:
        plan_from(tables)
    except PlanError as error:
        return str(error)
    return ""


def test_a_plan_of_nonsense_is_valid_or_a_plan_error_that_names_a_key():
    refused = 0
    for chance in cases("plans", 1500):
        tables = {
            name: dict(table)
            for name, table in TABLES.items()
            if name in ("data", "model", "methods") or chance.random() < 0.4
        }
        for _ in range(chance.randint(1, 3)):
            name = chance.choice(list(KEYS))
            if chance.random() < 0.1:
                tables[name] = nonsense(chance)
            elif isinstance(tables.setdefault(name, {}), dict):
                tables[name][chance.choice([*KEYS[name], "moon"])] = nonsense(chance)
        problem = complaint(tables)
        refused += bool(problem)
        assert not problem or problem.split(".")[0].split(":")[0].split("[")[0] in KEYS, problem
    assert refused > 500  # most of it is nonsense, and some is not
    assert refused < 1500


def test_any_text_can_be_shown_and_put_into_a_cell():
    letters = string.printable + "\x00\x1b\x9b\u202e=+-@'äß中"
    for chance in cases("texts", 500):
        text = "".join(chance.choice(letters) for _ in range(chance.randint(0, 12)))
        shown = printable(text)
        assert not any(ord(letter) < 32 and letter not in "\t\n" for letter in shown)
        assert printable(shown) == shown
        assert csv_text(csv_cell(text)) == text
        assert not csv_cell(text).startswith(("=", "+", "-", "@", "\t", "\r"))


def test_maps_of_integers_and_of_doubles_are_ranked_as_given():
    for chance in cases("dtypes", 60):
        values = np.array([[chance.sample(range(1000), 5) for _ in range(4)]])
        expected = rw.removal_mask(values.astype(np.float32), 0.4)
        for dtype in (np.int64, np.int16, np.float64, np.float32):
            assert torch.equal(rw.removal_mask(values.astype(dtype), 0.4), expected)
