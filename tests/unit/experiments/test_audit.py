"""The audit of a comparison, on worlds whose answer is known."""

import numpy as np
import pandas as pd
import pytest

import roadworthy as rw
import worlds
from roadworthy.core.errors import InputError, RangeError
from roadworthy.experiments.audit_items import AuditSettings
from roadworthy.experiments.audit_run import TABLES, Audit


@pytest.fixture(scope="module")
def comparison():
    world = worlds.sides(n=160)
    return rw.compare(
        world.model, (world.images, world.labels), {"truth": world.truth}, imputers=["fixed", "linear"],
        fractions=(0.2, 0.8), controls=("random", "inverted"), batch_size=160, progress=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def audit(comparison):
    return comparison.audit(fractions=(0.2,), progress=False)


def test_the_audit_of_a_comparison_concludes_which_scores_leak(audit):
    table = audit.conclusions().set_index(["method", "order", "imputer"])["conclusion"]
    # The position of the block is the class, and both imputers reveal it. An accuracy of 97 % proves 0.81 bits.
    assert table["truth", "morf", "fixed"].startswith("leak found: at least ")
    assert table["truth", "morf", "linear"].startswith("leak found: at least ")
    assert (audit.conclusions().set_index(["method", "order"]).loc[("truth", "morf"), "bits"] > 0.8).all()
    assert set(table["random"]) == {"none found with 160 masks"}


def test_the_tables_behind_the_conclusions_are_available(audit):
    assert set(audit.tables) == set(TABLES)
    assert set(audit.geometry()["method"]) == {"truth", "random"}
    assert list(audit.masks().columns[:12]) == [
        "method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_low", "bits_high",
        "bits_if_optimal", "images",
    ]  # fmt: skip
    assert list(audit.detection().columns[:8]) == [
        "imputer", "masks", "fraction", "error", "auc", "low", "high", "guess",
    ]  # fmt: skip
    assert {"method", "order", "imputer", "fraction", "bits", "p", "half"} <= set(audit.leakage().columns)
    assert set(audit.detection()["masks"]) == {"scatter", "blobs", "truth", "random"}
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        first, *_ = str(audit.conclusions()).splitlines()
    assert first.split() == ["method", "order", "...", "imputer", "conclusion"]  # what fits a narrow terminal


def test_an_audit_changes_nothing_and_is_shown_where_it_is_given(comparison, audit, tmp_path):
    before = str(comparison)
    again = comparison.audit(fractions=(0.2,), progress=False)
    assert str(comparison) == before
    assert all(again.tables[name].equals(audit.tables[name]) for name in TABLES)
    without, with_it = (comparison.report(tmp_path / "page.html", audit=given).read_text() for given in (None, audit))
    assert "leak found: at least" in with_it
    assert "leak found: at least" not in without


def test_each_audit_returns_its_own_tables_whatever_came_before(comparison, tmp_path):
    # A second audit replaced the tables of the first, and asking for the first again returned those of the second.
    settings = [{"fractions": (0.2,)}, {"fractions": (0.8,)}, {"fractions": (0.2,)}]
    first, second, again = (
        comparison.audit(**one, questions=("geometry", "masks"), progress=False) for one in settings
    )
    for name in ("masks", "geometry", "leads"):
        assert first.tables[name].equals(again.tables[name])
        assert not first.tables[name].equals(second.tables[name])
    assert set(first.geometry()["fraction"]) == {0.2}
    assert set(second.geometry()["fraction"]) == {0.8}
    page = comparison.report(tmp_path / "page.html", audit=first)
    other = comparison.report(tmp_path / "other.html", audit=second)
    same = comparison.report(tmp_path / "same.html", audit=again)
    assert page.read_text() == same.read_text() != other.read_text()


def test_what_an_audit_asks_is_all_that_is_computed(comparison):
    only = comparison.audit(fractions=(0.3,), questions=("geometry",), progress=False)
    assert len(only.geometry())
    assert only.masks().empty
    assert only.detection().empty


def test_the_caller_may_change_a_table(audit):
    table = audit.masks()
    table["accuracy"] = 2
    assert (audit.masks()["accuracy"] <= 1).all()


def test_debiasing_uses_the_curves_of_the_noisy_linear_imputer_whatever_its_name():
    # It used those of the imputer that is called "linear".
    world = worlds.sides(n=40)

    def leads(imputers):
        comparison = rw.compare(
            world.model, (world.images, world.labels), {"truth": world.truth, "ig": "ig"}, imputers=imputers,
            fractions=(0.2, 0.8), controls=("random",), progress=False,
        )  # fmt: skip
        return comparison, comparison.audit(fractions=(0.2,), questions=("geometry",), progress=False).leads()

    plain, expected = leads({"linear": rw.NoisyLinear()})
    swapped, found = leads({"linear": rw.Constant(0.5), "fancy": rw.NoisyLinear()})
    assert len(expected)
    pd.testing.assert_frame_equal(found, expected)
    assert swapped.results.preferred == ("no-retrain", "fancy")
    assert "fancy" in swapped.conclusion().sentence
    ranked = plain.ranking()["method"].tolist()
    assert swapped.leaders()[0] == next(name for name in ranked if name != "random")


def test_images_in_random_order_are_audited_with_their_own_maps_and_labels():
    world = worlds.sides(n=120)
    stopped = rw.compare(
        world.model, (world.images, world.labels), {"truth": world.truth}, fractions=(0.2,), controls=("random",),
        until="ranked", confidence=0.9, map_batch_size=32, progress=False,
    )  # fmt: skip
    images = len(next(iter(stopped.predictions.values())))
    audit = stopped.audit(fractions=(0.2,), questions=("masks",), progress=False)
    masks = audit.masks().set_index(["method", "order"])
    assert (masks["images"] == images).all()
    # If maps and labels of different images were combined, the masks would carry no information.
    assert masks.loc[("truth", "morf"), "accuracy"] > 0.8


def test_without_labels_the_predictions_of_the_model_are_used():
    world = worlds.sides(n=80)

    def masks(data):
        comparison = rw.compare(
            world.model, data, {"truth": world.truth}, fractions=(0.2,), controls=(), progress=False
        )
        return comparison.audit(fractions=(0.2,), questions=("masks",), progress=False).masks()

    pd.testing.assert_frame_equal(masks(world.images), masks((world.images, world.labels)))  # it is never wrong


def test_tables_are_saved_and_read_back(audit, tmp_path):
    assert Audit.load(tmp_path) is None
    audit.save(tmp_path)
    again = Audit.load(tmp_path)
    for name in TABLES:
        pd.testing.assert_frame_equal(again.tables[name], audit.tables[name], check_dtype=False)
    assert repr(again) == repr(audit)
    renamed = Audit({name: table.replace("truth", "NA") for name, table in audit.tables.items()})
    renamed.save(tmp_path)
    assert "NA" in set(Audit.load(tmp_path).masks()["method"])  # a name, not a missing value
    # Conclusions of the first version ("leak-free") did not follow from what was measured: they are not shown again.
    audit.tables["conclusions"][["method", "conclusion"]].to_csv(tmp_path / "conclusions.csv", index=False)
    assert Audit.load(tmp_path).conclusions().empty
    (tmp_path / "masks.csv").write_text("")
    with pytest.raises(rw.errors.DataError, match=r"masks\.csv"):
        Audit.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fractions": (0.0, 0.5)}, RangeError, "0 and 1"),
        ({"fractions": (20,)}, RangeError, "20"),
        ({"classifier": "large"}, InputError, "small, resnet18"),
        ({"questions": ("mask",)}, InputError, "leakage, masks, detection, geometry"),
    ],
)
def test_invalid_settings_are_errors(options, error, message):
    with pytest.raises(error, match=message):
        AuditSettings(**options)


def test_an_audit_of_one_class_is_an_error():
    world = worlds.sides(n=20)
    images = world.images[world.labels == 0]
    alone = rw.compare(
        world.model, (images, np.zeros(10, int)), {"t": world.truth[:10]}, fractions=(0.5,), controls=(), progress=False
    )
    with pytest.raises(InputError, match="one class only"):
        alone.audit(progress=False)
