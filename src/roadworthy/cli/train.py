"""The command `roadworthy train`: the model of a plan, from scratch, as its [training] says."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from safetensors.torch import save

from roadworthy.core.files import write_atomically
from roadworthy.core.progress import progress_bar
from roadworthy.core.random import Key
from roadworthy.evaluation.evaluators import check_splits
from roadworthy.experiments.build import build_data, build_trainer, build_untrained
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.work import threads
from roadworthy.models.loading import bare
from roadworthy.models.prediction import fastest_device
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.trainer import accuracy

console = Console()
models = typer.Typer()


@models.command("train")
def train(
    plan: Annotated[Path, typer.Argument(help="A plan with [training].", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The weights to write; if not given, where the plan's [model] looks for them.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of initial weights, order of images and validation split.")] = 0,
) -> None:
    """Train the model of a plan. Stop it at any moment and run it again: it goes on after the last whole epoch.

    Example: `roadworthy train plans/cifar10-cpu-resnet18.toml`
    """
    read = read_plan(plan)
    trainer = build_trainer(read, seed)
    path = out or read.folder / read.model["weights"]
    # What makes an epoch what it is: a checkpoint of another training is not gone on with.
    tag = f"{read.training} {read.model} {trainer.key}"
    trainer = trainer._replace(checkpoint=CheckpointFile(path.with_name(f"{path.name}.checkpoint"), tag))
    evaluated = build_data(read)
    check_splits(trainer.data, evaluated)
    with Key(seed).fold("init").torch_rng():
        model = build_untrained(read).to(fastest_device())
    with threads(read.threads), progress_bar("training (epochs)", trainer.recipe.epochs) as advance:
        result = trainer._replace(on_epoch=lambda record: advance(1)).train(model)
        reached = accuracy(result.model, ((batch.images, batch.labels) for batch in evaluated.batches(256)))
    weights = {name: tensor.cpu().contiguous() for name, tensor in bare(result.model).state_dict().items()}
    header = {"recipe": asdict(trainer.recipe), "epoch": result.epoch, "seed": seed, "accuracy": reached}
    write_atomically(path, save(weights, {"training": json.dumps(header, sort_keys=True)}))
    text = (
        f"{path}: the weights of epoch {result.epoch + 1} of {len(result.records)}; {reached:.2%} of the plan's images"
    )
    console.print(text, markup=False, highlight=False)
