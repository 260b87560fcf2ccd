"""Recipes: schedules and the checks of settings."""

import pytest

from roadworthy.core.errors import InputError, RangeError
from roadworthy.training.recipe import RECIPES, Recipe


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (Recipe(epochs=4, lr=2.0), [2, 2, 2, 2]),
        (Recipe(epochs=4, lr=2.0, schedule="cosine"), [2, 1 + 0.5**0.5, 1, 1 - 0.5**0.5]),  # 1 + cos(0, π/4, π/2, 3π/4)
        (Recipe(epochs=4, lr=2.0, schedule="step", milestones=(1, 3)), [2, 0.2, 0.2, 0.02]),
        (Recipe(epochs=4, lr=2.0, schedule="step", milestones=(2,), gamma=0.5), [2, 2, 1, 1]),
    ],
)
def test_a_schedule_sets_the_rate_of_each_epoch(schedule: Recipe, rates: list[float]) -> None:
    assert [schedule.lr_at(epoch) for epoch in range(4)] == pytest.approx(rates)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", 0),
        ("epochs", 2.5),
        ("batch_size", 0),
        ("batch_size", 0.5),
        ("lr", 0.0),
        ("lr", float("nan")),
        ("lr", float("inf")),
        ("momentum", 1.0),
        ("momentum", -0.1),
        ("weight_decay", -1e-4),
        ("gamma", 0.0),
        ("gamma", 1.5),
        ("milestones", (3, 2)),
        ("milestones", (0, 2)),
        ("milestones", (2, 2)),
    ],
)
def test_a_setting_out_of_range_is_an_error_that_names_field_and_value(field: str, value: object) -> None:
    with pytest.raises(RangeError) as caught:
        Recipe(**{"epochs": 1, field: value})  # type: ignore[arg-type]
    assert f"{field}={value}: " in str(caught.value)


@pytest.mark.parametrize(
    ("field", "known"), [("optimizer", "adam, sgd"), ("schedule", "constant, cosine, step"), ("autocast", "bfloat16")]
)
def test_an_unknown_choice_lists_the_known_ones(field: str, known: str) -> None:
    with pytest.raises(InputError, match=f"{field}='magic'.*{known}"):
        Recipe(**{"epochs": 1, field: "magic"})  # type: ignore[arg-type]


@pytest.mark.parametrize(("schedule", "milestones"), [("step", ()), ("cosine", (3,)), ("constant", (3,))])
def test_milestones_are_for_the_step_schedule_only(schedule: str, milestones: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match='"step" needs milestones'):
        Recipe(epochs=5, schedule=schedule, milestones=milestones)  # type: ignore[arg-type]


def test_patience_without_a_selection_is_an_error() -> None:
    with pytest.raises(InputError, match='patience=2 with select="last"'):
        Recipe(epochs=3, patience=2, select="last")
    with pytest.raises(RangeError, match="validation=1"):
        Recipe(epochs=3, validation=1)
    with pytest.raises(InputError, match="select='magic'"):
        Recipe(epochs=3, select="magic")  # type: ignore[arg-type]


def test_the_spec_of_a_recipe_names_channels_last_only_where_it_is_set() -> None:
    # Ids are hashes of specs: those recorded before the field existed must not change.
    assert "channels_last" not in Recipe(epochs=1).spec
    assert Recipe(epochs=1, channels_last=True).spec == {**Recipe(epochs=1).spec, "channels_last": True}


def test_the_papers_recipes_have_its_learning_rates() -> None:
    cifar, food = RECIPES["paper-cifar10"], RECIPES["paper-food101"]
    assert [cifar.lr_at(epoch) for epoch in (0, 24, 25, 39)] == pytest.approx([0.01, 0.01, 0.001, 0.001])
    assert [food.lr_at(epoch) for epoch in (0, 10, 20, 39)] == pytest.approx([1e-2, 1e-3, 1e-4, 1e-5])
    for recipe in (cifar, food):
        assert (recipe.epochs, recipe.batch_size, recipe.optimizer, recipe.momentum) == (40, 32, "sgd", 0.9)
        assert recipe.select == "validation"
