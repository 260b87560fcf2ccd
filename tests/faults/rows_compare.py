"""Arguments of compare, road, impute and removal_mask."""

import numpy as np
import torch

import roadworthy as rw
import worlds
from faults.table import Row, each
from roadworthy.core.errors import InputError, ModelError, RangeError, ShapeError, UnknownNameError

WORLD = worlds.quadrants(n=8)
IMAGES, LABELS = WORLD.images, WORLD.labels
GOOD = {
    "model": WORLD.model,
    "data": (IMAGES, LABELS),
    "methods": {"truth": WORLD.truth, "G": "gradient"},
    "fractions": (0.5,),
    "controls": (),
    "imputers": "fixed",
    "progress": False,
}


def compare(**changes):
    return lambda folder: rw.compare(**{**GOOD, **changes})


def argument(name, values, error, cure, **others):
    return each(f"compare: {name}", values, lambda value: compare(**{name: value, **others}), error, cure)


def pixel(value):
    images = IMAGES.clone()
    images[3, 0, 1, 1] = value
    return images


TRAIN = {"evaluators": "retrain", "train": (IMAGES, LABELS), "recipe": "tiny"}

COMPARE = [
    *argument("self_test", (1, "yes", None), InputError, "True or False"),
    Row(
        "compare: self_test with an order of one's own",
        compare(self_test=True, orders={"mine": lambda maps, ids, key: maps.long()}),
        InputError,
        "morf, lerf",
    ),
    *argument("data", (None, 7, "images", object(), (1, 2, 3), [IMAGES], {"images": IMAGES}), InputError, "give"),
    *(
        Row(f"compare: data with {what}", compare(data=data), error, cure)
        for what, data, error, cure in (
            ("0 to 255", (IMAGES * 255, LABELS), RangeError, "divide by 255"),
            ("NaN", (pixel(float("nan")), LABELS), RangeError, "finite"),
            ("infinity", (pixel(float("inf")), LABELS), RangeError, "finite"),
            ("normalized images", (IMAGES * 4 - 2, LABELS), RangeError, "Normalized"),
            ("an overshoot", (pixel(1.0005), LABELS), RangeError, "clip"),
            ("complex images", (IMAGES.to(torch.complex64), LABELS), ShapeError, "floats"),
            ("objects", (np.full((8, 1, 12, 12), None), LABELS), ShapeError, "floats"),
            ("texts", (np.full((8, 1, 12, 12), "a"), LABELS), ShapeError, "floats"),
            ("one image", (IMAGES[0], LABELS[:1]), ShapeError, r"images\[None\]"),
            ("no images", (IMAGES[:0], LABELS[:0]), ShapeError, "at least one"),
            ("channels last", (IMAGES.permute(0, 2, 3, 1), LABELS), ShapeError, "permute"),
            ("fewer labels", (IMAGES, LABELS[:5]), ShapeError, "one integer per image"),
            ("more labels", (IMAGES[:5], LABELS), ShapeError, "one integer per image"),
            ("one-hot labels", (IMAGES, torch.nn.functional.one_hot(LABELS)), ShapeError, "argmax"),
            ("labels that are floats", (IMAGES, LABELS.float()), ShapeError, "integers"),
            ("labels that are texts", (IMAGES, ["a"] * 8), InputError, "classes="),
            ("a label below 0", (IMAGES, torch.full((8,), -1)), RangeError, "class indices"),
        )
    ),
    *argument("methods", (None, 7, "IG", ["IG"], ("IG", "G"), [("a", "ig")], {"IG"}), InputError, "give names"),
    *argument("methods", ({},), InputError, "at least one"),
    *(
        Row(f"compare: a method that is {what}", compare(methods={"bad": method}), error, cure)
        for what, method, error, cure in (
            ("None", None, InputError, "give an attribution"),
            ("a number", 7, InputError, "give an attribution"),
            ("a list", [1, 2], InputError, "give an attribution"),
            ("an unknown name", "lime2", UnknownNameError, "Available"),
            ("a misspelled name", "gradiant", UnknownNameError, "did you mean 'gradient'"),
            ("too few maps", WORLD.truth[:5], ShapeError, "one map per image"),
            ("maps of another size", torch.zeros(8, 30, 30), ShapeError, "one value per pixel"),
            ("maps with NaN", torch.full((8, 12, 12), float("nan")), InputError, "fix or leave out"),
            ("maps without images", torch.zeros(12, 12), ShapeError, "one map per image"),
            ("a missing file", "nowhere.npy", rw.errors.DataError, "save them again"),
            ("a missing module", "nowhere_at_all:maps", ModelError, "nowhere_at_all"),
            ("a function that returns None", lambda model, batch, key: None, ShapeError, "return a tensor"),
            ("a function that returns a list", lambda model, batch, key: [1], ShapeError, "return a tensor"),
            ("a function that returns one map", lambda model, batch, key: torch.zeros(12, 12), ShapeError, "one map per image"),
            ("a function that returns NaN", lambda model, batch, key: batch.images * float("nan"), InputError, "fix or leave out"),
        )
    ),
    Row("compare: a model that knows fewer classes than labels", compare(model=lambda images: images.flatten(1)[:, :2]), RangeError, "belong together"),
    *argument("imputers", ([], (), {}), InputError, "at least one"),
    *argument("imputers", (None, 7, [7], {"a": 7}, object()), InputError, "give an imputer"),
    *argument("imputers", ("lineer", "gaussian2", ["fixed", "blurr"]), UnknownNameError, "did you mean|Available"),
    *argument("imputers", (["fixed", "fixed"], ["linear", rw.NoisyLinear()]), InputError, "name them"),
    *argument("imputers", (rw.GainRecipe(epochs=1),), InputError, "train="),
    *argument("orders", ("morf", 1), InputError, "give several"),
    *argument("orders", ((), [], {}), InputError, "at least one"),
    *argument("orders", (("moref",), ("morf", "lef"), ["random2"]), UnknownNameError, "did you mean|Available"),
    *argument("evaluators", ("retrained", ["no-retrain", "roar"], "", "NO-RETRAIN", ("fine tuned",)), InputError, "choose from"),
    *argument("evaluators", ([], ()), InputError, "at least one"),
    *argument("evaluators", ("retrain", "fine-tuned", ["no-retrain", "retrain"]), InputError, "train="),
    Row("compare: retrain without a recipe", compare(**{**TRAIN, "recipe": None}, methods={"G": "gradient"}), InputError, "recipe="),
    *argument("recipe", ("huge", "", "Tiny"), InputError, "choose from", **{k: v for k, v in TRAIN.items() if k != "recipe"}),
    Row("compare: retrain with precomputed maps", compare(**TRAIN), InputError, "leave 'retrain' out"),
    *argument("train", (7, "train", object(), (1, 2, 3)), InputError, "give", evaluators="retrain", recipe="tiny", methods={"G": "gradient"}),
    *argument("fractions", ([], (), np.array([])), RangeError, "give fractions"),
    *argument("fractions", ((1.1,), (-0.1,), (float("nan"),), (float("inf"),), (0.5, 50), [10], 2.0), RangeError, r"in \[0, 1\]"),
    *argument("fractions", ((0,), (0.0, 0.0)), InputError, "add a fraction"),
    *argument("seeds", (0, "0", 7), InputError, "give several"),
    *argument("seeds", ((), []), InputError, "at least one"),
    *argument("target", ("labels", "pred", "", None, 1, "LABEL", "class", ("label",)), InputError, "'label' or the 'prediction'"),
    *argument("controls", ("random", 1), InputError, "give several"),
    *argument("controls", (("randm",), ("centre",), ("random", ""), (None,), (1,)), InputError, r"\(\) for none"),
    Row("compare: a method named as a control", compare(methods={"random": "gradient"}, controls=("random",)), InputError, "rename"),
    Row("compare: a method named as a copy", compare(methods={"G": "gradient", "G blurred": "gradient"}, controls=("blurred",)), InputError, "rename"),
    *argument("until", ("rank", "", "all", 1, 0.95, True, "BEST", ("ranked",)), InputError, "'ranked' or 'best'"),
    *argument("confidence", (0.4, 1, 1.0, 95, 0, -1, float("nan"), float("inf"), 0.49999, 1e9), RangeError, "0.5 to below 1", until="ranked"),
    *argument("margin", (-0.1, -1, float("nan"), -1e-9, float("-inf")), RangeError, "0 or more", until="ranked"),
    Row("compare: until with one method", compare(methods={"G": "gradient"}, until="best"), InputError, "add a method"),
    Row("compare: until without no-retrain", compare(**TRAIN, until="best", methods={"G": "gradient", "I": "ig"}), InputError, "no-retrain"),
    *argument("channel_reduction", ("mean", "", "SUM", "abs", "max"), InputError, "choose one",
              methods={"own": lambda model, batch, key: batch.images}),
    *argument("autocast", ("half", 16, True, torch.float16), InputError, "'bfloat16' or 'float16'"),
    *argument("channels_last", ("yes", 1, None), InputError, "True or False"),
    *argument("device", ("tpu", "cuda:99", "gpu", "cpu:x", "cuda:-2"), InputError, "'cpu'"),
    *(
        Row(f"compare: a model that {what}", compare(model=model), ModelError, cure)
        for what, model, cure in (
            ("is None", None, "give|callable"),
            ("is a number", 7, "give|callable"),
            ("is a text", "resnet18", "give|callable"),
            ("returns a list", lambda images: [1, 2], "logits|tensor"),
            ("returns images", lambda images: images, "logits|classes"),
            ("returns one number per image", lambda images: images.mean(dim=(1, 2, 3)), "logits|classes"),
            ("returns one logit per image", lambda images: images.flatten(1)[:, :1], "classes|logit"),
            ("returns NaN", lambda images: images.flatten(1)[:, :4] * float("nan"), "NaN|finite"),
            ("returns fewer rows", lambda images: images[:1].flatten(1)[:, :4], "logits|per image|row"),
        )
    ),
]  # fmt: skip

# ── road, impute, removal_mask ───────────────────────────────────────────────────────────────────────────────────────

REMOVED = torch.zeros(8, 12, 12, dtype=torch.bool)


def road(**changes):
    good = {
        "model": WORLD.model,
        "images": IMAGES,
        "labels": LABELS,
        "maps": WORLD.truth,
        "fractions": (0.5,),
        "imputer": "fixed",
    }
    return lambda folder: rw.road(**{**good, **changes})


def impute(imputer="fixed", images=IMAGES, removed=REMOVED, **options):
    return lambda folder: rw.impute(imputer, images, removed, **options)


def mask(maps=WORLD.truth, fraction=0.5, *rest, **options):
    return lambda folder: rw.removal_mask(maps, fraction, *rest, **options)


def rows(name, values, do, error, cure):
    return each(name, values, do, error, cure)


SHORTCUTS = [
    *rows("road: maps", (WORLD.truth[:5], torch.zeros(12, 12)), lambda v: road(maps=v), ShapeError, "one map per image"),
    *rows("road: maps", (None, 7, [1]), lambda v: road(maps=v), InputError, "give an attribution"),
    *rows("road: fractions", ((2,), (-1,), (float("nan"),), ()), lambda v: road(fractions=v), RangeError, "fraction"),
    *rows("road: imputer", ("lineer", "foo"), lambda v: road(imputer=v), UnknownNameError, "did you mean|Available"),
    *rows("road: labels", (LABELS[:3], LABELS.float()), lambda v: road(labels=v), ShapeError, "integer"),
    *rows("road: images", (IMAGES * 255, IMAGES - 1), lambda v: road(images=v), RangeError, "255|Normalized"),
    *rows("impute: imputer", ("lineer", "x", ""), impute, UnknownNameError, "did you mean|Available"),
    *rows("impute: imputer", (None, 7, [], {}), impute, InputError, "give an imputer"),
    *rows("impute: images", (None, 7, "images", [1]), lambda v: impute(images=v), InputError, "one numpy array"),
    *rows("impute: images", (IMAGES[0], IMAGES[:0], IMAGES.to(torch.complex64)), lambda v: impute(images=v), ShapeError, "give|use"),
    *rows("impute: images", (IMAGES * 255, pixel(float("nan"))), lambda v: impute(images=v), RangeError, "255|finite"),
    *rows("impute: removed", (REMOVED.float(), REMOVED.int(), REMOVED[:3], REMOVED[0], REMOVED[:, None], REMOVED[:, :5], REMOVED[:0],
                              torch.tensor(True), REMOVED.byte(), np.zeros((8, 12, 12))), lambda v: impute(removed=v), ShapeError, "bool mask"),
    *rows("impute: ids", ([1], list(range(9)), [[1] * 8], [0.5] * 8, ["a"] * 8), lambda v: impute(ids=v), ShapeError, "integer"),
    Row("impute: ids twice", impute(ids=[1] * 8), InputError, "unique"),
    *rows("removal_mask: fraction", (1.1, -0.1, float("nan"), float("inf"), 50, -1, 1.0000001, -float("inf"), 1e9, -1e-9),
          lambda v: mask(fraction=v), RangeError, r"in \[0, 1\]"),
    *rows("removal_mask: order", ("mrof", "MORF", "", "most"), lambda v: mask(WORLD.truth, 0.5, v), UnknownNameError, "did you mean|Available"),
    *rows("removal_mask: maps", (WORLD.truth[0], WORLD.truth[:, None], torch.tensor(1.0), np.zeros(5)), lambda v: mask(v), ShapeError, r"\(n, h, w\)"),
    Row("removal_mask: maps with NaN", mask(torch.full((2, 3, 3), float("nan"))), InputError, "fix or leave out"),
]  # fmt: skip

ROWS = [*COMPARE, *SHORTCUTS]
