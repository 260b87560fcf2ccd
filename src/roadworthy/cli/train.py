"""`roadworthy train`: the model of a plan, from scratch, as its [training] says."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.output import say
from roadworthy.core.progress import progress_bar


def train(
    plan: Annotated[Path, typer.Argument(help="Plan with a [training] section.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="Weights file to write. Default: the one named in the plan's [model].", show_default=False),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the initial weights, the image order and the validation split.")
    ] = 0,
) -> None:
    """Train the model of a plan. Runs code that the plan names.

    Stop it at any time and run it again: it resumes after the last complete epoch.

    Example: `roadworthy train plans/cifar10-cpu-resnet18.toml`
    """
    from safetensors.torch import save

    from roadworthy.core.files import check_output, write_atomically
    from roadworthy.core.random import Key
    from roadworthy.evaluation.checks import check_splits
    from roadworthy.experiments.build import build_data, build_trainer, build_untrained
    from roadworthy.experiments.plans import read_plan
    from roadworthy.experiments.worker import threads
    from roadworthy.models.loading import bare
    from roadworthy.models.prediction import fastest_device
    from roadworthy.training.checkpoints import CheckpointFile
    from roadworthy.training.trainer import accuracy

    opened = read_plan(plan)
    trainer = build_trainer(opened, seed)
    path = out or opened.folder / opened.model["weights"]
    check_output(path)
    # All that an epoch depends on: the checkpoint of another training is not resumed.
    tag = f"{opened.training} {opened.model} {trainer.key}"
    trainer = trainer._replace(checkpoint=CheckpointFile(path.with_name(f"{path.name}.checkpoint"), tag))
    data = build_data(opened)
    check_splits(trainer.data, data)
    with Key(seed).fold("init").torch_rng():
        model = build_untrained(opened).to(fastest_device())
    with threads(opened.threads), progress_bar("training (epochs)", trainer.recipe.epochs) as advance:
        result = trainer._replace(on_epoch=lambda record: advance(1)).train(model)
        reached = accuracy(result.model, ((batch.images, batch.labels) for batch in data.batches(256)))
    weights = {name: tensor.cpu().contiguous() for name, tensor in bare(result.model).state_dict().items()}
    header = {"recipe": asdict(trainer.recipe), "epoch": result.epoch, "seed": seed, "accuracy": reached}
    write_atomically(path, save(weights, {"training": json.dumps(header, sort_keys=True)}))
    say(f"{path}: epoch {result.epoch + 1} of {len(result.records)}; accuracy on the plan's images {reached:.2%}")
