"""From a TOML file to a Plan, checked whole: every complaint starts with the key it is about.

Paths in a plan are relative to its file.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any

from roadworthy.core.errors import PlanError, RoadworthyError
from roadworthy.core.masks import checked_fractions
from roadworthy.evaluation.evaluators import RECIPES
from roadworthy.experiments.plans.plan import CONTROLS, EVALUATORS, SIZES, STRATEGIES, TRAINED, Plan, Spec, Training
from roadworthy.experiments.registry import REGISTRY, part
from roadworthy.training.gain import GainRecipe
from roadworthy.training.loop import Recipe


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
    "evaluation": ("orders", "imputers", "evaluators", "strategies", "fractions", "seeds", "controls", "blurred"),
    "train": (),
    "recipe": ("name", "model", "loss", "augment", *(one.name for one in fields(Recipe))),
    "gain": tuple(one.name for one in fields(GainRecipe)),
    "training": ("name", "data", "augment", *(one.name for one in fields(Recipe))),
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
    for key in ("orders", "evaluators", "strategies", "controls", "blurred"):
        if key in evaluation:
            options[key] = _names(f"evaluation.{key}", evaluation[key], _known(key, methods))
    if "seeds" in evaluation:
        options["seeds"] = tuple(
            _whole(f"evaluation.seeds[{i}]", v) for i, v in enumerate(_list("evaluation.seeds", evaluation["seeds"]))
        )
    if "imputers" in evaluation:
        options["imputers"] = _imputers(evaluation["imputers"])
    options |= {key: _whole(f"run.{key}", value, least=0 if key == "map_seed" else 1) for key, value in run.items()}
    data, model = _data("data", tables["data"]), _model("model", tables["model"])
    plan = Plan(data=data, model=model, methods=methods, folder=folder, **_strategic(options))
    if clash := set(plan.methods) & {*plan.controls, *(f"{name} blurred" for name in plan.blurred)}:
        raise PlanError(f"methods.{clash.pop()}: a control has that name; rename the method")
    return replace(_with_gain(_with_training(plan, tables), tables), training=_training(data, tables))


def _strategic(options: Mapping[str, Any]) -> dict[str, Any]:
    """Strategies say what the axes are; both at once would contradict each other."""
    if "strategies" not in options:
        return dict(options)
    if not options["strategies"]:
        raise PlanError("evaluation.strategies = []: give a list with at least one entry")
    if given := [key for key in ("orders", "imputers", "evaluators") if key in options]:
        raise PlanError(f"evaluation.{given[0]}: the strategies say that already; leave one of the two out")
    settings = [setting for name in options["strategies"] for setting in STRATEGIES[name]]
    orders, imputers, evaluators = (tuple(dict.fromkeys(axis)) for axis in zip(*settings, strict=True))
    return {
        **options,
        "orders": orders,
        "imputers": {name: {"name": name} for name in imputers},
        "evaluators": evaluators,
    }


def _with_training(plan: Plan, tables: Mapping[str, Any]) -> Plan:
    """The sections of the evaluators that train: needed by them, and by nobody else."""
    trained = [evaluator for evaluator in plan.evaluators if evaluator in TRAINED]
    for name in ("train", "recipe"):
        if not trained and name in tables and not (name == "train" and "gain" in tables):
            raise PlanError(f'[{name}]: no evaluator trains here; add evaluators = ["retrain"] to [evaluation]')
        if trained and not isinstance(tables.get(name), dict):
            raise PlanError(f"[{name}] is missing: the evaluator {trained[0]!r} needs it; see docs/retraining.md")
    if not trained:
        return plan
    table = dict(_section(tables, "recipe"))
    network = table.pop("model", None)
    loss, augment = (_function("recipe", key, table.pop(key, "")) for key in ("loss", "augment"))
    recipe = _recipe("recipe", table)
    if recipe.select == "best-on-test" and "fine-tuned" in trained:
        raise PlanError(
            "recipe.select = 'best-on-test': a fine-tuned model evaluators all points, so it cannot be chosen so"
        )
    return replace(
        plan,
        train=_train(plan.data, tables["train"]),
        recipe=recipe,
        network=None if network is None else _model("recipe.model", network),
        loss=loss,
        augment=augment,
    )


def _function(section: str, key: str, value: Any) -> str:
    """One of the user's own, by "package.module:function", or an augmentation of ours."""
    if not isinstance(value, str):
        raise PlanError(f'{section}.{key} = {value!r}: name a function, as in "mine:{key}"')
    if key == "augment" and value and ":" not in value:
        _names(f"{section}.augment", [value], tuple(REGISTRY["augmentations"]))
    return value


def _training(data: Spec, tables: Mapping[str, Any]) -> Training | None:
    if "training" not in tables:
        return None
    table = dict(_section(tables, "training"))
    learned, augment = table.pop("data", {}), _function("training", "augment", table.pop("augment", ""))
    if not isinstance(learned, dict):
        raise PlanError(f"training.data = {learned!r}: write it as a table, [training.data]")
    training = Training(_recipe("training", table), _train(data, learned), augment)
    if "weights" not in tables["model"]:  # a run would explain fresh weights, and say nothing
        raise PlanError('[training]: say in [model] where its weights belong, as in weights = "mine.safetensors"')
    return training


def _with_gain(plan: Plan, tables: Mapping[str, Any]) -> Plan:
    """[gain] is for imputers without weights and for `roadworthy gain`; it learns from the train split alone."""
    if "gain" not in tables:
        if plan.trained_imputers:
            raise PlanError(
                f"evaluation.imputers: {plan.trained_imputers[0]!r} has no weights: name a file, "
                '{ name = "gain", weights = "..." }, or say in [gain] and [train] how it is trained; see docs/gain.md'
            )
        return plan
    if not isinstance(tables.get("train"), dict):
        raise PlanError("[train] is missing: a GAIN learns from images of its own, never from those that are evaluated")
    try:
        gain = GainRecipe(**_section(tables, "gain"))
    except (RoadworthyError, TypeError) as error:
        raise PlanError(f"gain: {error}") from error
    return replace(plan, train=_train(plan.data, tables["train"]), gain=gain)


def _train(data: Spec, table: Mapping[str, Any]) -> Spec:
    """The options of [data] but for what [train] says; split = "train" where the data set has splits."""
    if "name" in table:
        return _data("train", table)
    has_splits = "split" in signature(part("datasets", data["name"]).make).parameters
    base = {key: value for key, value in data.items() if key not in SIZES}
    return _data("train", {**base, **({"split": "train"} if has_splits else {}), **table})


def _recipe(section: str, table: Mapping[str, Any]) -> Recipe:
    """A named recipe with some of its fields changed, or all by its fields."""
    options: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    name = options.pop("name", None)
    if name is not None:
        _names(f"{section}.name", [name], tuple(RECIPES))
    try:
        return replace(RECIPES[name], **options) if name else Recipe(**options)
    except (RoadworthyError, TypeError) as error:
        raise PlanError(f"{section}: {error}") from error


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


def _data(key: str, table: Mapping[str, Any]) -> Spec:
    spec = _spec(key, "datasets", table, free=SIZES)
    for count in (name for name in SIZES if name in spec):
        _whole(f"{key}.{count}", spec[count], least=1)
    if all(name in spec for name in SIZES):
        raise PlanError(f"{key}: images takes the first so many, sample draws so many at random: give one of the two")
    return spec


def _model(key: str, table: Mapping[str, Any]) -> Spec:
    if "factory" in table:
        return {**table, "name": "load"}
    return _spec(key, "models", table, free=("weights", "mean", "std"))


def _spec(key: str, family: str, value: Any, free: Sequence[str] = ()) -> Spec:
    """A part by name, or a table with its name and options; `free` ones are not the part's own."""
    spec = {"name": value} if isinstance(value, str) else value
    if not isinstance(spec, dict) or not isinstance(spec.get("name"), str):
        raise PlanError(f'{key} = {value!r}: give a name, or a table such as {{ name = "..." }}')
    try:
        options = part(family, spec["name"]).options
    except RoadworthyError as error:
        raise PlanError(f"{key}: {error}") from error
    if options is not None:
        _check_keys(f"{key}.", spec, ("name", *options, *free))
    return spec


def _imputers(value: Any) -> dict[str, Spec]:
    specs = [
        _spec(f"evaluation.imputers[{i}]", "imputers", one, free=("as", "weights"))
        for i, one in enumerate(_list("evaluation.imputers", value))
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
    known = {
        "orders": ("morf", "lerf"),
        "evaluators": EVALUATORS,
        "strategies": tuple(STRATEGIES),
        "controls": CONTROLS,
    }
    return {**known, "blurred": tuple(methods)}[key]


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
