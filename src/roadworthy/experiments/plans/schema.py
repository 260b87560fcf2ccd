"""The tables of a plan and what each key may hold, for pydantic.

Strict: TOML has types, so "8" is not a number and true is not 1. Defaults are those of `Plan`.
"""

from dataclasses import MISSING, fields
from typing import Annotated, Any, NotRequired, TypeVar, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, Strict, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from roadworthy.core.masks import checked_fractions
from roadworthy.evaluation.experiment import EVALUATORS
from roadworthy.experiments.plans.plan import CONTROLS, ORDERS, STRATEGIES
from roadworthy.experiments.plans.plan_errors import check_name, one_of
from roadworthy.experiments.registry import REGISTRY
from roadworthy.models.prediction import AUTOCAST
from roadworthy.training.gain import GainRecipe
from roadworthy.training.recipe import RECIPES, Recipe


def _function_name(name: str) -> str:
    module, _, function = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), function)):
        raise ValueError(f'{name!r} does not name a function; write "module:function", as in "my_methods:saliency"')
    return name


def _augmentation(name: str) -> str:
    return _function_name(name) if ":" in name else check_name(name, REGISTRY["augmentations"])


_T = TypeVar("_T")
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
_List = Annotated[tuple[_T, ...], Strict(False), AfterValidator(lambda entries: tuple(dict.fromkeys(entries)))]
_NonEmpty = Annotated[_List[_T], Field(min_length=1)]
Count = Annotated[int, Strict(), Field(ge=1)]
_Seed = Annotated[int, Field(ge=0)]
FunctionName = Annotated[str, Strict(), AfterValidator(_function_name)]
_Augmentation = Annotated[str, AfterValidator(_augmentation)]
_Table = dict[str, Any]
_FilledTable = Annotated[_Table, Field(min_length=1)]


@with_config(_STRICT)
class _Evaluation(TypedDict, total=False):
    orders: _NonEmpty[Annotated[str, one_of(ORDERS)]]
    imputers: Annotated[tuple[Any, ...], Strict(False), Field(min_length=1)]
    evaluators: _NonEmpty[Annotated[str, one_of(EVALUATORS)]]
    strategies: _NonEmpty[Annotated[str, one_of(STRATEGIES)]]
    fractions: Annotated[_NonEmpty[float], AfterValidator(lambda given: checked_fractions([0.0, *given]))]
    seeds: _NonEmpty[_Seed]
    controls: _List[Annotated[str, one_of(CONTROLS)]]
    copied: _List[str]
    self_test: bool
    target: Annotated[str, one_of(("label", "prediction"))]
    channel_reduction: Annotated[str, one_of(("sum", "abs_sum", "max_abs"))]
    units: Any
    unit_reduction: Annotated[str, one_of(("mean", "sum", "max", "max_abs"))]
    until: Annotated[str, one_of(("ranked", "best"))]
    confidence: Annotated[float, Field(ge=0.5, lt=1)]
    margin: Annotated[float, Field(ge=0)]
    population: Annotated[str, one_of(("infinite", "finite"))]


@with_config(_STRICT)
class _Run(TypedDict, total=False):
    map_seed: _Seed
    map_batch_size: Count
    batch_size: Count
    block_size: Count
    threads: Count
    autocast: Annotated[str, one_of(tuple(AUTOCAST))]
    channels_last: bool


@with_config(_STRICT)
class Tables(TypedDict):
    data: _FilledTable
    model: _FilledTable
    methods: _FilledTable
    evaluation: NotRequired[_Evaluation]
    train: NotRequired[_Table]
    recipe: NotRequired[_Table]
    gain: NotRequired[_Table]
    training: NotRequired[_Table]
    run: NotRequired[_Run]


def _fields_of(recipe: type, **options: Any) -> Any:
    """The table of a recipe: the fields of its dataclass, and further options."""
    hints = get_type_hints(recipe)
    required = {field.name for field in fields(recipe) if field.default is MISSING}
    table = {name: hints[name] if name in required else NotRequired[hints[name]] for name in hints}
    optional = {name: NotRequired[hint] for name, hint in options.items()}
    return with_config(_STRICT)(TypedDict(recipe.__name__, {**optional, **table}))  # type: ignore[operator]


_RECIPE_NAME = Annotated[str, one_of(RECIPES)]
RECIPE = _fields_of(Recipe, name=_RECIPE_NAME, model=_Table, loss=FunctionName, augment=_Augmentation)
TRAINING = _fields_of(Recipe, name=_RECIPE_NAME, data=_Table, augment=_Augmentation)
GAIN = _fields_of(GainRecipe)
