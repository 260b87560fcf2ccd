"""The arguments of `compare`, checked once before anything is read: each complaint names argument, value and cure."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import torch

from roadworthy.attributions.maps import ChannelReduction
from roadworthy.core.errors import InputError, RangeError
from roadworthy.core.masks import checked_fractions
from roadworthy.core.partitions import UnitReduction
from roadworthy.core.types import Order
from roadworthy.experiments.design import EarlyStopping, Population, Until
from roadworthy.experiments.plans.plan import BLIND_CONTROLS, CONTROLS, ORDERS
from roadworthy.experiments.registry import lookup
from roadworthy.models.prediction import AUTOCAST

MOST_SEEDS = 1000


def several(name: str, values: Any, example: str) -> tuple[Any, ...]:
    """The entries of any iterable, generators included, as a tuple."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{name}={values!r}: give several, as in {name}=({example},)")
    return tuple(values)


def checked_methods(methods: Any) -> dict[str, Any]:
    if not isinstance(methods, Mapping):
        raise InputError(
            f"methods is a {type(methods).__name__}: give names, {{'IG': rw.attributions.IntegratedGradients()}}"
        )
    if not methods:
        raise InputError("methods is empty: give at least one, {'IG': rw.attributions.IntegratedGradients()}")
    check_names("method", methods)
    return dict(methods)


def check_names(kind: str, names: Iterable[Any]) -> None:
    """Names appear in tables, file headers and pages: text on one line."""
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f"{kind} {name!r}: its name must be text on one line, as in 'IG'")


def checked_controls(controls: Any, methods: Iterable[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(several("controls", controls, repr(controls) if isinstance(controls, str) else "...")))
    if unknown := [name for name in names if name not in CONTROLS]:
        raise InputError(f"control {unknown[0]!r}: choose from {', '.join(CONTROLS)}, or () for none")
    copies = [f"{name} {kind}" for name in methods for kind in names if kind not in BLIND_CONTROLS]
    if clash := [name for name in methods if name in {*names, *copies}]:
        raise InputError(f"{clash[0]!r} names a method and a control: rename the method, or leave the control out")
    return names


def checked_orders(orders: Any) -> dict[str, Order]:
    """Orders by name: registry names, or {name: order}."""
    if not isinstance(orders, Mapping):
        names = several("orders", orders, repr(orders) if isinstance(orders, str) else "'morf'")
        orders = {name: lookup("orders", name).make() if isinstance(name, str) else name for name in names}
    if not orders:
        raise InputError("orders is empty: give at least one, such as ('morf', 'lerf')")
    check_names("order", orders)
    for name, order in orders.items():
        if not callable(order):
            raise InputError(f"order {name!r} is a {type(order).__name__}: give a function (maps, ids, key) -> ranks")
    return dict(orders)


def checked_seeds(seeds: Any) -> tuple[int, ...]:
    values = several("seeds", seeds, repr(seeds) if isinstance(seeds, int) else "0")
    whole = tuple(checked_integer("seeds", seed, 0) for seed in values)
    if not whole:
        raise InputError("seeds is empty: give at least one, as in seeds=(0,)")
    if len(set(whole)) < len(whole):
        raise InputError(
            f"seeds={values!r}: a seed is given twice, which repeats the same numbers; give different ones"
        )
    if len(whole) > MOST_SEEDS:
        raise RangeError(f"{len(whole):,} seeds: each repeats everything; give at most {MOST_SEEDS:,}")
    return whole


def checked_integer(name: str, value: Any, least: int) -> int:
    """A whole number, of Python or NumPy; not a bool, a float or text."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise RangeError(f"{name}={value!r}: give a whole number of {least} or more")
    if number > torch.iinfo(torch.int64).max:
        raise RangeError(f"{name}={value!r}: does not fit 64 bits; give a smaller number")
    return number


def above_zero(fractions: Any) -> tuple[float, ...]:
    """Point 0 is always measured: it is the plain accuracy."""
    values = [fractions] if isinstance(fractions, int | float) else several("fractions", fractions, "0.5")
    above = tuple(fraction for fraction in checked_fractions(values) if fraction > 0)
    if not above:
        raise InputError("fractions holds only 0: add a fraction of pixels to remove, such as rw.FRACTIONS")
    return above


def check_choices(target: Any, channel_reduction: Any, unit_reduction: Any) -> None:
    if target not in ("label", "prediction"):
        raise InputError(f"target={target!r}: explain the 'label' or the 'prediction'")
    if channel_reduction not in get_args(ChannelReduction):
        raise InputError(
            f"channel_reduction={channel_reduction!r}: choose one of {', '.join(get_args(ChannelReduction))}"
        )
    if unit_reduction not in get_args(UnitReduction):
        raise InputError(f"unit_reduction={unit_reduction!r}: choose one of {', '.join(get_args(UnitReduction))}")


def early_stopping_of(
    until: Until | None,
    confidence: float,
    margin: float,
    population: Population,
    methods: int,
    evaluators: Sequence[str],
) -> EarlyStopping | None:
    if not isinstance(confidence, int | float) or not 0.5 <= confidence < 1:
        raise RangeError(f"confidence={confidence!r}: give a value from 0.5 to below 1, such as 0.95")
    if not isinstance(margin, int | float) or not 0 <= margin < float("inf"):
        raise RangeError(f"margin={margin!r}: give a difference of scores of 0 or more, such as 0.02")
    if population not in ("infinite", "finite"):
        raise InputError(
            f"population={population!r}: choose 'infinite' (images like these) or 'finite' (those of this data set)"
        )
    if until is None:
        if population == "finite":
            raise InputError("population='finite' needs until: without early stopping all images are evaluated anyway")
        return None
    if until not in ("ranked", "best"):
        raise InputError(f"until={until!r}: choose 'ranked' or 'best', or None for all images")
    if methods < 2:
        raise InputError("until needs at least 2 methods: add a method or a control")
    if "no-retrain" not in evaluators:
        raise InputError(f"until={until!r} ranks the methods without retraining: add 'no-retrain' to evaluators")
    return EarlyStopping(until, confidence, margin, population)


def checked_autocast(name: Any) -> torch.dtype | None:
    if name is None:
        return None
    if name not in AUTOCAST:
        raise InputError(f"autocast={name!r}: choose {' or '.join(map(repr, AUTOCAST))}, or leave it out")
    return AUTOCAST[name]


def checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{name}={value!r}: give True or False")
    return value


def checked_self_test(value: Any, orders: Iterable[str]) -> bool:
    """Its scores are defined for the two orders that have a direction."""
    if checked_flag("self_test", value) and (unknown := [name for name in orders if name not in ORDERS]):
        raise InputError(f"self_test=True with order {unknown[0]!r}: choose orders from {', '.join(ORDERS)}")
    return bool(value)


def checked_device(name: Any) -> torch.device:
    try:
        device = torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device={name!r} cannot be used here ({reason}): leave it out, or give 'cpu'") from error
    if device.type == "meta":
        raise InputError("device='meta' holds no numbers and would destroy the weights: leave it out, or give 'cpu'")
    return device
