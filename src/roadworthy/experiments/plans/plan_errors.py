"""What is wrong with a plan, as sentences: first the dotted key, then the value and the cure."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails
from pydantic_core.core_schema import no_info_after_validator_function

from roadworthy.core.errors import PlanError
from roadworthy.experiments.registry import suggestion

RENAMED = {
    "judges": "evaluators",
    "blurred": "copied",
    "batch": "batch_size",
    "map_batch": "map_batch_size",
    "optimiser": "optimizer",
    "centre": "center",
    "fixed-model": "no-retrain",
    "retrained": "retrain",
    "mask-tuned": "fine-tuned",
}
"""Keys and values of earlier versions, and what they are called now."""


def validated(schema: Any, value: Any, *location: str) -> Any:
    """`value` as pydantic reads it by `schema`; a complaint starts with the key at `location`."""
    try:
        return TypeAdapter(schema).validate_python(value)
    except ValidationError as error:
        # A misspelled key is reported before what is missing because of it.
        first = min(error.errors(), key=lambda details: details["type"] != "extra_forbidden")
        raise PlanError(_sentence(schema, first, location)) from error


@dataclass(frozen=True)
class one_of:
    """One of these names, also in the JSON schema, from which docs/plan-keys.md is written."""

    names: Iterable[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(lambda name: check_name(name, self.names), handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "enum": list(self.names)}


def check_name(name: str, known: Iterable[str]) -> str:
    if name not in known:
        raise ValueError(f"{name!r} is unknown; {_suggestion(name, known)}")
    return name


def check_keys(key: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in table:
        if name not in known:
            raise PlanError(unknown_key(_dotted((key, name)), known))


def unknown_key(key: str, known: Iterable[str]) -> str:
    section, _, name = key.rpartition(".")
    prefix = f"{section}." if section else ""
    return f"{key}: no such key; {_suggestion(name, known, lambda near: prefix + near)}"


def recipe_error(section: str, error: Exception) -> PlanError:
    """An error of a recipe, "field=value: cure", with the key of its field."""
    match = re.fullmatch(r"(\w+)=(\S+): (.*)", str(error), re.DOTALL)
    return PlanError("{}.{}: got {}; {}".format(section, *match.groups()) if match else f"{section}: {error}")


def _suggestion(name: str, known: Iterable[str], shown: Callable[[str], str] = repr) -> str:
    known = tuple(known)
    return suggestion(RENAMED[name] if RENAMED.get(name) in known else name, known, shown)


def _sentence(schema: Any, details: ErrorDetails, location: tuple[str, ...]) -> str:
    key = _dotted((*location, *details["loc"]))
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_key(key, _keys(schema, details["loc"][:-1]))
    if kind == "value_error":
        return f"{key}: {context['error']}"
    if kind == "missing":
        return f"{key}: missing; see plans/ for an example"
    return f"{key}: got {value!r}; {_cure(kind, key, context) or details['msg']}"


def _cure(kind: str, key: str, context: Mapping[str, Any]) -> str:
    return {
        "int_type": "give a whole number",
        "float_type": "give a number",
        "finite_number": "give a finite number",
        "string_type": 'give a string, as in "name"',
        "tuple_type": "give a list, as in [...]",
        "dict_type": f"write it as a table, [{key}]",
        "too_short": "give at least one entry",
        "literal_error": f"give {context.get('expected')}",
        "greater_than_equal": f"give at least {context.get('ge')}",
        "less_than": f"give less than {context.get('lt')}",
    }.get(kind, "")


def _keys(schema: Any, location: tuple[int | str, ...]) -> tuple[str, ...]:
    """The keys of the table at `location` in a schema of nested TypedDicts."""
    for name in location:
        schema = get_type_hints(schema)[str(name)]
    return tuple(get_type_hints(schema))


def _dotted(location: Iterable[int | str]) -> str:
    """
    >>> _dotted(("evaluation", "seeds", 0))
    'evaluation.seeds[0]'
    """
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "").lstrip(".")
