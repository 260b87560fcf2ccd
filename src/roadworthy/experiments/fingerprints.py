"""Fingerprints: what a plan's data, weights and files hold, in place of their paths."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from roadworthy.core.errors import PlanError, StoreError
from roadworthy.evaluation.experiment import Experiment
from roadworthy.evaluation.units import Tokens
from roadworthy.experiments.inputs import gray_baselines
from roadworthy.experiments.items import (
    default_block_size,
    fingerprint_blocks,
    fingerprint_model,
    fingerprint_path,
    growing_rows,
    sequential_rows,
)
from roadworthy.experiments.plans import Plan


class Fingerprints(NamedTuple):
    """What a plan's files hold, and how its images are cut into blocks: all that ids need besides the plan."""

    model: str
    block_size: int
    images: int
    data: tuple[str, ...]
    """per block"""
    train_images: int = 0
    train: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    """of weights, maps and functions, by the key of the plan that names them"""
    baselines: Mapping[str, str] = {}
    """what the default baseline of a method is, where it is not the model's normalization mean"""
    outputs: str = "logits"
    """of the model"""
    patch: tuple[int, ...] = ()
    """the patch size of the model's tokens, where these are the units"""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Fingerprints":
        try:
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
            }
            return cls(**values)._checked()
        except TypeError as error:
            raise StoreError(f"manifest.json: the fingerprints are not valid ({error}): run the plan again") from error

    def _checked(self) -> "Fingerprints":
        """Before they are trusted: a manifest may come from elsewhere."""
        for name, kind in (
            ("model", str),
            ("block_size", int),
            ("images", int),
            ("data", tuple),
            ("train_images", int),
        ):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} is a {type(getattr(self, name)).__name__}")
        for name, images, prints in (("data", self.images, self.data), ("train", self.train_images, self.train)):
            if not isinstance(prints, tuple) or not all(isinstance(fingerprint, str) for fingerprint in prints):
                raise TypeError(f"{name} is not a list of texts")
            if not (len(prints) <= images and self.block_size > 0):
                raise TypeError(f"{len(prints)} blocks of {self.block_size} for {images} images")
        if not isinstance(self.files, Mapping):
            raise TypeError(f"files is a {type(self.files).__name__}")
        return self


def fingerprints(plan: Plan, experiment: Experiment) -> Fingerprints:
    """Reads every image once."""
    image = next(experiment.data.batches(1)).images.shape[1:]
    size = plan.block_size or default_block_size(image, plan.batch_size, plan.map_batch_size)
    images, train_images = len(experiment.data), len(experiment.train) if experiment.train is not None else 0
    return Fingerprints(
        fingerprint_model(experiment.model),
        size,
        images,
        tuple(fingerprint_blocks(experiment.data, block_rows(plan, images, size))),
        train_images,
        tuple(fingerprint_blocks(experiment.train, sequential_rows(train_images, size)))
        if experiment.train is not None
        else (),
        file_fingerprints(plan),
        gray_baselines(experiment),
        experiment.model.outputs,
        experiment.units.units.sides if isinstance(experiment.units.units, Tokens) else (),
    )


def block_rows(plan: Plan, images: int, size: int) -> list[tuple[int, ...]]:
    """Of the test images; early stopping takes them in a random order, a few at first."""
    if plan.until is None:
        return sequential_rows(images, size)
    return growing_rows(images, plan.map_batch_size, plan.seeds[0])


def file_fingerprints(plan: Plan) -> dict[str, str]:
    """Of everything that is read from files besides data and the model's weights."""
    files = {
        **{f"imputers.{name}": path for name, path in plan.imputer_files.items()},
        **{f"methods.{name}": path for name, path in plan.map_files.items()},
        **plan.unit_files,
        **plan.function_files,
        **plan.option_files,
    }
    return {name: _digest(name, path) for name, path in files.items()}


def _digest(name: str, path: Path) -> str:
    try:
        return fingerprint_path(path)
    except OSError as error:
        raise PlanError(f"{name}: {path} could not be read ({error.strerror})") from error


def check_unchanged(plan: Plan, prints: Fingerprints, experiment: Experiment) -> None:
    """Weights and files are those of the fingerprints; images are checked block by block."""
    if fingerprint_model(experiment.model) != prints.model:
        name = plan.model.get("factory", plan.model["name"])
        raise PlanError(
            f"model: {name} has other weights than when the run started: "
            "its factory is not deterministic, or its file of weights changed"
        )
    for name, fingerprint in file_fingerprints(plan).items():
        if fingerprint != prints.files.get(name):
            raise PlanError(f"{name}: its file is not the one that the run started with")
