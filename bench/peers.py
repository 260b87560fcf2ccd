"""Roadworthy beside Quantus and pytorch-grad-cam, by their own functions: speed of imputation, and what they remove.

    python bench/peers.py          needs both packages (make .venv/bridges)

Noisy linear imputation of the same images and masks, milliseconds per image (three channels) by the clock and of the
processor, best of several rounds. Ours goes through the public `rw.impute`, checks and noise included.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distributions, version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from imputation import noisy_maps, removed_at, smooth_images, smooth_maps
from numpy.typing import NDArray

import roadworthy as rw

FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
COUNTS = {32: (64, 4), 224: (16, 1)}
"""size to images for ours and for the others"""
KINDS = {"scatter": noisy_maps, "blobs": smooth_maps}
ROUNDS = 5
Images, Masks = NDArray[np.float32], NDArray[np.bool_]
Impute = Callable[[Images, Masks], None]


def ours(images: Images, removed: Masks) -> None:
    rw.impute(rw.NoisyLinear(), torch.from_numpy(images), torch.from_numpy(removed))


def grad_cam(images: Images, removed: Masks) -> None:
    from pytorch_grad_cam.metrics.road import NoisyLinearImputer

    for image, mask in zip(images, removed, strict=True):
        NoisyLinearImputer()(torch.from_numpy(image), torch.from_numpy((~mask).astype(np.float32)))


def quantus() -> Impute:
    """By the version that can be imported now."""
    from quantus.functions.perturb_func import noisy_linear_imputation

    def impute(images: Images, removed: Masks) -> None:
        for image, mask in zip(images, removed, strict=True):
            noisy_linear_imputation(image, np.flatnonzero(mask))

    return impute


def milliseconds(impute: Impute, images: Images, removed: Masks, repeats: int) -> NDArray[np.float64]:
    """Per image, by the clock and of the processor; the best of the repeats."""
    times = []
    for _ in range(repeats):
        started = perf_counter(), process_time()
        impute(images, removed)
        times.append((perf_counter() - started[0], process_time() - started[1]))
    return 1e3 * np.min(times, axis=0) / len(images)


def tools(another_quantus: Path | None = None) -> dict[str, Impute]:
    """The other tools, by name and version. `another_quantus`: a folder with another version of it."""
    found: dict[str, Impute] = {}
    if another_quantus:
        (other,) = distributions(name="quantus", path=[str(another_quantus)])
        sys.path.insert(0, str(another_quantus))
        found[f"Quantus {other.version}"] = quantus()
        sys.path.pop(0)
        for name in [name for name in sys.modules if name.partition(".")[0] == "quantus"]:
            del sys.modules[name]
    ours = {f"pytorch-grad-cam {version('grad-cam')}": grad_cam, f"Quantus {version('quantus')}": quantus()}
    return ours | found


def imputation(size: int, kind: str, others: Mapping[str, Impute]) -> Iterator[dict[str, Any]]:
    """A row for ours and for each of the others: means over the fractions, on the same masks.

    Of each fraction the best of several rounds, in which all take turns: clock speeds drift.
    """
    generator = np.random.default_rng(0)
    many, few = COUNTS[size]
    images = smooth_images(generator, many, size)
    maps = [KINDS[kind](generator, size) for _ in range(many)]
    masks = [np.stack([removed_at(one, fraction) for one in maps]) for fraction in FRACTIONS]
    row = {"size": size, "masks": kind, "threads": torch.get_num_threads()}
    times = {"Roadworthy": [], **{name: [] for name in others}}
    for removed in masks:
        rounds = {name: [] for name in times}
        for _ in range(ROUNDS):
            rounds["Roadworthy"].append(milliseconds(ours, images, removed, 4))
            for name, impute in others.items():
                rounds[name].append(milliseconds(impute, images[:few], removed[:few], 1))
        for name, measured in rounds.items():
            times[name].append(np.min(measured, axis=0))
    for name, measured in times.items():
        wall, cpu = np.mean(measured, axis=0)
        yield row | {"tool": name, "wall": wall, "CPU": cpu}


def removed_of_a_cam(percentile: float) -> tuple[float, float]:
    """The share of pixels that pytorch-grad-cam and we remove of a map with 70 % zeros."""
    from pytorch_grad_cam.metrics.perturbation_confidence import RemoveMostRelevantFirst

    generator = np.random.default_rng(0)
    cam = torch.from_numpy(smooth_maps(generator, 64).astype(np.float32))
    cam = (cam - cam.quantile(0.7)).clamp(min=0)
    kept: list[torch.Tensor] = []
    remove = RemoveMostRelevantFirst(percentile, lambda image, mask: kept.append(mask) or image)
    remove(torch.zeros(3, 64, 64), cam / cam.max())
    removed = rw.removal_mask(cam[None], 1 - percentile / 100)
    return float((kept[0] == 0).float().mean()), float(removed.float().mean())


def quantus_road(channels: int, images: int, batch_size: int) -> str:
    """What its ROAD metric returns for a model that is right on the first batch only, or the error."""
    from quantus import ROAD

    class FirstBatchIsRight(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            right = (x.flatten(1)[:, 0] > 0.5).float()
            return torch.stack([right, 1 - right], dim=1)

    x = np.zeros((images, channels, 8, 8), dtype=np.float32)
    x[:batch_size] = 1
    maps = np.random.default_rng(0).random((images, 1, 8, 8)).astype(np.float32)
    metric = ROAD(percentages=[50], noise=0.0, disable_warnings=True, display_progressbar=False)
    try:
        scores = metric(FirstBatchIsRight().eval(), x, np.zeros(images, dtype=int), a_batch=maps, batch_size=batch_size)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"accuracy {next(iter(scores.values())):.2f}"


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    others = tools()
    names = list(others)
    print(f"Imputation, milliseconds per image, mean over the fractions {FRACTIONS}")
    for size in COUNTS:
        for kind in KINDS:
            for row in imputation(size, kind, others):
                print("{size:4}  {masks:8} {tool:24} wall {wall:9.3f} CPU {CPU:9.3f}".format(**row), flush=True)
    print("\nA CAM with 70 % zeros: pixels removed, of those to be removed")
    for percentile in (90, 50, 30, 10):
        theirs, mine = removed_of_a_cam(percentile)
        print(f"{100 - percentile:3} %: {names[0]} {theirs:.0%}, ours {mine:.0%}")
    print(f"\nROAD of {names[1]}")
    print(f"RGB images: {quantus_road(3, 8, 8)}")
    print(f"Two batches, the model right on the first one only (accuracy .50): {quantus_road(1, 16, 8)}")


if __name__ == "__main__":
    main()
