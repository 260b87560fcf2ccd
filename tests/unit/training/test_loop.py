"""The training loop: arithmetic by hand, reproducibility to the byte, no side effects, selection and checkpoints."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from roadworthy.core.errors import ModelError, RangeError, ShapeError
from roadworthy.core.random import Key
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.loop import Checkpoint, EpochBatches, EpochRecord, best_epoch, fit, shuffled
from roadworthy.training.recipe import Recipe

KEY = Key(0)


def line(weight: float = 1.0) -> nn.Linear:
    """The network x -> w·x."""
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, weight)
    return network


def every_epoch(*batches: tuple[list[float], list[float]]) -> EpochBatches:
    """The same batches of single numbers every epoch."""
    tensors = [(torch.tensor(x)[:, None], torch.tensor(y)[:, None]) for x, y in batches]
    return lambda epoch: tensors


def dropout_network() -> nn.Module:
    with Key(7).torch_rng():
        return nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 3))


def points(n: int = 12) -> tuple[Tensor, Tensor]:
    return KEY.normal(range(n), (4,)), torch.arange(n) % 3


def trained(key: Key = KEY, **options: object) -> list[Tensor]:
    network = dropout_network()
    fit(network, shuffled(*points(), 5, KEY), Recipe(epochs=3, lr=0.01), key=key, **options)  # type: ignore[arg-type]
    return [parameter.detach() for parameter in network.parameters()]


def same(a: Iterable[Tensor], b: Iterable[Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sgd_with_momentum_takes_the_steps_computed_by_hand() -> None:
    network = line(1.0)
    recipe = Recipe(epochs=2, lr=0.1, optimizer="sgd", momentum=0.5)
    records = fit(network, every_epoch(([1.0], [0.0])), recipe, key=KEY, loss=mse_loss)
    # loss w², gradient 2w. Step 1: v = 2, w = 1 − .2 = .8. Step 2: v = .5·2 + 1.6 = 2.6, w = .8 − .26 = .54.
    assert network.weight.item() == pytest.approx(0.54, abs=1e-6)
    assert [record.loss for record in records] == pytest.approx([1.0, 0.64], abs=1e-6)
    assert [(record.epoch, record.lr, record.images) for record in records] == [(0, 0.1, 1), (1, 0.1, 1)]


def test_gradients_do_not_accumulate_across_steps() -> None:
    network = line(1.0)
    recipe = Recipe(epochs=1, lr=0.1, optimizer="sgd", momentum=0)
    fit(network, every_epoch(([1.0], [0.0]), ([1.0], [0.0])), recipe, key=KEY, loss=mse_loss)
    assert network.weight.item() == pytest.approx(0.64)  # 1 − .2 = .8, .8 − .16; with both gradients .44


@pytest.mark.parametrize(("optimizer", "weight"), [("sgd", 0.95), ("adam", 0.9)])
def test_weight_decay_pulls_the_weights_to_zero(optimizer: Literal["sgd", "adam"], weight: float) -> None:
    network = line(1.0)
    recipe = Recipe(epochs=1, lr=0.1, optimizer=optimizer, weight_decay=0.5)
    fit(network, every_epoch(([0.0], [0.0])), recipe, key=KEY, loss=mse_loss)
    # The gradient is 0 + .5·1: sgd moves by .1 of it, adam by .1 of its sign.
    assert network.weight.item() == pytest.approx(weight, abs=1e-6)


def test_the_first_step_of_adam_is_as_long_as_the_learning_rate() -> None:
    network = line(1.0)
    fit(network, every_epoch(([3.0], [0.0])), Recipe(epochs=1, lr=0.25), key=KEY, loss=mse_loss)
    assert network.weight.item() == pytest.approx(0.75, abs=1e-6)  # m/√v = sign of the gradient, whatever its size


def test_the_default_loss_is_cross_entropy() -> None:
    network = nn.Linear(4, 3)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    records = fit(network, shuffled(*points(), 12, KEY), Recipe(epochs=1), key=KEY)
    assert records[0].loss == pytest.approx(np.log(3))  # equal logits for three classes


def test_the_loss_of_an_epoch_is_the_mean_over_images_not_batches() -> None:
    recipe = Recipe(epochs=1, lr=1e-12, optimizer="sgd")
    records = fit(line(1.0), every_epoch(([1.0] * 3, [0.0] * 3), ([3.0], [0.0])), recipe, key=KEY, loss=mse_loss)
    assert records[0].loss == pytest.approx(3.0)  # (3·1² + 1·3²)/4; the mean of batches would be 5
    assert records[0].images == 4


def test_the_optimizer_uses_the_rate_of_the_schedule() -> None:
    network = line(0.0)
    recipe = Recipe(epochs=3, lr=1.0, optimizer="sgd", momentum=0, schedule="step", milestones=(1, 2), gamma=0.1)
    records = fit(network, every_epoch(([1.0], [0.0])), recipe, key=KEY, loss=lambda output, target: output.mean())
    assert network.weight.item() == pytest.approx(-1.11)  # the gradient is 1: −(1 + .1 + .01)
    assert [record.lr for record in records] == pytest.approx([1, 0.1, 0.01])


# ── randomness ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_run_gives_the_same_weights_to_the_byte_and_another_key_does_not() -> None:
    torch.manual_seed(1)
    first = trained()
    torch.manual_seed(2)
    assert same(first, trained())
    assert not same(first, trained(Key(1)))  # only the dropout differs: the order has its own key


def test_the_global_generators_are_left_unchanged() -> None:
    before, legacy = torch.get_rng_state(), np.random.get_state()[1].tolist()
    trained()
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.get_state()[1].tolist() == legacy


def test_dropout_differs_from_epoch_to_epoch() -> None:
    network, kept = nn.Sequential(nn.Dropout(0.5), line()), []
    network[0].register_forward_hook(lambda module, args, out: kept.append(out > 0))
    fit(network, every_epoch(([1.0] * 64, [0.0] * 64)), Recipe(epochs=2), key=KEY, loss=mse_loss)
    assert not torch.equal(*kept)


def test_running_the_network_in_on_epoch_does_not_affect_training() -> None:
    network, seen = dropout_network(), []

    def look(record: EpochRecord) -> None:
        seen.append(record)
        network.eval()(torch.rand(2, 4))

    records = fit(network, shuffled(*points(), 5, KEY), Recipe(epochs=3, lr=0.01), key=KEY, on_epoch=look)
    assert same(network.parameters(), trained())
    assert seen == records
    assert [record.epoch for record in seen] == [0, 1, 2]


def test_each_epoch_holds_every_pair_once_in_its_own_order() -> None:
    images, labels = torch.arange(10.0), torch.arange(10) * 3
    epochs = [list(shuffled(images, labels, 4, KEY)(epoch)) for epoch in (0, 1)]
    orders = [torch.cat([x for x, _ in batches]) for batches in epochs]
    assert [len(x) for x, _ in epochs[0]] == [4, 4, 2]
    assert all(torch.equal(order.sort().values, images) for order in orders)
    assert all(torch.equal(y, 3 * x.long()) for batches in epochs for x, y in batches)
    assert not torch.equal(orders[0], images)
    assert not torch.equal(*orders)


def test_the_order_depends_on_key_and_epoch_and_not_on_the_batch_size() -> None:
    images = torch.arange(50)

    def order(key: Key, batch_size: int) -> Tensor:
        return torch.cat([x for x, _ in shuffled(images, images, batch_size, key)(3)])

    assert torch.equal(order(KEY, 7), order(KEY, 50))
    assert not torch.equal(order(KEY, 7), order(Key(1), 7))


@pytest.mark.parametrize(("images", "labels"), [(3, 2), (0, 0)])
def test_a_mismatch_of_images_and_labels_is_an_error(images: int, labels: int) -> None:
    with pytest.raises(ShapeError, match=f"{images} images and {labels} labels"):
        shuffled(torch.zeros(images), torch.zeros(labels), 2, KEY)


def test_a_batch_size_of_zero_is_an_error() -> None:
    with pytest.raises(RangeError, match="batch_size=0"):
        shuffled(torch.zeros(2), torch.zeros(2), 0, KEY)


# ── side effects ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_network_trains_in_train_mode_and_its_modes_are_restored() -> None:
    network, during = nn.Sequential(nn.Dropout(0.5), line()), []
    network.eval()
    network[1].train()
    network[0].register_forward_hook(lambda module, args, out: during.append(module.training))
    fit(network, every_epoch(([1.0], [0.0])), Recipe(epochs=2), key=KEY, loss=mse_loss)
    assert during == [True, True]
    assert [network.training, network[0].training, network[1].training] == [False, False, True]


def test_no_gradient_is_left_on_the_parameters() -> None:
    network = line()
    fit(network, every_epoch(([1.0], [0.0])), Recipe(epochs=1), key=KEY, loss=mse_loss)
    assert network.weight.grad is None


def test_frozen_parameters_do_not_change() -> None:
    network = nn.Sequential(line(2.0), line(3.0))
    network[0].requires_grad_(False)
    fit(network, every_epoch(([1.0], [0.0])), Recipe(epochs=1, lr=0.5), key=KEY, loss=mse_loss)
    assert network[0].weight.item() == 2.0
    assert network[1].weight.item() == pytest.approx(2.5, abs=1e-5)  # Adam's first step


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_non_finite_loss_stops_training_before_it_corrupts_the_weights(bad: float) -> None:
    network = line().eval()
    good, corrupt = (torch.ones(1, 1), torch.zeros(1, 1)), (torch.ones(1, 1), torch.full((1, 1), bad))
    with pytest.raises(ModelError, match=f"loss became {bad} in epoch 1, step 2: lower the learning rate"):
        fit(network, lambda epoch: [good, good, corrupt if epoch else good], Recipe(epochs=3), key=KEY, loss=mse_loss)
    assert network.weight.isfinite().all()
    assert not network.training


def test_an_epoch_without_batches_is_an_error() -> None:
    once = iter([(torch.ones(1, 1), torch.ones(1, 1))])
    with pytest.raises(ShapeError, match=r"epoch 1 has no batch: epoch_batches\(1\)"):
        fit(line(), lambda epoch: once, Recipe(epochs=2), key=KEY, loss=mse_loss)


def test_a_network_without_trainable_parameters_is_an_error() -> None:
    with pytest.raises(ModelError, match="Linear has no parameter to train"):
        fit(line().requires_grad_(False), every_epoch(([1.0], [0.0])), Recipe(epochs=1), key=KEY, loss=mse_loss)


# ── selection, early stopping, checkpoints ───────────────────────────────────────────────────────────────────────────


def steered(measures: list[float], **settings: object) -> tuple[nn.Linear, list[EpochRecord]]:
    """Weights 1.8, 1.6 … after epochs 0, 1 … (gradient 1, rate .2), with a given measure for each."""
    network, remaining = line(2.0), iter(measures)
    recipe = Recipe(epochs=len(measures), lr=0.2, optimizer="sgd", momentum=0, **settings)  # type: ignore[arg-type]
    records = fit(
        network,
        every_epoch(([1.0], [0.0])),
        recipe,
        key=KEY,
        loss=lambda output, target: output.mean(),
        measure=lambda: next(remaining),
    )
    return network, records


@pytest.mark.parametrize(
    ("measures", "epoch"), [([0.1, 0.9, 0.3], 1), ([0.5, 0.9, 0.9, 0.2], 2), ([0.0, 0.0], 1), ([-3.0, -1.0, -2.0], 1)]
)
def test_the_weights_of_the_epoch_with_the_highest_measure_are_kept(measures: list[float], epoch: int) -> None:
    network, records = steered(measures)
    assert best_epoch(records) == epoch  # the last of equals
    assert network.weight.item() == pytest.approx(2 - 0.2 * (epoch + 1))
    assert [record.measure for record in records] == measures


def test_without_a_measure_the_last_epoch_is_kept() -> None:
    records = fit(line(), every_epoch(([1.0], [0.0])), Recipe(epochs=3), key=KEY, loss=mse_loss)
    assert best_epoch(records) == 2
    assert all(np.isnan(record.measure) for record in records)


@pytest.mark.parametrize(("patience", "epochs"), [(0, 7), (1, 3), (2, 4), (3, 7)])
def test_patience_stops_a_training_that_no_longer_improves(patience: int, epochs: int) -> None:
    # The measure improves in epochs 1 and 4; the tie in epoch 2 is no improvement. With patience 3, epoch 4 is reached.
    _, records = steered([0.1, 0.5, 0.5, 0.4, 0.8, 0.2, 0.2], patience=patience)
    assert len(records) == epochs


def small_convolutions() -> nn.Module:
    with Key(7).torch_rng():
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 1),
            nn.Conv2d(16, 3, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip


def train_convolutions(recipe: Recipe, **options: object) -> nn.Module:
    network = small_convolutions()
    images = KEY.normal(range(24), (3, 9, 9))
    fit(network, shuffled(images, torch.arange(24) % 3, 8, KEY), recipe, key=KEY, **options)  # type: ignore[arg-type]
    return network


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_channels_last_gives_the_same_weights_up_to_rounding_in_the_usual_format(
    optimizer: Literal["adam", "sgd"],
) -> None:
    recipe = Recipe(epochs=2, lr=1e-3, optimizer=optimizer)
    plain, fast = (train_convolutions(replace(recipe, channels_last=flag)) for flag in (False, True))
    for a, b in zip(plain.parameters(), fast.parameters(), strict=True):
        assert b.is_contiguous()
        assert torch.allclose(a, b, atol=1e-4)  # a step is at most 1e-3 in each of 6 steps; rounding is 1e-7 of it


@pytest.mark.parametrize(("channels", "stride", "usual"), [(15, 2, True), (16, 2, False), (15, 1, False)])
def test_channels_last_is_not_used_where_torch_would_corrupt_memory(channels: int, stride: int, usual: bool) -> None:
    """A strided 1 × 1 convolution with few input channels: see `_corrupts_memory`."""
    network = nn.Sequential(
        nn.Conv2d(3, channels, 3), nn.Conv2d(channels, 4, 1, stride=stride), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    images, contiguous = KEY.normal(range(4), (9, 9, 3)).permute(0, 3, 1, 2), []  # in channels_last
    network.register_forward_pre_hook(
        lambda module, inputs: contiguous.append((network[0].weight.is_contiguous(), inputs[0].is_contiguous()))
    )
    fit(network, shuffled(images, torch.arange(4), 4, KEY), Recipe(epochs=1, channels_last=True), key=KEY)
    assert contiguous == [(usual, usual)]


def test_autocast_computes_in_bfloat16_and_keeps_weights_in_float32() -> None:
    network, seen = nn.Sequential(nn.Flatten(), nn.Linear(12, 4)), []
    network.register_forward_hook(lambda module, inputs, outputs: seen.append(outputs.dtype))
    images = KEY.normal(range(4), (3, 2, 2))
    fit(network, shuffled(images, torch.arange(4), 4, KEY), Recipe(epochs=1, autocast="bfloat16"), key=KEY)
    assert seen == [torch.bfloat16]
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("autocast", [None, "bfloat16"])
def test_channels_last_training_resumes_to_the_byte_from_a_file(
    optimizer: Literal["adam", "sgd"], autocast: Literal["bfloat16"] | None, tmp_path: Path
) -> None:
    recipe = Recipe(epochs=4, lr=0.01, optimizer=optimizer, channels_last=True, autocast=autocast)
    file, done = CheckpointFile(tmp_path / "state", "tag"), []

    def keep_the_second(state: Checkpoint) -> None:
        if len(state["curve"]) == 2:
            file.write(state)

    whole = train_convolutions(recipe, on_checkpoint=keep_the_second)
    resumed = train_convolutions(recipe, start=file.read(), on_epoch=lambda record: done.append(record.epoch))
    assert done == [2, 3]
    assert same(whole.state_dict().values(), resumed.state_dict().values())


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("stop", [1, 3])
def test_training_resumed_from_any_checkpoint_is_identical_to_the_byte(
    optimizer: Literal["adam", "sgd"], stop: int
) -> None:
    recipe = Recipe(epochs=4, lr=0.01, optimizer=optimizer, schedule="cosine")

    def run(start: Checkpoint | None = None) -> tuple[list[Tensor], list[EpochRecord], list[Checkpoint]]:
        network, kept = dropout_network(), []
        measure = iter([0.3, 0.9, 0.1, 0.2][len(start["curve"]) if start else 0 :])
        records = fit(
            network,
            shuffled(*points(), 5, KEY),
            recipe,
            key=KEY,
            measure=lambda: next(measure),
            start=start,
            on_checkpoint=kept.append,
        )
        return [parameter.detach() for parameter in network.parameters()], records, kept

    weights, records, kept = run()
    resumed, again, rest = run(kept[stop - 1])
    assert same(weights, resumed)
    assert records == again
    assert len(rest) == 4 - stop
    assert all(torch.equal(a, kept[-1][name]) for name, a in rest[-1].items())  # including the optimizer state
