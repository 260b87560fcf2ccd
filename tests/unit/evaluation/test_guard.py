"""No method may change what the others are measured on."""

import pytest
import torch
from torch import nn

import roadworthy as rw
import worlds

WORLD = worlds.quadrants(n=12)


def compare(methods, model=WORLD.model, data=None, **options):
    data = data if data is not None else (WORLD.images, WORLD.labels)
    options = {"fractions": (0.3, 0.6), "controls": (), "progress": False, "map_batch_size": 4, **options}
    return rw.compare(model, data, methods, **options)


def honest(model, batch, key):
    return batch.images.sum(dim=1)


def accuracies(comparison, method="honest"):
    curves = comparison.curves()
    return curves.loc[curves["method"] == method, "accuracy"].tolist()


def zero_images(model, batch, key):
    maps = batch.images.sum(dim=1)
    batch.images.zero_()
    return maps


def zero_labels(model, batch, key):
    batch.labels.zero_()
    return batch.images.sum(dim=1)


@pytest.mark.parametrize(("method", "field"), [(zero_images, "images"), (zero_labels, "labels")])
def test_a_method_that_changes_its_batch_changes_no_other_and_is_named(method, field):
    alone = accuracies(compare({"honest": honest}))
    with pytest.warns(rw.errors.ChangedInputWarning, match=f"bad changed the {field}"):
        together = compare({"bad": method, "honest": honest})
    assert accuracies(together) == alone


def test_a_buffer_that_is_returned_twice_keeps_the_maps_of_each_batch():
    buffer = torch.empty(4, 12, 12)

    def reusing(model, batch, key):
        return buffer[: len(batch)].copy_(batch.images.sum(dim=1))

    assert accuracies(compare({"honest": reusing})) == accuracies(compare({"honest": honest}))


class Brightness(nn.Module):
    """`worlds.Quadrants` with a weight, and a dropout that removes nearly everything in train mode."""

    def __init__(self):
        super().__init__()
        self.scale, self.quadrants, self.dropout = nn.Parameter(torch.ones(())), worlds.Quadrants(), nn.Dropout(0.9)

    def forward(self, images):
        return self.scale * self.quadrants(self.dropout(images))


def test_a_method_that_changes_weights_ends_the_comparison_by_name():
    def training(model, batch, key):
        with torch.no_grad():
            next(model.parameters()).data.mul_(-1)  # .data: the version counter of the parameter does not notice
        return batch.images

    with pytest.raises(rw.errors.ModelError, match=r"bad changed the weights of the model \(network.network.scale\)"):
        compare({"bad": training, "honest": honest}, Brightness())


def test_a_method_that_leaves_hooks_ends_the_comparison_by_name():
    def hooking(model, batch, key):
        model.network.register_forward_hook(lambda module, inputs, output: -output)
        return batch.images

    with pytest.raises(rw.errors.ModelError, match="bad left hooks"):
        compare({"bad": hooking}, Brightness())


def test_a_method_that_leaves_train_mode_is_named_and_the_mode_restored():
    def forgetful(model, batch, key):
        model.train()
        return batch.images

    alone = accuracies(compare({"honest": honest}, Brightness()))
    with pytest.warns(rw.errors.ChangedInputWarning, match="bad left . modules"):
        assert accuracies(compare({"bad": forgetful, "honest": honest}, Brightness())) == alone


@pytest.mark.parametrize("hide", [lambda net: lambda x: net(x), lambda net: net.forward], ids=["lambda", "method"])
def test_a_network_in_train_mode_behind_a_function_is_evaluated_in_eval_mode(hide):
    network = Brightness().train()
    hidden = accuracies(compare({"honest": honest}, hide(network)))
    assert hidden == accuracies(compare({"honest": honest}, Brightness().eval()))
    assert network.training, "and is given back in the mode it had"


def test_a_model_that_answers_at_random_is_reported_before_long_work():
    with pytest.warns(rw.errors.UnstableModelWarning, match="asked again"):
        compare({"honest": honest}, lambda x: WORLD.model(x) + 100 * torch.rand(len(x), 4))


def test_a_model_that_depends_on_its_batch_is_reported_before_long_work():
    with pytest.warns(rw.errors.UnstableModelWarning, match="comes alone"):
        compare({"honest": honest}, lambda x: WORLD.model(x - x.mean(dim=0)))


def test_a_number_of_classes_that_changes_between_batches_is_refused():
    calls = []

    def growing(images):
        calls.append(len(images))
        logits = WORLD.model(images)
        return logits if len(calls) < 9 else torch.cat([logits, logits], dim=1)

    with pytest.raises(rw.errors.ModelError, match="8 classes after 4"):
        compare({"honest": honest}, growing)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (lambda maps, ids, key: torch.zeros(maps.shape, dtype=torch.int64), "no permutation"),
        (lambda maps, ids, key: maps[:1].long(), r"return ranks \(2, 12, 12\)"),
    ],
)
def test_an_order_that_does_not_rank_is_refused(order, message):
    with pytest.raises(rw.errors.InputError, match=message):
        compare({"honest": honest}, orders={"morf": order})


@pytest.mark.parametrize(
    ("imputer", "message"),
    [
        (lambda batch, removed, key: torch.zeros_like(batch.images), "not removed"),
        (lambda batch, removed, key: torch.where(removed[:, None], torch.nan, batch.images), "NaN"),
    ],
)
def test_an_imputer_that_breaks_its_contract_is_refused(imputer, message):
    with pytest.raises(rw.errors.InputError, match=f"'mine'.*{message}"):
        compare({"honest": honest}, imputers={"mine": imputer})
