"""Keys of a plan, arguments of `run`, and options of the command line."""

import tomllib
from dataclasses import replace

import roadworthy as rw
from faults.conftest import PLAN
from faults.table import Row, UsageError, command, each
from roadworthy.core.errors import InputError, PlanError
from roadworthy.experiments.plans import plan_from

TABLES = tomllib.loads(PLAN)


def planned(section, key, value):
    """The plan with this value, read as from a file."""
    tables = {name: dict(table) for name, table in TABLES.items()}
    tables.setdefault(section, {})[key] = value
    return lambda folder: plan_from(tables, folder)


def key(name, values, cure, error=PlanError):
    section, _, last = name.rpartition(".")
    return each(f"plan: {name}", values, lambda value: planned(section, last, value), error, cure)


def section(name, values, cure):
    return each(
        f"plan: [{name}]",
        values,
        lambda value: lambda folder: plan_from({**TABLES, name: value}, folder),
        PlanError,
        cure,
    )


NAN, INF = float("nan"), float("inf")
NUMBERS = ("8", 2.5, True, [8], {}, NAN)
"""Not whole numbers."""

KEYS = [
    *section("data", ("cifar10", 7, [], {}, True), "data"),
    *section("model", ("resnet18", 7, [], {}, True), "model"),
    *section("methods", ("ig", 7, [], {}, True), "methods"),
    *section("evaluation", ("fast", 7, [], True), "evaluation"),
    *section("run", ("fast", 7, [], True), "run"),
    *section("moon", ({}, 7, "full"), "no such key"),
    *key("data.name", ("cifar100", "", 7, ["folder"], True, "Folder"), "data"),
    *key("data.images", (0, -1, *NUMBERS), "data.images"),
    *key("data.sample", (0, -5, *NUMBERS), "data.sample"),
    *key("data.moon", (1, "full"), "no such key"),
    *key("model.factory", ("my_model", "my model:build", ":build", "my_model:", 7, [], "a:b:c", "../evil:build", "a/b:c", "os;x:y"), "model"),
    *key("model.name", ("resnet18",), "remove one"),
    *key("methods.IG", (7, [], True, {}, "lime2", {"name": 7}, {"name": "ig", "step": 3}, {"steps": 3}, "a b:c", {"function": "x"},
                        {"name": "ig", "function": "a:b"}), "methods.IG"),
    *key("methods.random", ("ig",), "rename"),
    *key("methods.", ("ig",), "name that can be shown"),
    *(Row(f"plan: a method named {name!r}", planned("methods", name, "ig"), PlanError, "name that can be shown")
      for name in ("\x1b[2J", "a\nb", "a\tb", "\x07", " ", "\u202egnp", "a\rb", "\x9b31m")),
    *key("evaluation.orders", ([], "morf", 7, ["moref"], [1], True, {}), "evaluation.orders"),
    *key("evaluation.imputers", ([], "linear", 7, ["lineer"], [1], [{}], [["linear"]], ["fixed", "fixed"], [{"name": "linear", "nois": 1}],
                                 [{"name": "linear", "as": 7}], [{"name": "linear", "as": "\x1b"}], ["gain"]), "evaluation.imputers"),
    *key("evaluation.evaluators", ([], "retrain", 7, ["roar"], [1], True), "evaluation.evaluators"),
    *key("evaluation.evaluators", (["retrain"], ["fine-tuned"]), "train"),
    *key("evaluation.strategies", ([], "ROAD", ["road"], [1], 7), "evaluation.strategies"),
    *key("evaluation.strategies", (["ROAD"],), "remove one"),
    *key("evaluation.fractions", ([], 0.5, ["0.5"], [1.5], [-0.1], [NAN], [INF], [True], "all", {}), "evaluation.fractions"),
    *key("evaluation.seeds", ([], 0, ["0"], [-1], [0.5], [True], "all", {}, [NAN]), "evaluation.seeds"),
    *key("evaluation.target", ("labels", "", 1, [], True), "evaluation.target"),
    *key("evaluation.channel_reduction", ("mean", "", 1, [], True), "evaluation.channel_reduction"),
    *key("evaluation.units", ("superpixels", "", 1, [], "pixel", {"name": "patches"}, {"name": "patches", "size": 0},
                              {"name": "patches", "size": "8"}, {"name": "patches", "size": [2, 2, 2]},
                              {"name": "patches", "sizes": 2}, {"name": "superpixels", "count": 1},
                              {"name": "superpixels", "count": 9, "compactness": "high"}, {"size": 8},
                              {"name": "feature-mask"}, "a b:c"), "evaluation.units"),
    *key("evaluation.unit_reduction", ("median", "", 1, []), "evaluation.unit_reduction"),
    *key("evaluation.controls", ("random", ["randm"], [1], 7, True), "evaluation.controls"),
    *key("evaluation.self_test", ("yes", 1, []), "evaluation.self_test"),
    *key("evaluation.copied", ("IG", ["nobody"], [1], 7), "evaluation.copied"),
    *key("evaluation.until", ("rank", "", 1, [], True), "evaluation.until"),
    *key("evaluation.confidence", (0.4, 1.0, 95, "0.95", NAN, INF, True, []), "evaluation.confidence"),
    *key("evaluation.margin", (-0.1, "0.02", NAN, INF, True, []), "evaluation.margin"),
    *key("evaluation.judges", (["no-retrain"],), "evaluators"),
    *key("run.batch_size", (0, -1, *NUMBERS), "run.batch_size"),
    *key("run.autocast", ('"half"', "16", "true"), "run.autocast"),
    *key("run.channels_last", ('"yes"', "1"), "run.channels_last"),
    *key("run.map_batch_size", (0, -1, *NUMBERS), "run.map_batch_size"),
    *key("run.block_size", (0, -1, *NUMBERS), "run.block_size"),
    *key("run.threads", (0, -1, *NUMBERS), "run.threads"),
    *key("run.map_seed", (-1, *NUMBERS), "run.map_seed"),
    *key("recipe.epochs", (1,), "no evaluator trains"),
    *key("train.root", ("images",), "no evaluator trains"),
    *key("gain.epochs", (1,), "train: missing"),
]  # fmt: skip


def run(**options):
    return lambda folder: rw.run(
        **{"plan": folder / "plan.toml", "store": folder / "new", "progress": False, **options}
    )


RUN = [
    *each("run: plan", (None, 7, 1.5, b"plan.toml", ["plan.toml"], {}, True, object(), (), set()), lambda v: run(plan=v), InputError, "TOML file"),
    *each("run: plan", ("nowhere.toml", "", "/", "x" * 300, "/dev/null/x"), lambda v: run(plan=v), PlanError, "plan"),
    *each("run: store", (7, 1.5, b"run", ["run"], {}, True, "", "a\0b", object(), ()), lambda v: run(store=v), InputError, "run directory"),
    *each("run: executor", ("slurm", "", None, 7, "Local", "LOCAL", "dask", True, [], "ray2"), lambda v: run(executor=v), InputError, "'local' or 'ray'"),
    *each("run: jobs", (-1, "2", 1.5, None, True, [], NAN, -100, b"1", {}), lambda v: run(jobs=v), InputError, "number of processes"),
    *each("run: address", (None, 7, "", [], True, 1.5, b"local", {}, object(), ()), lambda v: run(address=v), InputError, "Ray cluster"),
    Row("run: a plan that was changed", lambda folder: rw.run(replace(rw.read_plan(folder / "plan.toml"), seeds=(5,)),
                                                              folder / "new"), InputError, "read it again"),
    Row("run: a plan without a store", lambda folder: rw.run(rw.read_plan(folder / "plan.toml")), InputError, "store="),
]  # fmt: skip

CLI = [
    *each("cli: run --jobs", ("-1", "two", "1.5", "", "0x2"), lambda v: command("run", "plan.toml", "--jobs", v), UsageError, "--jobs"),
    *each("cli: run --executor", ("slurm", "", "Local", "dask"), lambda v: command("run", "plan.toml", "--executor", v), UsageError, "--executor"),
    Row("cli: run without a plan", command("run"), UsageError, "plan"),
    Row("cli: an unknown command", command("rnu"), UsageError, "rnu"),
    Row("cli: an unknown option", command("run", "plan.toml", "--fast"), UsageError, "--fast"),
    Row("cli: show without a directory", command("show"), UsageError, "folder"),
    Row("cli: export without a file", command("export", "run"), UsageError, "file"),
    *each("cli: diff --fail-on", ("change", "", "rank"), lambda v: command("diff", "run", "run", "--fail-on", v), UsageError, "fail-on"),
    Row("cli: diff with nothing", command("diff", "run", "nowhere"), UsageError, "roadworthy run PLAN"),
    *each("cli: audit --classifier", ("big", "", "resnet50"), lambda v: command("audit", "run", "--classifier", v), UsageError, "classifier"),
    *each("cli: audit --only", ("mask", "", "all"), lambda v: command("audit", "run", "--only", v), UsageError, "only"),
    Row("cli: audit of nothing", command("audit", "nowhere"), InputError, "--store"),
    Row("cli: audit of a plan without a store", command("audit", "plan.toml"), InputError, "--store"),
    Row("cli: audit of two folders", command("audit", "run", "--store", "run"), InputError, "give a plan"),
    Row("cli: figures of an unknown method", command("figures", "run", "--out", "f", "--method", "nobody"), InputError, "choose from"),
    Row("cli: train without [training]", command("train", "plan.toml"), PlanError, "copy it"),
    *each("cli: train --seed", ("-1", "x", "1.5"), lambda v: command("train", "plan.toml", "--seed", v), UsageError, "--seed"),
    Row("cli: gain train without [gain]", command("gain", "train", "plan.toml"), PlanError, "copy it"),
    Row("cli: gain search without [gain]", command("gain", "search", "plan.toml"), PlanError, "copy it"),
    Row("cli: gain search into no table", command("gain", "search", "plan.toml", "--out", "table"), InputError, r"\.csv"),
    *each("cli: gain train --epochs", ("0", "-1", "x"), lambda v: command("gain", "train", "plan.toml", "--epochs", v), UsageError, "--epochs"),
    *each("cli: imputers compare --fraction", ("0", "1"), lambda v: command("imputers", "compare", "plan.toml", "--fraction", v), InputError, "between"),
    Row("cli: demo with one image", command("demo", "--images", "1"), UsageError, "--images"),
    Row("cli: demo with unknown data", command("demo", "--data", "mnist"), UsageError, "--data"),
]  # fmt: skip

ROWS = [*KEYS, *RUN, *CLI]
