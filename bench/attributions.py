"""Maps of the paper's eight methods: ours against Captum's own calls at equal settings, in one run.

    python bench/attributions.py [--size 32|224] [--images 16] [--steps 10] [--ig-samples 3] [--gb-samples 20]

CPU seconds for all images, and ratios. Captum computes SG, SQ and Var each from samples of their own; we compute the
three from the same samples. *Paper*: all eight at the paper's settings (50 steps, 15 and 100 samples), from the cost
per pass that was measured here. ResNet-20 at 32², ResNet-18 at 224², random weights and images.
*Optimized*: `rw.models.optimized(model)`, whose maps differ where rounding switches a ReLU; the last table says by how
much.
"""

import argparse
import warnings
from collections.abc import Iterator
from time import process_time
from typing import Any

import torch
from captum.attr import GuidedBackprop, IntegratedGradients, NoiseTunnel
from torch import nn

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.models.normalized import Normalized
from roadworthy.statistics import spearman

SIGMA = {"IG": 0.2, "GB": 1.0}
KINDS = {"SG": "smoothgrad", "SQ": "smoothgrad_sq", "Var": "vargrad"}
KEY = Key(0)


def subject(size: int, images: int) -> tuple[Normalized, Batch]:
    with Key(1).torch_rng():
        network = rw.models.cifar_resnet() if size == 32 else rw.models.resnet18()
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):  # as in a trained network: not the identity
                nn.init.normal_(module.running_mean, 0, 0.1)
                nn.init.uniform_(module.running_var, 0.5, 1.5)
    batch = Batch(torch.arange(images), KEY.uniform(range(images), (3, size, size)), torch.zeros(images).long())
    return Normalized(network, 0.5, 0.25).eval(), batch


def with_captum(model: Normalized, batch: Batch, name: str, options: argparse.Namespace) -> None:
    base, _, kind = name.partition("-")
    inputs = model.normalize(batch.images).requires_grad_()
    method = {"IG": IntegratedGradients, "GB": GuidedBackprop}[base](model.network)
    steps = {"n_steps": options.steps, "internal_batch_size": max(64, len(batch.images))} if base == "IG" else {}
    if not kind:
        method.attribute(inputs, target=batch.labels, **steps)
        return
    NoiseTunnel(method).attribute(
        inputs, target=batch.labels, nt_type=KINDS[kind], nt_samples_batch_size=1, stdevs=SIGMA[base],
        nt_samples=options.ig_samples if base == "IG" else options.gb_samples, **steps,
    )  # fmt: skip


def seconds(work, repeats: int) -> float:
    def once() -> float:
        start = process_time()
        work()
        return process_time() - start

    return min(once() for _ in range(repeats))


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """CPU seconds by method: Captum's, ours, ours with `rw.models.optimized`."""
    model, batch = subject(options.size, options.images)
    eight = rw.attributions.paper_methods(options.steps, options.ig_samples, options.gb_samples)
    faster = rw.models.optimized(model)
    explain(eight, model, batch, KEY)  # warm
    theirs = {name: seconds(lambda n=name: with_captum(model, batch, n, options), options.repeats) for name in eight}
    threads = torch.get_num_threads()

    def row(label: str, captum: float, ours: float, fast: float) -> dict[str, Any]:
        return {
            "size": options.size, "threads": threads, "maps": label, "Captum": captum, "ours": ours, "optimized": fast,
            "images": options.images, "steps": options.steps, "samples": [options.ig_samples, options.gb_samples],
        }  # fmt: skip

    def times(names: list[str]) -> tuple[float, float, float]:
        chosen = {name: eight[name] for name in names}
        ours, fast = (seconds(lambda m=m: explain(chosen, m, batch, KEY), options.repeats) for m in (model, faster))
        return sum(theirs[name] for name in names), ours, fast

    for name in ("IG", "GB"):
        yield row(name, *times([name]))
    ig, gb = times(["IG-SG", "IG-SQ", "IG-Var"]), times(["GB-SG", "GB-SQ", "GB-Var"])
    yield row("IG-SG, -SQ, -Var", *ig)
    yield row("GB-SG, -SQ, -Var", *gb)
    yield row("all eight", *times(list(eight)))
    paper = (_at_the_papers_settings(*parts, options) for parts in zip(ig, gb, strict=True))
    yield row("all eight, the paper's settings", *paper)


def settings(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=32, choices=(32, 224))
    for name, value in (("images", 16), ("steps", 10), ("ig-samples", 3), ("gb-samples", 20), ("repeats", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args(arguments)


def main() -> None:
    warnings.simplefilter("ignore")
    options = settings()
    print(
        f"{options.size}², {options.images} images, {options.steps} steps, {options.ig_samples} and "
        f"{options.gb_samples} samples, {torch.get_num_threads()} threads, CPU seconds\n"
    )
    print("| maps | Captum | ours | ratio | optimized | ratio |\n|---|--:|--:|--:|--:|--:|")
    for row in measured(options):
        captum, ours, fast = row["Captum"], row["ours"], row["optimized"]
        print(
            f"| {row['maps']} | {captum:.2f} | {ours:.2f} | {captum / ours:.2f} | {fast:.2f} | {captum / fast:.2f} |",
            flush=True,
        )
    model, batch = subject(options.size, options.images)
    eight = rw.attributions.paper_methods(options.steps, options.ig_samples, options.gb_samples)
    _changes(eight, model, rw.models.optimized(model), batch)


def _at_the_papers_settings(ig: float, gb: float, options: argparse.Namespace) -> float:
    """From the time of the three ensembles of each base: alone and with 15 samples of 50 steps, or 100 samples."""
    return ig * (50 / 3 + 750) / (options.steps * options.ig_samples) + gb * (1 / 3 + 100) / options.gb_samples


def _changes(eight, model, faster, batch) -> None:
    before, after = explain(eight, model, batch, KEY), explain(eight, faster, batch, KEY)
    print("\n| maps | largest change, share of the largest value | rank correlation of pixels, smallest over images |")
    print("|---|--:|--:|")
    for name in eight:
        change = (after[name] - before[name]).abs().max() / before[name].abs().max()
        pairs = zip(before[name].flatten(1).numpy(), after[name].flatten(1).numpy(), strict=True)
        print(f"| {name} | {change:.1e} | {min(spearman(a, b) for a, b in pairs):.5f} |")


if __name__ == "__main__":
    main()
