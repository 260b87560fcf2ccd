"""What the model shows of its inputs and outputs, and what methods make of it: decided once per experiment."""

from collections.abc import Iterable
from dataclasses import replace

from roadworthy.attributions.baselines import baseline_of, described_baseline, has_mean
from roadworthy.core.errors import InputError
from roadworthy.core.types import Dataset, Images
from roadworthy.evaluation.experiment import TRAINED_EVALUATORS, Experiment
from roadworthy.evaluation.unit_checks import check_fractions
from roadworthy.evaluation.units import FeatureMask
from roadworthy.models.outputs import PROBED, recognized

CHECKED_IMAGES = 32
"""whose units are looked at before long work starts: superpixels differ from image to image"""


def first_images(data: Dataset, count: int = PROBED) -> Images:
    return next(data.batches(min(count, len(data)))).images


def with_known_outputs(experiment: Experiment) -> Experiment:
    """The experiment whose model knows what it returns; the first images decide, so every process decides equally."""
    return replace(experiment, model=recognized(experiment.model, first_images(experiment.data), experiment.device))


def gray_baselines(experiment: Experiment) -> dict[str, str]:
    """The methods whose baseline is gray because the model shows no normalization mean."""
    if has_mean(experiment.model, first_images(experiment.data, 1)):
        return {}
    return {name: "gray" for name, method in experiment.methods.items() if baseline_of(method) == "mean"}


def check_unit_labels(experiment: Experiment, fractions: Iterable[float], evaluators: Iterable[str]) -> None:
    """Units fit the images, all fractions leave something, and what trains can have units too."""
    if experiment.units.pixels:
        return
    units, trained = experiment.units.units, [name for name in evaluators if name in TRAINED_EVALUATORS]
    if isinstance(units, FeatureMask) and units.per_image and trained:
        raise InputError(
            f"FeatureMask has labels for the images of data alone, but {trained[0]!r} removes units of train images "
            "too: give labels (h, w) for all images, or a function batch -> labels"
        )
    batch = experiment.units(next(experiment.data.batches(min(CHECKED_IMAGES, len(experiment.data)))))
    check_fractions(batch.units, experiment.units.name, fractions)


def input_facts(experiment: Experiment) -> dict[str, str]:
    """For people: baselines in use, and outputs that are not logits."""
    with_mean = has_mean(experiment.model, first_images(experiment.data, 1))
    methods: dict[str, list[str]] = {}
    for name, method in experiment.methods.items():
        if (baseline := baseline_of(method)) is not None:
            methods.setdefault(described_baseline(baseline, with_mean), []).append(name)
    several = len(methods) > 1
    baselines = [f"{text}: {', '.join(names)}" if several else text for text, names in methods.items()]
    kind, reduced = experiment.model.outputs, experiment.model.autocast
    return {
        **({} if experiment.units.pixels else {"Units": _described_units(experiment)}),
        **({"Baseline": "; ".join(baselines)} if baselines else {}),
        **({"Outputs": f"{kind}, not logits"} if kind != "logits" else {}),
        **({"Precision": f"predictions in {str(reduced).removeprefix('torch.')}"} if reduced else {}),
    }


def _described_units(experiment: Experiment) -> str:
    """With their number: the same for all images, or that of the first."""
    batch = experiment.units(next(experiment.data.batches(1)))
    if batch.units is None:
        return experiment.units.name
    number, grid = batch.units.counts[0], batch.units.grid
    size = f"{grid[0]}×{grid[1]} per image" if grid else f"{number} in the first image"
    return f"{experiment.units.name}, {size}; maps pooled by {experiment.units.reduction}"
