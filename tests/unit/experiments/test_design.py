"""Which items an experiment amounts to, and which of them come next."""

import numpy as np
import pytest

from roadworthy import statistics
from roadworthy.core.results import Copy, Point
from roadworthy.evaluation.experiment import Setting
from roadworthy.experiments.design import Design, EarlyStopping
from roadworthy.experiments.items import Block, Item
from roadworthy.experiments.pending import closure, pending, survey
from roadworthy.experiments.recorded import read_predictions
from roadworthy.experiments.stores.scratch import ScratchStore

BLOCKS = tuple(Block("test", index, tuple(range(50 * index, 50 * index + 50)), f"t{index}") for index in range(4))
TRAIN_BLOCKS = tuple(Block("train", index, tuple(range(9 * index, 9 * index + 9)), f"l{index}") for index in range(2))
ENDURANCE = {
    "good": 0.9,
    "twin": 0.9,
    "middling": 0.7,
    "poor": 0.55,
    "poor too": 0.55,
    "random": 0.5,
    "random too": 0.5,
}
"""The fraction up to which an image stays correct in LeRF, on average; in MoRF 1 minus this."""


def design(
    methods=("good", "poor"),
    controls=("random",),
    copies=(),
    orders=("morf", "lerf"),
    imputers=("linear",),
    evaluators=("no-retrain",),
    **options,
):
    return Design(
        **{
            "model": {"fingerprint": "m"},
            "methods": {name: {"name": name} for name in methods},
            "blind_controls": {name: {"name": name} for name in controls},
            "copy_controls": copies,
            "orders": {name: {"name": name} for name in orders},
            "imputers": {name: {"name": name} for name in imputers},
            "settings": tuple(Setting(o, i, e) for o in orders for i in imputers for e in evaluators),
            "fractions": (0.25, 0.5, 0.75),
            "seeds": (0,),
            "target": "label",
            "maps": {"seed": 0},
            "batch_size": 8,
            "threads": 1,
            "blocks": BLOCKS,
            "train_blocks": TRAIN_BLOCKS,
            **options,
        }
    )


def arrays(item):
    """What an item might hold: predictions of methods that differ as ENDURANCE says, the same for every design."""
    blocks = [item.block] if item.block else [need.block for need in item.needs if need.kind == "baseline"]
    rows = np.array([row for block in blocks for row in block.rows])
    if item.kind == "maps":
        return {"maps": np.zeros((len(rows), 1, 1), np.float32), "ties": np.zeros((len(rows), 2))}
    if item.kind in ("imputer", "model"):
        return {"weights": np.zeros(1)}
    label = item.label
    method, order = label.get("method", "").removesuffix(" blurred"), label.get("order", "")
    end = ENDURANCE.get(method, 0.0) if order == "lerf" else 1 - ENDURANCE.get(method, 0.0)
    noise = 0.1 * np.random.default_rng(rows[0]).normal(size=len(rows))
    fraction = label.get("fraction", 0.0)
    correct = (end + noise > fraction) | (fraction == 0)
    labels = rows % 4
    return {
        "ids": rows,
        "labels": labels,
        "predicted": np.where(correct, labels, (labels + 1) % 4),
        "probability": correct.astype(np.float32),
    }


def run(design, store=None):
    """Run wave by wave; returns the store and what each wave computed."""
    store, waves = store or ScratchStore(), []
    while (state := survey(design, store)).missing:
        waves.append(state.missing)
        for item in state.missing:
            assert all(need.id in store.ids() for need in item.needs), "an item came before what it needs"
            store.write(item, arrays(item))
    return store, waves


def kinds(items):
    return {kind: sum(item.kind == kind for item in items) for kind in {item.kind for item in items}}


# ── closure and pending ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def diamond():
    base = Item("baseline", {}, {})
    left, right = Item("maps", {"side": 0}, {}, (base,)), Item("maps", {"side": 1}, {}, (base,))
    return base, left, right, Item("predictions", {}, {}, (left, right))


def test_the_closure_holds_each_needed_item_once_and_needed_ones_first(diamond):
    assert [item.id for item in closure([diamond[-1], diamond[1]])] == [item.id for item in diamond]


def test_pending_items_are_those_that_a_missing_goal_needs(diamond):
    base, left, right, goal = diamond
    assert pending([goal], set()) == diamond
    assert pending([goal], {base.id, left.id}) == (right, goal)
    assert pending([goal], {goal.id}) == ()  # what a stored item needed may be deleted
    assert pending([goal, right], {left.id}) == (base, right, goal)


# ── items ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def ids(design, **filters):
    points = design.points(design.base_methods, design.settings)
    return {
        point: tuple(item.id for item in design.items(point, design.blocks, {}))
        for point in points
        if all(getattr(point, name) == value for name, value in filters.items())
    }


@pytest.mark.parametrize("change", [{"methods": ("poor", "good", "middling")}, {"seeds": (3, 0)},
                                    {"fractions": (0.1, 0.25, 0.5, 0.75, 0.9)}, {"imputers": ("fixed", "linear")},
                                    {"evaluators": ("fine-tuned", "retrain", "no-retrain")}, {"copies": ("blurred",)},
                                    {"early_stopping": EarlyStopping("ranked")}])  # fmt: skip
def test_what_is_added_later_needs_only_its_own_items(change):
    before, after = ids(design()), ids(design(**change))
    assert before.items() <= after.items()


@pytest.mark.parametrize("change", [{"model": {"fingerprint": "other"}}, {"target": "prediction"}, {"batch_size": 4},
                                    {"threads": 2}])  # fmt: skip
def test_another_model_target_or_batch_size_is_new_work(change):
    before, after = ids(design()), ids(design(**change))
    assert not {id for items in before.values() for id in items} & {id for items in after.values() for id in items}


def test_other_images_in_a_block_leave_the_other_blocks_alone():
    other = (*BLOCKS[:2], Block("test", 2, BLOCKS[2].rows, "changed"), BLOCKS[3])
    before, after = ids(design()), ids(design(blocks=other))
    for point, items in before.items():
        assert [a == b for a, b in zip(items, after[point], strict=True)] == [True, True, False, True]


def test_point_0_of_the_given_model_is_the_baseline_whatever_the_curve():
    assert len(set(ids(design(imputers=("linear", "fixed"), seeds=(0, 1)), fraction=0.0).values())) == 1


def test_the_training_without_removal_is_shared_by_all_curves_of_a_seed():
    trained = design(methods=("good",), evaluators=("retrain",), imputers=("linear", "fixed"), seeds=(0, 1))
    assert all(len(items) == 1 for items in ids(trained).values())  # one training covers all blocks
    assert len(set(ids(trained, fraction=0.0).values())) == 2
    # 2 methods × 2 orders × 2 imputers × 2 seeds × 3 fractions, and one per seed without removal
    assert len(set(ids(trained).values())) == 48 + 2


def test_a_retrained_model_needs_maps_of_train_and_test_images():
    trained = design(evaluators=("retrain",))
    item = trained.retrained(Point("good", "morf", "linear", "retrain", 0.5, 0), BLOCKS, None)
    needs = [(need.kind, need.label["split"]) for need in item.needs]
    assert needs == [("baseline", "test")] * 4 + [("maps", "test")] * 4 + [("maps", "train")] * 2


def test_a_warm_start_depends_on_the_given_weights_and_retraining_on_the_architecture_alone():
    point = Point("good", "morf", "linear", "retrain", 0.0, 0)
    for evaluator, same in (("retrain", True), ("warm-start", False)):
        one, other = (
            design(model=model, network={"name": "net"}, evaluators=(evaluator,))._retrained(
                point._replace(evaluator=evaluator), (), None
            )
            for model in ({"fingerprint": "m"}, {"fingerprint": "n"})
        )
        assert (one.id == other.id) == same


def test_a_model_is_fine_tuned_once_per_imputer_and_seed():
    tuned = design(evaluators=("fine-tuned",), imputers=("linear", "fixed"), seeds=(0, 1))
    _, (wave,) = run(tuned)
    assert kinds(wave)["model"] == 4
    # Its point 0 depends on imputer and seed, not on method and order: 2 · 2 · 4 blocks. Above 0: 3 methods × 2 orders
    # × 2 imputers × 2 seeds × 3 fractions × 4 blocks.
    assert kinds(wave)["predictions"] == 16 + 288


def test_a_trained_imputer_is_needed_by_its_points_alone():
    both = design(imputers=("linear", "gain"), trained_imputers=("gain",))
    (trained,) = both.imputer_item("gain")
    for point in both.points(["good"], both.settings):
        needs = {need.id for item in both.items(point, BLOCKS, {}) for need in item.needs}
        assert (trained.id in needs) == (point.imputer == "gain" and point.fraction > 0)


def test_two_names_of_one_part_are_computed_once():
    twice = design(methods=("good",), controls=())
    renamed = design(methods=("good",), controls=())
    object.__setattr__(renamed, "methods", {"another name": {"name": "good"}})
    assert [*ids(twice).values()] == [*ids(renamed).values()]


def test_the_preferred_setting_is_the_noisy_linear_imputer_whatever_its_name():
    # It was the imputer that is called "linear".
    named = design(imputers=("linear",))
    object.__setattr__(named, "imputers", {"linear": {"name": "constant"}, "fancy": {"name": "linear"}})
    object.__setattr__(named, "settings", tuple(Setting("morf", name, "no-retrain") for name in named.imputers))
    assert named.preferred == ("no-retrain", "fancy")
    assert design(imputers=("fixed",)).preferred is None
    assert design(evaluators=("retrain",)).preferred is None


# ── copies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_leading_methods_are_copied_once_all_are_known():
    copied = design(methods=("poor", "good", "middling"), copies=("blurred", "inverted"))
    store, waves = run(copied)
    assert len(waves) == 2
    assert {item.label["copy_of"] for item in waves[1] if item.kind == "maps"} == {"good", "middling"}
    state = survey(copied, store)
    assert set(state.copies) == {f"{name} {kind}" for name in ("good", "middling") for kind in ("blurred", "inverted")}
    assert state.final
    assert not survey(copied, ScratchStore()).final  # points follow that are not known yet
    assert survey(design(), ScratchStore()).final


def test_named_methods_are_copied_in_the_first_wave():
    copied = design(methods=("good", "poor"), copies=("blurred",), copied=("poor",))
    store, waves = run(copied)
    assert len(waves) == 1
    assert set(survey(copied, store).copies) == {"poor blurred"}
    assert survey(copied, ScratchStore()).final


def test_inverted_copies_are_aliases_of_the_other_order():
    copied = design(copies=("inverted",), copied=("good",))
    store, (wave,) = run(copied)
    assert not any("inverted" in str(item.label) for item in wave)
    copies = survey(copied, store).copies
    for point in copied.points(["good inverted"], copied.settings):
        other = point._replace(method="good", order={"morf": "lerf", "lerf": "morf"}[point.order])
        assert copied.items(point, BLOCKS, copies) == copied.items(other, BLOCKS, {})


def test_without_both_orders_nothing_is_inverted():
    copied = design(copies=("blurred", "inverted"), copied=("good",), orders=("morf",))
    assert copied.copies(("good",)) == [Copy("good", "blurred")]


def test_a_blurred_copy_is_made_from_the_maps_of_its_method():
    copied = design(copies=("blurred",))
    item = copied.map_item("good blurred", BLOCKS[0], Copy("good", "blurred"))
    assert item.needs == (copied.map_item("good", BLOCKS[0]),)


# ── early stopping ───────────────────────────────────────────────────────────────────────────────────────────────────


def taken(store, design):
    return len(survey(design, store).blocks)


def test_images_are_taken_block_by_block_until_the_methods_are_ranked():
    stopping = design(methods=("good",), early_stopping=EarlyStopping("ranked", 0.9))
    store, waves = run(stopping)
    assert 1 <= taken(store, stopping) < 4
    for count, wave in enumerate(waves):
        assert {item.block.index for item in wave} == {count}
    # Equal methods, and a margin that 200 images cannot resolve: all images are taken.
    twins = design(methods=("good", "twin"), controls=(), early_stopping=EarlyStopping("ranked", 0.9, 0.001))
    store, waves = run(twins)
    assert (taken(store, twins), len(waves)) == (4, 4)


def test_until_best_stops_as_soon_as_one_method_leads():
    methods = {"methods": ("good", "unknown", "unknown too"), "controls": ()}  # two that are equal, far behind
    best = design(**methods, early_stopping=EarlyStopping("best", 0.9, 0.001))
    ranked = design(**methods, early_stopping=EarlyStopping("ranked", 0.9, 0.001))
    assert taken(run(best)[0], best) < 4
    assert taken(run(ranked)[0], ranked) == 4


def test_evaluators_that_train_and_copies_follow_on_the_images_that_were_taken():
    stopping = design(
        methods=("good",), copies=("blurred",), evaluators=("no-retrain", "retrain"),
        early_stopping=EarlyStopping("ranked", 0.9),
    )  # fmt: skip
    store, waves = run(stopping)
    count = taken(store, stopping)
    assert count < 4
    assert {item.block.index for wave in waves for item in wave if item.block and item.block.split == "test"} == set(
        range(count)
    )
    retrained = [item for wave in waves for item in wave if item.label.get("evaluator") == "retrain"]
    assert {sum(need.kind == "baseline" for need in item.needs) for item in retrained} == {count}


def test_early_stopping_does_not_wait_for_controls_to_be_separated_from_each_other():
    # Two controls of equal merit, which 200 images cannot separate or tie within .001; "good" is far ahead of both.
    for until in ("ranked", "best"):
        rule = EarlyStopping(until, 0.9, 0.001)
        equal = design(methods=("good",), controls=("random", "random too"), early_stopping=rule)
        store, _ = run(equal)
        assert taken(store, equal) < 4


def test_until_best_stops_when_a_control_is_the_best_but_until_ranked_goes_on():
    # The control is far ahead, which ends the question who is best; two equal methods of the user are not separated.
    for until, blocks in (("best", 1), ("ranked", 4)):
        rule = EarlyStopping(until, 0.9, 0.001)
        led = design(methods=("poor", "poor too"), controls=("good",), early_stopping=rule)
        assert taken(run(led)[0], led) == blocks


def test_all_pairs_share_the_error_of_early_stopping():
    def comparisons(**options):
        return design(**options, early_stopping=EarlyStopping("ranked")).stopping_rule.comparisons

    # good, poor, random: 3 pairs; per imputer; and blurred copies of both methods: 5 contenders, 10 pairs
    assert comparisons() == 3
    assert comparisons(imputers=("linear", "fixed")) == 6
    assert comparisons(copies=("blurred",)) == 10
    # Three named copies: 3 methods, random and 3 copies are 7 contenders, 21 pairs.
    three = ("good", "middling", "poor")
    assert comparisons(methods=three, copies=("blurred",), copied=three) == 21
    # Copies of the leaders, whoever they are: 9 methods and 2 · 9 possible copies are 27 contenders, 351 pairs.
    nine = tuple(f"m{number}" for number in range(9))
    assert comparisons(methods=nine, controls=(), copies=("blurred", "inverted")) == 351


def test_the_error_is_shared_by_every_pair_that_the_tables_show():
    # Two imputers, two methods, random, and a blurred copy of each method: 10 pairs per block.
    both = design(
        copies=("blurred",), imputers=("linear", "fixed"), early_stopping=EarlyStopping("ranked", 0.9),
    )  # fmt: skip
    store, _ = run(both)
    state = survey(both, store)
    shown = statistics.pairwise(read_predictions(state.points, store), stopping=both.stopping_rule)
    assert len(shown) == both.stopping_rule.comparisons == 20


def test_a_finished_run_needs_no_ranking_if_there_are_no_copies(monkeypatch):
    store, _ = run(design())

    def expensive(*arguments, **options):
        raise AssertionError("a ranking was computed")

    monkeypatch.setattr("roadworthy.experiments.design.statistics.ranking", expensive)
    assert survey(design(), store).final
