"""Experiments that remove patches, regions or superpixels: the same results through either front, and known answers."""

import textwrap
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import roadworthy as rw
import worlds
from roadworthy.core.types import Batch
from roadworthy.evaluation.units import UnitSetting, units_for
from unit.experiments.test_parity import MINE, assert_equal_predictions

needs_slic = pytest.mark.skipif(find_spec("skimage") is None, reason="scikit-image is not installed")
WORLD = worlds.one_patch()
TRUE_PATCH = torch.zeros(40, 4, 4)
TRUE_PATCH[:, 1, 2] = 1
UNITS = {
    "pixels": "pixels",
    "patches 4": rw.Patches(4),
    "patches 2": rw.Patches(2),
    "patches 5": rw.Patches(5),  # 5 does not divide 16
    "superpixels": pytest.param(rw.Superpixels(30), marks=needs_slic),
    "a mask": rw.FeatureMask(np.arange(256).reshape(16, 16) // 8),
}


def compared(units="pixels", methods=None, **options):
    methods = methods or {"truth": WORLD.truth, "noise": rw.Key(0).uniform(range(40), (16, 16))}
    settings = {"fractions": (0.1, 0.3, 0.5), "controls": ("random",), "progress": False, **options}
    return rw.compare(WORLD.model, (WORLD.images, WORLD.labels), methods, units=units, **settings)


@pytest.mark.parametrize("units", UNITS.values(), ids=list(UNITS))
def test_the_true_patch_comes_first_under_every_unit(units):
    table = compared(units).ranking()
    assert table["method"][0] == "truth"
    assert table["srg_low"][0] > table.set_index("method")["srg"]["noise"]


def test_patches_of_one_pixel_give_the_bytes_of_pixels():
    pixels, patches = compared(seeds=(0, 1)), compared(rw.Patches(1), seeds=(0, 1))
    for point, predictions in pixels.predictions.items():
        other = patches.predictions[point._replace(units="patches 1")]
        for field in ("ids", "labels", "predicted", "probability"):
            assert getattr(predictions, field).tobytes() == getattr(other, field).tobytes()
    assert pixels.results.ties == patches.results.ties
    audits = [
        one.audit(fractions=(0.3,), questions=("geometry", "detection"), progress=False) for one in (pixels, patches)
    ]
    for name in ("geometry", "detection"):
        assert audits[0].tables[name].equals(audits[1].tables[name])


def test_maps_of_the_grid_need_no_enlarging():
    """No UpsampledMapsWarning, which would be an error here; the exact values rank the patches."""
    small = compared(rw.Patches(4), {"small": TRUE_PATCH, "large": WORLD.truth})
    scores = small.ranking().set_index("method")["srg"]
    assert scores["small"] == scores["large"]  # ties among the other patches are broken by key alone
    with pytest.warns(rw.errors.UpsampledMapsWarning):
        compared(rw.Patches(2), {"small": TRUE_PATCH})


def test_tables_and_facts_say_which_unit_was_used(tmp_path):
    comparison = compared(rw.Patches(4), unit_reduction="max")
    for table in (comparison.ranking(), comparison.curves(), comparison.pairwise(), comparison.per_image()):
        assert set(table["units"]) == {"patches 4 (max)"}
    assert "patches 4 (max)" in str(comparison)
    assert "4×4 per image" in comparison.results.about["Units"]
    page = comparison.report(tmp_path / "page.html").read_text()
    assert "patches 4 (max), 4×4 per image" in page
    assert set(rw.load(comparison.save(tmp_path / "saved")).ranking()["units"]) == {"patches 4 (max)"}
    assert "units" not in str(compared()).lower()


def test_ties_are_counted_in_units():
    # In patches of 4 pixels the truth has one value 1 and fifteen values 0.
    assert compared(rw.Patches(4)).results.ties["truth"] == pytest.approx((15 / 16, 0))
    text = "".join(compared(rw.Patches(4)).warnings()["text"])
    assert "of the units have the same value as another unit" in text


def test_a_function_gets_the_units_of_its_images():
    seen = []

    def method(model, batch, key):
        seen.append(batch.units.labels.shape)
        return batch.units.painted(torch.rand(len(batch), 16)).float()

    compared(rw.Patches(4), {"mine": method})
    assert set(seen) == {(1, 16, 16)}


def test_labels_per_image_follow_subsets_and_shuffled_batches():
    labels = torch.stack([torch.arange(256).reshape(16, 16) // (8 + row) for row in range(40)])
    units = rw.FeatureMask(labels, ids=torch.arange(40))
    rows = torch.tensor([7, 3, 31])
    batch = Batch(rows, WORLD.images[rows], WORLD.labels[rows])
    assert torch.equal(units(batch), labels[rows])
    data = rw.datasets.Arrays(WORLD.images, WORLD.labels)
    assert torch.equal(units_for(rw.FeatureMask(labels), WORLD.model, data)(batch), labels[rows])


@needs_slic
def test_superpixels_depend_on_the_image_alone():
    batch = Batch(torch.arange(4), WORLD.images[:4], WORLD.labels[:4])
    alone = torch.cat([rw.Superpixels(30)(batch[row : row + 1]) for row in range(4)])
    assert torch.equal(rw.Superpixels(30)(batch), alone)
    flat = Batch(torch.arange(1), torch.full((1, 1, 16, 16), 0.5), torch.zeros(1, dtype=torch.long))
    assert UnitSetting(rw.Superpixels(9))(flat).units.counts[0] > 1


def test_tokens_have_the_patch_size_of_the_model():
    class Transformer:
        patch_size = (4, 8)

    class Model:
        transformer = Transformer()

    assert units_for(rw.Tokens(), Model()) == rw.Tokens((4, 8))
    batch = Batch(torch.arange(1), WORLD.images[:1], WORLD.labels[:1])
    assert UnitSetting(rw.Tokens((4, 8)))(batch).units.grid == (4, 2)
    assert UnitSetting(rw.Tokens((4, 8))).name == "tokens"


# ── shortcuts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_road_and_removal_mask_take_units():
    data = (WORLD.model, WORLD.images, WORLD.labels, WORLD.truth)
    score = rw.road(*data, units=rw.Patches(4), fractions=(0.1, 0.3))
    ranking = compared(rw.Patches(4), fractions=(0.1, 0.3)).ranking().set_index("method")
    assert score == ranking["srg"]["truth"]
    removed = rw.removal_mask(WORLD.truth, 0.3, units=rw.Patches(4))
    assert removed.flatten(1).sum(dim=1).tolist() == [5 * 16] * 40  # floor(.3 · 16 + ½) = 5 patches
    assert removed[:, 4:8, 8:12].all()
    assert torch.equal(rw.removal_mask(WORLD.truth, 0.3, units=rw.Patches(1)), rw.removal_mask(WORLD.truth, 0.3))


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PLAN = """
    [data]
    name = "arrays"
    images = 24

    [model]
    name = "small-cnn"
    channels = 1
    classes = 10
    weights = "cnn.safetensors"
    mean = 0.13
    std = 0.31

    [methods]
    IG = {{ name = "ig", steps = 4 }}
    mine = "mine:saliency"
    ablation = {{ captum = "FeatureAblation" }}

    [evaluation]
    imputers = ["linear"]
    fractions = [0.3, 0.7]
    controls = ["random", "blurred", "inverted"]
    units = {units}
    unit_reduction = "max_abs"
    {more}

    [run]
    batch_size = 16
    map_batch_size = 16
    block_size = 16
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    from safetensors.torch import save_file

    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE))
    monkeypatch.chdir(tmp_path)
    with rw.Key(3).torch_rng():
        network = rw.models.small_cnn(channels=1, classes=10)
    save_file(network.state_dict(), tmp_path / "cnn.safetensors")
    np.save(tmp_path / "labels.npy", np.arange(784).reshape(28, 28) // 30)
    return rw.Normalized(network, mean=0.13, std=0.31)


def plan_file(folder, units, more=""):
    text = PLAN.format(units=units, more=more).replace('name = "arrays"', 'name = "digits"\n    split = "test"')
    (folder / "plan.toml").write_text(textwrap.dedent(text))
    return folder / "plan.toml"


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # the model is untrained
@pytest.mark.parametrize(
    ("written", "units", "name"),
    [
        ('{ name = "patches", size = 5 }', rw.Patches(5), "patches 5 (max_abs)"),
        pytest.param(
            '{ name = "superpixels", count = 20 }', rw.Superpixels(20), "superpixels 20 (max_abs)", marks=needs_slic
        ),
        ('{ name = "feature-mask", path = "labels.npy" }', None, "feature mask (max_abs)"),
    ],
    ids=["patches", "superpixels", "feature mask"],
)
def test_a_plan_gives_the_bytes_of_compare_and_is_resumed_with_the_same(tmp_path, project, written, units, name):
    from captum.attr import FeatureAblation

    namespace = {}
    exec(textwrap.dedent(MINE), namespace)
    torch.set_num_threads(1)
    comparison = rw.compare(
        project,
        rw.datasets.first(rw.datasets.Digits("test"), 24),
        {
            "IG": rw.attributions.IntegratedGradients(4),
            "mine": namespace["saliency"],
            "ablation": rw.attributions.Captum(FeatureAblation),
        },
        units=units or rw.FeatureMask(np.load("labels.npy")),
        unit_reduction="max_abs",
        fractions=(0.3, 0.7),
        controls=("random", "blurred", "inverted"),
        batch_size=16,
        map_batch_size=16,
        progress=False,
    )
    ran = rw.run(plan_file(tmp_path, written), store=tmp_path / "run", progress=False)
    assert_equal_predictions(comparison, ran)
    assert {point.units for point in ran.predictions} == {name}
    assert ran.results.ties == comparison.results.ties
    assert ran.gallery().images  # pictures are made without the model
    files = sorted((tmp_path / "run" / "predictions").rglob("*.safetensors"))
    content = {file.name: file.read_bytes() for file in files}
    for file in files[::2]:
        file.unlink()
    rw.run(tmp_path / "plan.toml", store=tmp_path / "run", progress=False)
    again = {file.name: file.read_bytes() for file in (tmp_path / "run" / "predictions").rglob("*.safetensors")}
    assert again == content


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")
def test_ids_mention_units_only_if_they_are_not_pixels(tmp_path, project):
    from roadworthy.experiments.run import prepare

    plain, written, patches = (
        prepare(rw.read_plan(plan_file(tmp_path, units))).design
        for units in ('"pixels"', '{ name = "pixels" }', '{ name = "patches", size = 2 }')
    )
    for design in (plain, written):
        assert all("units" not in design.map_item("IG", block).spec for block in design.blocks)
    block, point = plain.blocks[0], next(point for point in plain.points(["IG"], plain.settings) if point.fraction)
    assert plain.items(point, [block], {})[0].id == written.items(point, [block], {})[0].id
    assert patches.items(point, [block], {})[0].id != plain.items(point, [block], {})[0].id
    assert patches.items(point, [block], {})[0].spec["units"] == {"name": "patches", "size": 2, "reduction": "max_abs"}
    assert patches.baseline(block).id == plain.baseline(block).id


# ── training ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # the model is untrained
@pytest.mark.parametrize("evaluator", ["retrain", "warm-start", "fine-tuned"])
def test_evaluators_that_train_remove_whole_patches(evaluator):
    seen = []

    def watching(batch, removed, key):
        seen.append(removed.clone())
        return torch.where(removed[:, None], 0.5, batch.images)

    world = worlds.one_patch(20)
    with rw.Key(0).torch_rng():
        network = rw.models.small_cnn(channels=3, classes=2)
    rw.compare(
        network,
        (world.images, world.labels),
        {"G": "gradient"},
        imputers={"mine": watching},
        evaluators=evaluator,
        train=(1 - world.images, 1 - world.labels),
        recipe=rw.Recipe(epochs=1, batch_size=10, select="last"),
        units=rw.Patches(4),
        fractions=(0.3,),
        controls=(),
        progress=False,
    )
    assert len(seen) > 2
    for removed in seen:
        cells = removed.unflatten(1, (4, 4)).unflatten(3, (4, 4)).float().mean(dim=(2, 4))
        assert ((cells == 0) | (cells == 1)).all()
