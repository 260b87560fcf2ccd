"""From a TOML file to a checked Plan. Paths in a plan are relative to its file."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

from pydantic import Strict

from roadworthy.core.errors import PlanError, RoadworthyError, UnknownNameError
from roadworthy.core.files import read_regular
from roadworthy.core.text import printable
from roadworthy.evaluation.experiment import TRAINED_EVALUATORS
from roadworthy.experiments.plans.plan import SHORTHANDS, SIZES, STRATEGIES, Plan, Spec, Training
from roadworthy.experiments.plans.plan_errors import check_keys, one_of, recipe_error, validated
from roadworthy.experiments.plans.schema import GAIN, RECIPE, TRAINING, Count, FunctionName, Tables
from roadworthy.experiments.registry import lookup
from roadworthy.models.loading import WEIGHTS
from roadworthy.training.gain import GainRecipe
from roadworthy.training.recipe import RECIPES, Recipe

_LARGEST = 1 << 24
"""Bytes of a plan."""


def read_plan(path: Path | str) -> Plan:
    """The plan in a TOML file, checked; nothing is built and no code of it runs."""
    if not isinstance(path, str | Path):
        raise PlanError(f"a plan is a TOML file, not a {type(path).__name__}: give its path")
    path = Path(path)
    try:
        text = read_regular(path, _LARGEST).decode("utf-8").replace("\r\n", "\n")
        tables = tomllib.loads(text)
    except OSError as error:
        raise PlanError(f"{path}: cannot read the plan ({error.strerror}); copy one from plans/") from error
    except RecursionError as error:
        raise PlanError(f"{path}: not a valid TOML file: it is nested too deeply") from error
    except ValueError as error:  # of TOML, of UTF-8, or a zero byte in the path
        raise PlanError(f"{path}: not a valid TOML file: {error}") from error
    try:
        return replace(plan_from(tables, path.resolve().parent), text=text)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error


def plan_from(tables: Mapping[str, Any], folder: Path = Path()) -> Plan:
    """Check the tables of a plan. Every complaint starts with the dotted key it is about."""
    sections: Mapping[str, Any] = validated(Tables, dict(tables))
    plan = Plan(
        data=_data("data", sections["data"]),
        model=_model("model", sections["model"]),
        methods={name: _spec(f"methods.{name}", "attributions", value) for name, value in sections["methods"].items()},
        folder=folder,
        **_axes(sections.get("evaluation", {})),
        **sections.get("run", {}),
    )
    _check_names(plan)
    plan = _with_gain(_with_retraining(plan, sections), sections)
    _check_settings(plan)
    return replace(plan, training=_training(plan, sections))


def _axes(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Strategies determine orders, imputers and evaluators, so a plan gives either."""
    if "units" in evaluation:
        evaluation = {**evaluation, "units": _units(evaluation["units"])}
    if "strategies" not in evaluation:
        given = {"imputers": _imputers(evaluation["imputers"])} if "imputers" in evaluation else {}
        return {**evaluation, **given}
    for key in ("orders", "imputers", "evaluators"):
        if key in evaluation:
            raise PlanError(f"evaluation.{key}: evaluation.strategies determines it; remove one of the two")
    settings = [setting for name in evaluation["strategies"] for setting in STRATEGIES[name]]
    orders, imputers, evaluators = (tuple(dict.fromkeys(axis)) for axis in zip(*settings, strict=True))
    specs = {name: {"name": name} for name in imputers}
    return {**evaluation, "orders": orders, "imputers": specs, "evaluators": evaluators}


def _units(value: Any) -> Spec:
    """Sizes and counts are checked here; files and functions when the experiment is built."""
    spec = _spec("evaluation.units", "units", value)
    if "name" in spec and "path" not in spec:
        try:
            lookup("units", spec["name"]).make(**{name: option for name, option in spec.items() if name != "name"})
        except RoadworthyError as error:
            raise PlanError(f"evaluation.units: {error}") from error
    return spec


def _imputers(values: Sequence[Any]) -> dict[str, Spec]:
    """name to spec: the name in `as`, or that of the imputer or function."""
    named: dict[str, Spec] = {}
    for position, value in enumerate(values):
        key = f"evaluation.imputers[{position}]"
        spec = dict(_spec(key, "imputers", value, extra=("as",)))
        name = validated(Annotated[str, Strict()], spec.pop("as", _last(spec)), key, "as")
        if name in named:
            raise PlanError(f'{key}: {name!r} is already taken; name this one with {{ ..., as = "another name" }}')
        named[name] = spec
    return named


def _last(spec: Spec) -> str:
    name: str = spec["name"] if "name" in spec else spec["function"].partition(":")[2]
    return name


def _data(key: str, table: Mapping[str, Any]) -> Spec:
    spec = _spec(key, "datasets", table, extra=SIZES)
    for size in (name for name in SIZES if name in spec):
        validated(Count, spec[size], key, size)
    if all(name in spec for name in SIZES):
        raise PlanError(f"{key}.sample: {key}.images is given too; remove one of the two")
    return spec


def _model(key: str, table: Mapping[str, Any]) -> Spec:
    if "factory" not in table:
        return _spec(key, "models", table, extra=("weights", "mean", "std"))
    if "name" in table:
        raise PlanError(f"{key}.factory: {key}.name is given too; remove one of the two")
    validated(FunctionName, table["factory"], key, "factory")
    return {**table, "name": "load"}


def _spec(key: str, family: str, value: Any, extra: Sequence[str] = ()) -> Spec:
    """A registry name or the user's own function, alone or in a table with options; `extra` are not its own."""
    spec = {"function" if ":" in value else "name": value} if isinstance(value, str) else value
    if not isinstance(spec, dict):
        raise PlanError(f'{key}: got {value!r}; give a name, or a table such as {{ name = "..." }}')
    spec = _long(key, spec) if family == "attributions" else spec
    takes_functions = family in ("attributions", "imputers", "units")
    if "function" in spec and takes_functions:
        if "name" in spec:
            raise PlanError(f"{key}.function: {key}.name is given too; remove one of the two")
        validated(FunctionName, spec["function"], key, "function")
        return spec
    if "name" not in spec:
        raise PlanError(f"{key}.name: missing; `roadworthy list` shows all names")
    try:
        entry = lookup(family, validated(Annotated[str, Strict()], spec["name"], key, "name"))
    except UnknownNameError as error:
        own = '; for a function of your own write "module:function"' if takes_functions else ""
        raise PlanError(f"{key}: {error}{own}") from error
    if entry.options is not None:
        check_keys(key, spec, ("name", *entry.options, *extra))
    if missing := [option for option in entry.required if option not in spec and option != "weights"]:
        raise PlanError(f"{key}.{missing[0]}: missing; {spec['name']!r} needs it")
    return spec


def _long(key: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """`{ captum = "LayerGradCam", layer = "layer4" }` as `{ name = "captum", method = "LayerGradCam", ... }`."""
    given = [name for name in SHORTHANDS if name in spec]
    if not given:
        return dict(spec)
    if len(given) > 1 or "name" in spec:
        raise PlanError(f"{key}.{given[0]}: {[*given[1:], 'name'][0]} is given too; remove one of the two")
    options = {name: value for name, value in spec.items() if name != given[0]}
    return {"name": given[0], SHORTHANDS[given[0]]: spec[given[0]], **options}


# ── sections that train ───────────────────────────────────────────────────────────────────────────────────────────────


def _with_retraining(plan: Plan, sections: Mapping[str, Any]) -> Plan:
    """[train] and [recipe]: needed by the evaluators that train, and useless without them ([gain] needs [train])."""
    trained = [evaluator for evaluator in plan.evaluators if evaluator in TRAINED_EVALUATORS]
    for name in ("train", "recipe"):
        if trained and name not in sections:
            raise PlanError(f"{name}: missing; the evaluator {trained[0]!r} needs it, see docs/retraining.md")
        if not trained and name in sections and not (name == "train" and "gain" in sections):
            raise PlanError(f'{name}: no evaluator trains; remove it, or add evaluation.evaluators = ["retrain"]')
    if not trained:
        return plan
    recipe, options = _recipe("recipe", sections["recipe"], RECIPE)
    if recipe.select == "best-on-test" and "fine-tuned" in trained:
        raise PlanError(
            "recipe.select: 'best-on-test' selects an epoch for each point, but 'fine-tuned' is one model for all "
            'points; use "validation" or "last"'
        )
    return replace(
        plan,
        train=_train(plan.data, sections["train"], "train"),
        recipe=recipe,
        network=_model("recipe.model", options["model"]) if "model" in options else None,
        loss=options.get("loss", ""),
        augment=options.get("augment", ""),
    )


def _with_gain(plan: Plan, sections: Mapping[str, Any]) -> Plan:
    """[gain] is for imputers without weights and for `roadworthy gain`; it trains on the train split alone."""
    if "gain" not in sections:
        if plan.trained_imputers:
            raise PlanError(
                f"evaluation.imputers: {plan.trained_imputers[0]!r} has no weights; give a file, "
                '{ name = "gain", weights = "..." }, or add [gain] and [train] to train it, see docs/gain.md'
            )
        return plan
    if "train" not in sections:
        raise PlanError("train: missing; a GAIN trains on images of its own, never on those to evaluate")
    options = validated(GAIN, sections["gain"], "gain")
    try:
        gain = GainRecipe(**options)
    except RoadworthyError as error:
        raise recipe_error("gain", error) from error
    return replace(plan, train=_train(plan.data, sections["train"], "train"), gain=gain)


def _training(plan: Plan, sections: Mapping[str, Any]) -> Training | None:
    if "training" not in sections:
        return None
    recipe, options = _recipe("training", sections["training"], TRAINING)
    data = _train(plan.data, options.get("data", {}), "training.data")
    if "weights" not in plan.model:  # Otherwise a run would explain an untrained model.
        raise PlanError('model.weights: missing; say where to save what [training] fits, as in "model.safetensors"')
    if str(plan.model["weights"]) in WEIGHTS:
        raise PlanError(
            f"model.weights: {plan.model['weights']} come with roadworthy, so there is nothing to train: leave "
            'out [training], or name the file that it writes, as in "model.safetensors"'
        )
    return Training(recipe, data, options.get("augment", ""))


def _train(data: Spec, table: Mapping[str, Any], key: str) -> Spec:
    """[data] with the options of `table` instead; split = "train" where the dataset has splits."""
    if "name" in table:
        return _data(key, table)
    has_splits = "split" in signature(lookup("datasets", data["name"]).make).parameters
    base = {name: value for name, value in data.items() if name not in SIZES}
    return _data(key, {**base, **({"split": "train"} if has_splits else {}), **table})


def _recipe(section: str, table: Mapping[str, Any], schema: Any) -> tuple[Recipe, Mapping[str, Any]]:
    """A named recipe with some of its fields changed, or one given by its fields; and the options beside it."""
    name = table.get("name")
    base = asdict(RECIPES[name]) if isinstance(name, str) and name in RECIPES else {}
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    options = validated(schema, {**base, **given}, section)
    names = {field.name for field in fields(Recipe)}
    try:
        recipe = Recipe(**{key: value for key, value in options.items() if key in names})
    except RoadworthyError as error:
        raise recipe_error(section, error) from error
    return recipe, {key: value for key, value in options.items() if key not in names}


# ── checks across keys ────────────────────────────────────────────────────────────────────────────────────────────────


def _check_names(plan: Plan) -> None:
    """Names of methods, controls and copies are distinct; copies are of methods. All can be shown as they are."""
    for table, names in (("methods", plan.methods), ("evaluation.imputers", plan.imputers)):
        for name in names:
            if not name.strip() or name != printable(name) or "\n" in name or "\t" in name:
                raise PlanError(
                    f"{table}: {name!r} is empty or holds control characters; give a name that can be shown"
                )
    for name in plan.copied:
        validated(Annotated[str, one_of(plan.methods)], name, "evaluation.copied")
    if plan.copied and not plan.copy_controls:
        raise PlanError('evaluation.copied: add "blurred" or "inverted" to evaluation.controls, or remove it')
    copies = {f"{name} {kind}" for name in plan.copied or plan.methods for kind in plan.copy_controls}
    for name in plan.methods:
        if name in plan.controls or name in copies:
            raise PlanError(f"methods.{name}: a control has the same name; rename the method")


def _check_settings(plan: Plan) -> None:
    if plan.until and len(plan.methods) + len(plan.blind_controls) < 2:
        raise PlanError(f"evaluation.until: {plan.until!r} compares methods; give at least two methods or controls")
    if plan.population == "finite" and not plan.until:
        raise PlanError('evaluation.population: "finite" needs until; without it all images are evaluated anyway')
    if plan.until and all(evaluator != "no-retrain" for *_, evaluator in plan.settings):
        raise PlanError(
            f"evaluation.until: {plan.until!r} ranks the methods without retraining; "
            'add "no-retrain" to evaluation.evaluators'
        )
    if plan.point_evaluators and plan.map_files:
        raise PlanError(
            f"methods.{next(iter(plan.map_files))}: precomputed maps cover the images of [data] only, "
            f"but {plan.point_evaluators[0]!r} needs maps of the train images too; remove one of the two"
        )
