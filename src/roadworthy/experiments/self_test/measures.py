"""How the items of the self-test are computed: copied maps, and the scope of imputed images."""

import numpy as np
import torch
from torch import Tensor

from roadworthy.attributions.controls import blurred, sharpened
from roadworthy.audit.scope import Answers, answers, distances
from roadworthy.core.masks import scattered
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Maps, Ranks
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import imputed
from roadworthy.experiments.items import Arrays, Item
from roadworthy.experiments.worker import Inputs, Worker, block_of, of_kind
from roadworthy.models.prediction import predict
from roadworthy.statistics.scope import REFERENCE


def copied_maps(item: Item, inputs: Inputs) -> Maps:
    """Of other images, blurred or sharpened."""
    maps = [torch.from_numpy(np.array(inputs[need.id]["maps"])) for need in item.needs]
    if "swapped" in item.spec:
        slices = zip(maps, item.spec["swapped"], strict=True)
        return torch.cat([donated[start:stop] for donated, (start, stop) in slices])
    how, width = next(iter(item.spec.items()))
    return {"blurred": blurred, "sharpened": sharpened}[how](maps[0], width)


def scope(worker: Worker, item: Item, inputs: Inputs) -> Arrays:
    """Confidence and distance of every image, real and imputed, by order and fraction, and how far the model still
    gives the same answer if as much is removed at random."""
    real, filled, kept = _answered(worker, item, inputs)
    arrays = {"ids": real.ids, "confidence": real.confidence, "distance": distances(real, real)}
    arrays |= {f"{REFERENCE} {fraction}": torch.cat(parts) for fraction, parts in kept.items()}
    for (order, fraction), answered in filled.items():
        arrays[scope_name("confidence", order, fraction)] = answered.confidence
        arrays[scope_name("distance", order, fraction)] = distances(answered, real)
    return {name: array.numpy() for name, array in arrays.items()}


def scope_name(measure: str, order: str, fraction: float) -> str:
    return f"{measure} {order} {fraction}"


def _answered(
    worker: Worker, item: Item, inputs: Inputs
) -> tuple[Answers, dict[tuple[str, float], Answers], dict[float, list[Tensor]]]:
    experiment, key = worker.experiment, Key(item.spec["seed"])
    orders = {name: experiment.orders[name] for name in item.label["orders"]}
    fractions, imputer = item.spec["fractions"], worker.imputer(item.label["imputer"], item, inputs)
    real: list[Answers] = []
    filled: dict[tuple[str, float], list[Answers]] = {}
    kept: dict[float, list[Tensor]] = {}

    def answered(batch: Batch, images: Tensor) -> Answers:
        return answers(experiment.model, batch.ids, images, experiment.device)

    for need in of_kind(item, "maps"):
        maps = torch.from_numpy(np.array(inputs[need.id]["maps"]))
        for rows, piece in worker.placed(block_of(need)).split(experiment.batch_size):
            real.append(answered(piece, piece.images))
            answer, at_random = real[-1].predicted, scattered_ranks(piece, key)
            for fraction, (_, images) in zip(
                fractions, imputed(imputer, piece, at_random, fractions, key), strict=True
            ):
                probabilities = predict(experiment.model, images, experiment.device)
                kept.setdefault(fraction, []).append(probabilities.gather(1, answer[:, None])[:, 0])
            ranks = rank(orders, maps[rows].to(piece.images.device), piece.ids, key, piece.units)
            for order in orders:
                for fraction, (_, images) in zip(
                    fractions, imputed(imputer, piece, ranks[order], fractions, key), strict=True
                ):
                    filled.setdefault((order, fraction), []).append(answered(piece, images))
    return Answers.join(real), {point: Answers.join(parts) for point, parts in filled.items()}, kept


def scattered_ranks(batch: Batch, key: Key) -> Ranks:
    """Units in a random order: a larger fraction contains a smaller one."""
    height, width = batch.images.shape[-2:]
    ranks = scattered(batch.ids, (height, width), key.fold("reference"), batch.units)
    return ranks.to(batch.images.device)
