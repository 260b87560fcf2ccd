"""What the model shows of its inputs and outputs, and what methods make of it: decided once per experiment."""

from dataclasses import replace

from roadworthy.attributions.baselines import baseline_of, described_baseline, has_mean
from roadworthy.core.types import Dataset, Images
from roadworthy.evaluation.experiment import Experiment
from roadworthy.models.outputs import PROBED, recognized


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
        **({"Baseline": "; ".join(baselines)} if baselines else {}),
        **({"Outputs": f"{kind}, not logits"} if kind != "logits" else {}),
        **({"Precision": f"predictions in {str(reduced).removeprefix('torch.')}"} if reduced else {}),
    }
