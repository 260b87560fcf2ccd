"""A plan: data, model, methods and settings as values; the product of its axes is the work to do.

A plan is read from TOML, checked whole, and never touches data. Paths in it are relative to its file.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from roadworthy.errors import PlanError, RoadworthyError
from roadworthy.parts import part
from roadworthy.removal import FRACTIONS, checked_fractions

Spec = Mapping[str, Any]
"""A part's `name` and its options: strings, numbers, lists and tables only."""

LOCATIONS = ("root", "weights", "path")
"""Options that say where something lies. What lies there is told by its fingerprint, so they belong to no id."""

CONTROLS = ("random", "edges", "centre")


@dataclass(frozen=True, kw_only=True)
class Plan:
    data: Spec
    model: Spec
    methods: Mapping[str, Spec]
    controls: tuple[str, ...] = CONTROLS
    blurred: tuple[str, ...] = ()
    """methods of which a blurred copy is judged too"""
    orders: tuple[str, ...] = ("morf", "lerf")
    imputers: Mapping[str, Spec] = field(default_factory=lambda: {"linear": {"name": "linear"}})
    judges: tuple[str, ...] = ("fixed-model",)
    fractions: tuple[float, ...] = FRACTIONS
    seeds: tuple[int, ...] = (0,)
    map_seed: int = 0
    map_batch: int = 64
    batch: int = 64
    threads: int = 1
    folder: Path = Path()
    """what relative paths are relative to"""

    @property
    def maps(self) -> dict[str, Spec]:
        """Every map that the plan needs: the methods', the controls' and the blurred copies'."""
        return {
            **self.methods,
            **{name: {"name": name} for name in self.controls},
            **{f"{name} blurred": {"name": "blurred", "of": self.methods[name]} for name in self.blurred},
        }

    def sweeps(self) -> Iterator[tuple[str, str, str, str, int]]:
        """(method, order, imputer, judge, seed): all that a curve is drawn from."""
        return product(self.maps, self.orders, self.imputers, self.judges, self.seeds)

    def counts(self) -> dict[str, int]:
        """How much work the plan means."""
        return {"maps": len(self.maps), "dots": len(list(self.sweeps())) * len(self.fractions), "trainings": 0}


def read_plan(path: Path | str) -> Plan:
    path = Path(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"{path}: no plan could be read ({error.strerror}); copy one from plans/") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} is no TOML: {error}") from error
    try:
        return plan_from(tables, path.resolve().parent)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error


_SECTIONS: dict[str, tuple[str, ...]] = {
    "data": (),
    "model": (),
    "methods": (),
    "evaluation": ("orders", "imputers", "judges", "fractions", "seeds", "controls", "blurred"),
    "run": ("map_seed", "map_batch", "batch", "threads"),
}


def plan_from(tables: Mapping[str, Any], folder: Path = Path()) -> Plan:
    """Check the tables of a plan; every complaint starts with the key it is about."""
    _check_keys("", tables, tuple(_SECTIONS))
    for name in ("data", "model", "methods"):
        if not isinstance(tables.get(name), dict) or not tables[name]:
            raise PlanError(f"[{name}] is missing or empty: see plans/ for one that works")
    evaluation, run = (_section(tables, name) for name in ("evaluation", "run"))
    methods = {name: _spec(f"methods.{name}", "attributions", value) for name, value in tables["methods"].items()}
    options: dict[str, Any] = {}
    if "fractions" in evaluation:
        options["fractions"] = _fractions(evaluation["fractions"])
    for key in ("orders", "judges", "controls", "blurred"):
        if key in evaluation:
            options[key] = _names(f"evaluation.{key}", evaluation[key], _known(key, methods))
    if "seeds" in evaluation:
        options["seeds"] = tuple(
            _whole(f"evaluation.seeds[{i}]", v) for i, v in enumerate(_list("evaluation.seeds", evaluation["seeds"]))
        )
    if "imputers" in evaluation:
        options["imputers"] = _imputers(evaluation["imputers"])
    options |= {key: _whole(f"run.{key}", value, least=0 if key == "map_seed" else 1) for key, value in run.items()}
    plan = Plan(data=_data(tables["data"]), model=_model(tables["model"]), methods=methods, folder=folder, **options)
    if clash := set(plan.methods) & {*plan.controls, *(f"{name} blurred" for name in plan.blurred)}:
        raise PlanError(f"methods.{clash.pop()}: a control has that name; rename the method")
    return plan


def _section(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = tables.get(name, {})
    if not isinstance(section, dict):
        raise PlanError(f"{name} = {section!r}: write it as a table, [{name}]")
    _check_keys(f"{name}.", section, _SECTIONS[name])
    return section


def _check_keys(prefix: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {prefix}{near[0]}? " if near else ""
            raise PlanError(f"{prefix}{key}: no such key; {hint}There are: {', '.join(known)}")


def _data(table: Mapping[str, Any]) -> Spec:
    spec = _spec("data", "datasets", table, free=("images",))
    if "images" in spec:
        _whole("data.images", spec["images"])
    return spec


def _model(table: Mapping[str, Any]) -> Spec:
    if "factory" in table:
        return {**table, "name": "load"}
    return _spec("model", "models", table, free=("weights", "mean", "std"))


def _spec(key: str, family: str, value: Any, free: Sequence[str] = ()) -> Spec:
    """A part by name, or a table with its name and options; the name is looked up now, the options when it is made."""
    spec = {"name": value} if isinstance(value, str) else value
    if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
        raise PlanError(f'{key} = {value!r}: give a name, or a table such as {{ name = "..." }}')
    try:
        part(family, spec["name"])
    except RoadworthyError as error:
        raise PlanError(f"{key}: {error}") from error
    return spec


def _imputers(value: Any) -> dict[str, Spec]:
    specs = [
        _spec(f"evaluation.imputers[{i}]", "imputers", one) for i, one in enumerate(_list("evaluation.imputers", value))
    ]
    named: dict[str, Spec] = {
        str(spec.get("as", spec["name"])): {k: v for k, v in spec.items() if k != "as"} for spec in specs
    }
    if len(named) < len(specs):
        raise PlanError(
            'evaluation.imputers: two have the same name; tell them apart with { name = "...", as = "..." }'
        )
    return named


def _known(key: str, methods: Mapping[str, Spec]) -> Sequence[str]:
    return {"orders": ("morf", "lerf"), "judges": ("fixed-model",), "controls": CONTROLS, "blurred": tuple(methods)}[
        key
    ]


def _names(key: str, value: Any, known: Sequence[str]) -> tuple[str, ...]:
    for name in _list(key, value, least=0):
        if name not in known:
            near = get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise PlanError(f"{key}: {name!r} is unknown; {hint}There are: {', '.join(known)}")
    return tuple(dict.fromkeys(value))


def _fractions(value: Any) -> tuple[float, ...]:
    try:
        return checked_fractions([0.0, *_list("evaluation.fractions", value)])
    except (RoadworthyError, TypeError, ValueError) as error:
        raise PlanError(f"evaluation.fractions: {error}") from error


def _list(key: str, value: Any, least: int = 1) -> list[Any]:
    if not isinstance(value, list) or len(value) < least:
        raise PlanError(f"{key} = {value!r}: give a list" + (" with at least one entry" if least else ""))
    return value


def _whole(key: str, value: Any, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < math.inf:
        raise PlanError(f"{key} = {value!r}: give a whole number of at least {least}")
    return value
