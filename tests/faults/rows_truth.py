"""Worlds and the self-test."""

import roadworthy as rw
from faults.table import Row, UsageError, command, each
from roadworthy.core.errors import InputError, RangeError


def truth_test(**changes):
    good = {"worlds": ["gate"], "benchmarks": ["fixed"], "draws": 1, "images": 8, "progress": False}
    return lambda folder: rw.truth_test(**{**good, **changes})


def world(**changes):
    return lambda folder: rw.truth.gate(**changes)


ROWS = [
    *each("truth_test: worlds", (["gat"], ["gate", "Absence"], [""], [None], [7]), lambda v: truth_test(worlds=v), InputError, "did you mean|Available"),
    *each("truth_test: worlds", ("gate", 7), lambda v: truth_test(worlds=v), InputError, "give several"),
    *each("truth_test: benchmarks", (["road"], ["ROAD", "ROAR2"], [""]), lambda v: truth_test(benchmarks=v), InputError, "did you mean|Available"),
    *each("truth_test: benchmarks", ("ROAD", 7), lambda v: truth_test(benchmarks=v), InputError, "give several"),
    Row("truth_test: no worlds", truth_test(worlds=()), InputError, "at least one"),
    Row("truth_test: no benchmarks", truth_test(benchmarks=[]), InputError, "at least one"),
    Row("truth_test: nothing left", truth_test(benchmarks=["ROAR"], trained_draws=0), InputError, "does not train"),
    *each("truth_test: draws", (0, -1, 1.5, "2", True, None), lambda v: truth_test(draws=v), RangeError, "whole number"),
    *each("truth_test: trained_draws", (-1, 0.5, "1"), lambda v: truth_test(trained_draws=v), RangeError, "whole number"),
    *each("truth_test: images", (7, 0, 100.0), lambda v: truth_test(images=v), RangeError, "whole number"),
    *each("truth_test: seed", (-1, 0.5, "0"), lambda v: truth_test(seed=v), RangeError, "whole number"),
    *each("truth: images", (7, -1, 10.0, True, "10"), lambda v: world(images=v), RangeError, "at least 8"),
    *each("truth: train", (7, 0, None), lambda v: world(train=v), RangeError, "at least 8"),
    *each("truth: seed", (-1, 0.5, "1"), lambda v: world(seed=v), RangeError, "at least 0"),
    Row("truth: an unknown map", lambda folder: rw.truth.gate(0, 8, 8).quality("exakt"), InputError, "exact"),
    Row("truth: no steps", lambda folder: rw.truth.gate(0, 8, 8).quality("exact", steps=0), RangeError, "at least 1"),
    Row("self-test: an unknown world", command("self-test", "--world", "gat"), InputError, "did you mean 'gate'"),
    Row("self-test: no draws", command("self-test", "--draws", "0"), UsageError, "draws"),
    Row("self-test: a table of another kind", command("self-test", "--out", "t.xlsx"), InputError, r"\.csv"),
]  # fmt: skip
