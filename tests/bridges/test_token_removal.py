"""Token removal in comparisons and plans, on transformers of the real libraries."""

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import roadworthy as rw
import vits
from libraries import library
from projects import write
from roadworthy.cli.app import app
from roadworthy.core.random import Key
from roadworthy.experiments.plans import read_plan

IMAGES = Key(3).uniform(range(24), (3, vits.SIZE, vits.SIZE))
QUIET = {"progress": False, "controls": ()}


def labeled(network):
    model = rw.Normalized(network, 0.5, 0.25).eval()
    with torch.no_grad():
        return model, (IMAGES, model(IMAGES).argmax(dim=1))


@pytest.fixture(params=vits.KINDS)
def kind(request):
    return request.param


def planted(n=40):
    """Black images with one patch of a color that is the class, at another place in each, and a model that reads it.

    The tokens are the colors of patches, no layer changes them, and the logits are three times their mean: without the
    patch that holds the color, all logits are 0.
    """
    library("timm")
    from timm.models.vision_transformer import VisionTransformer

    network = VisionTransformer(
        img_size=16, patch_size=4, embed_dim=4, depth=1, num_heads=1, num_classes=3, class_token=False,
        global_pool="avg", final_norm=False, pos_embed="none",
    )  # fmt: skip
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for color in range(3):
            network.patch_embed.proj.weight[color, color] = 1.0
            network.head.weight[color, color] = 3.0
    labels, places = torch.arange(n) % 3, Key(5).permutations(range(n), 16)[:, 0]
    images, truth = torch.zeros(n, 3, 16, 16), torch.zeros(n, 4, 4)
    for row in range(n):
        down, across = divmod(int(places[row]), 4)
        images[row, labels[row], 4 * down : 4 * down + 4, 4 * across : 4 * across + 4] = 1
        truth[row, down, across] = 1
    return network.eval(), images, labels, truth


@pytest.mark.parametrize("units", ["tokens", rw.Patches(4)], ids=str)
def test_the_true_patch_comes_first_and_its_removal_leaves_the_answer_without_information(units):
    network, images, labels, truth = planted()
    elsewhere = truth.flip(1, 2) - 2 * truth  # the true patch last
    methods = {"truth": truth, "elsewhere": elsewhere, "random": Key(0).uniform(range(40), (4, 4))}
    comparison = rw.compare(
        network, (images, labels), methods, units=units, imputers="token-removal", fractions=(0.25, 0.5, 0.75), **QUIET
    )
    assert comparison.ranking()["method"].tolist() == ["truth", "random", "elsewhere"]
    curves = comparison.curves().set_index(["method", "order", "fraction"])
    # Without the patch all logits are 0: the first class is predicted, right for 14 of 40 images, with probability 1/3.
    assert np.allclose(curves.loc[("truth", "morf", [0.25, 0.5, 0.75]), "accuracy"], 14 / 40)
    assert np.allclose(curves.loc[("truth", "morf", [0.25, 0.5, 0.75]), "probability"], 1 / 3)
    assert np.allclose(curves.loc[("truth", "lerf", [0.25, 0.5, 0.75]), "accuracy"], 1)
    # The color adds up to 16 in its token, so 1 in the mean over 16 tokens and 2 over 8; times 3 in the head.
    left = np.exp(6) / (np.exp(6) + 2)
    assert np.allclose(curves.loc[("truth", "lerf", 0.5), "probability"], left)


def test_a_comparison_equals_the_removal_of_each_fraction_by_hand(kind):
    model, data = labeled(vits.vit(kind))
    maps = Key(4).normal(range(24), (4, 4))
    comparison = rw.compare(
        model, data, {"m": maps}, units="tokens", imputers="token-removal", fractions=(0.3, 0.9), **QUIET
    )
    found = comparison.per_image().set_index(["order", "fraction"])
    for (order, fraction), sign, count in ((("morf", 0.3), -1, 5), (("lerf", 0.9), 1, 14)):  # floor(.3·16 + ½) = 5
        kept = (sign * maps.flatten(1)).argsort(dim=1)[:, count:]
        with torch.no_grad(), model.transformer.keeping(kept, 16):
            expected = model(IMAGES).softmax(dim=1)
        rows = found.loc[(order, fraction)]
        assert np.allclose(rows["probability"], expected[range(24), data[1]], atol=1e-5)


def test_every_setting_of_speed_gives_the_same_answers():
    model, data = labeled(vits.vit())
    options = {"units": "tokens", "imputers": "token-removal", "fractions": (0.3, 0.9), **QUIET}
    first, *others = (
        rw.compare(model, data, {"r": "attention-rollout"}, **options, **speed).per_image()
        for speed in ({}, {"batch_size": 5}, {"channels_last": True})
    )
    for other in others:
        assert np.abs(first["probability"] - other["probability"]).max() < 1e-5
    half = rw.compare(model, data, {"r": "attention-rollout"}, **options, autocast="bfloat16").per_image()
    assert 0 < np.abs(first["probability"] - half["probability"]).max() < 0.05


def test_regions_of_whole_tokens_are_units_too_even_if_images_lose_unequally_many():
    model, data = labeled(vits.vit())
    regions = torch.tensor([[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 3, 3], [4, 5, 5, 5]])
    labels = regions.repeat_interleave(4, 0).repeat_interleave(4, 1)
    comparison = rw.compare(
        model, data, {"m": Key(4).normal(range(24), (16, 16))}, units=rw.FeatureMask(labels), imputers="token-removal",
        fractions=(0.5,), **QUIET,
    )  # fmt: skip
    assert len(comparison.per_image().query("fraction == 0.5")) == 2 * 24


def test_units_that_cut_through_tokens_are_an_error_with_the_cure():
    model, data = labeled(vits.vit())
    for units in ("pixels", rw.Patches(3), rw.Patches(2)):
        with pytest.raises(rw.errors.InputError, match=r'whole tokens, 4×4 pixels each.*units="tokens"'):
            rw.compare(model, data, {"g": "gradient"}, units=units, imputers="token-removal", **QUIET)


def test_a_pooled_head_without_any_token_is_an_error_before_work_starts_and_a_class_token_answers():
    model, data = labeled(vits.vit("timm-average"))
    options = {"units": "tokens", "imputers": "token-removal", "fractions": (0.5, 1), **QUIET}
    with pytest.raises(rw.errors.RangeError, match=r"fraction 1 .*nothing is left to pool.*smaller fractions"):
        rw.compare(model, data, {"g": "gradient"}, **options)
    model, data = labeled(vits.vit("timm"))
    answers = rw.compare(model, data, {"g": "gradient"}, **options).per_image().query("fraction == 1")
    assert answers["predicted"].nunique() == 1


def test_pictures_show_removed_tokens_in_white():
    model, data = labeled(vits.vit())
    removed = torch.zeros(24, 16, 16, dtype=torch.bool)
    removed[:, :4, 4:8] = True
    shown = rw.impute("token-removal", IMAGES, removed)
    assert torch.equal(shown[:, :, :4, 4:8], torch.ones(24, 3, 4, 4))
    comparison = rw.compare(
        model, data, {"r": "attention-rollout"}, units="tokens", imputers="token-removal", fractions=(0.5,),
        progress=False, controls=("random",),
    )  # fmt: skip
    assert comparison.plot.examples() is not None
    page = comparison._repr_html_() if hasattr(comparison, "_repr_html_") else str(comparison)
    assert "token-removal" in page


PLAN = """
[data]
name = "folder"
root = "images"

[model]
factory = "my_vit:build"
mean = [0.5]
std = [0.25]

[methods]
"rollout" = "attention-rollout"
"cam" = {{ name = "token-grad-cam", relu = true }}

[evaluation]
units = "tokens"
imputers = ["token-removal", "linear"]
fractions = [0.3, 0.9]
controls = ["random"]
evaluators = {evaluators}

[run]
block_size = 8
map_batch_size = 8
batch_size = 8
"""
FACTORY = """
import torch
from transformers import ViTConfig, ViTForImageClassification

def build():
    torch.manual_seed(0)
    return ViTForImageClassification(ViTConfig(
        image_size=16, patch_size=4, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        num_labels=4, initializer_range=0.5,
    ))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    from PIL import Image

    library("transformers")
    pixels = (IMAGES.permute(0, 2, 3, 1) * 255).byte().numpy()
    for row, image in enumerate(pixels):
        target = tmp_path / "images" / f"class{row % 4}" / f"{row:03}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(target)
    write(tmp_path / "my_vit.py", FACTORY)
    write(tmp_path / "plan.toml", PLAN.format(evaluators='["no-retrain"]'))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")
def test_a_plan_removes_tokens_in_one_process_in_two_and_after_an_interruption(folder):
    alone = rw.run("plan.toml", "alone", progress=False)
    two = rw.run("plan.toml", "two", jobs=2, progress=False)
    stored = sorted((folder / "two" / "predictions").glob("*.safetensors"))
    contents = {path.name: path.read_bytes() for path in (folder / "alone" / "predictions").glob("*.safetensors")}
    assert {path.name: path.read_bytes() for path in stored} == contents
    for path in stored[::2]:  # as if interrupted
        path.unlink()
    resumed = rw.run("plan.toml", "two", progress=False)
    assert {path.name: path.read_bytes() for path in (folder / "two" / "predictions").glob("*.safetensors")} == contents
    assert resumed.ranking().equals(alone.ranking())
    assert two.ranking().equals(alone.ranking())
    # The same model and images in memory.
    namespace, plan = {}, read_plan("plan.toml")
    exec(FACTORY, namespace)
    direct = rw.compare(
        rw.Normalized(namespace["build"](), 0.5, 0.25).eval(), rw.datasets.ImageFolder("images"),
        {"rollout": "attention-rollout", "cam": rw.attributions.TokenGradCam(relu=True)},
        units="tokens", imputers=list(plan.imputers), fractions=plan.fractions, controls=("random",), progress=False,
    )  # fmt: skip
    keys = ["method", "order", "imputer", "fraction", "id"]
    both = direct.per_image().merge(alone.per_image(), on=keys)
    assert len(both) == len(alone.per_image())
    assert np.abs(both["probability_x"] - both["probability_y"]).max() < 1e-5


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")
def test_a_dry_run_a_report_and_figures_know_token_removal(folder):
    runner = CliRunner()
    dry = runner.invoke(app, ["run", "plan.toml", "--dry-run"])
    assert dry.exit_code == 0, dry.output
    rw.run("plan.toml", "run", progress=False)
    made = runner.invoke(app, ["report", "run", "--out", "page.html"])
    assert made.exit_code == 0, made.output
    assert "token-removal" in (folder / "page.html").read_text()


def test_a_plan_with_an_evaluator_that_trains_is_refused_by_name(folder):
    text = PLAN.format(evaluators='["no-retrain", "retrain"]') + '\n[train]\nroot = "images"\n[recipe]\nname = "tiny"\n'
    write(folder / "trains.toml", text)
    with pytest.raises(rw.errors.PlanError, match=r"\"token-removal\" with evaluator 'retrain'.*\"no-retrain\""):
        read_plan("trains.toml")


def test_an_evaluator_that_trains_is_refused_by_name():
    model, data = labeled(vits.vit())
    for evaluator in ("retrain", "warm-start", "fine-tuned"):
        with pytest.raises(rw.errors.InputError, match=f"with evaluator '{evaluator}'.*no-retrain"):
            rw.compare(
                model, data, {"g": "gradient"}, units="tokens", imputers="token-removal", evaluators=evaluator,
                train=data, recipe="tiny", network=lambda: nn.Linear(1, 1), **QUIET,
            )  # fmt: skip
