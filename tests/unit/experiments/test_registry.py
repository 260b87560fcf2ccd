"""The registry: names lead to entries, and entries know their options."""

import captum.attr
import numpy as np
import pytest
import torch

import worlds
from roadworthy import attributions
from roadworthy.core.errors import InputError, UnknownNameError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.experiments.registry import REGISTRY, Entry, lookup, suggestion
from roadworthy.models import small_cnn
from roadworthy.models.normalized import Normalized

KEY = Key(0)


@pytest.fixture(scope="module")
def model():
    with Key(3).torch_rng():
        return Normalized(small_cnn(classes=4, channels=3, width=4), mean=0.5, std=0.2).eval()


@pytest.fixture(scope="module")
def batch():
    world = worlds.quadrants(n=3, size=16)
    return Batch(torch.arange(3), world.images, world.labels)


@pytest.mark.parametrize(
    ("family", "name", "parts"),
    [
        ("imputers", "lineer", ["unknown imputer 'lineer': did you mean 'linear'? Available: linear, fixed"]),
        ("attributions", "IG", ["unknown attribution 'IG'", "did you mean 'ig'?"]),
        ("models", "zzz", ["unknown model 'zzz': Available: resnet18"]),
    ],
)
def test_an_unknown_name_leads_to_the_right_one(family, name, parts):
    with pytest.raises(UnknownNameError) as error:
        lookup(family, name)
    for part in parts:
        assert part in str(error.value)


def test_suggestions_ignore_case():
    assert suggestion("raod", ("ROAD", "KAR")).startswith("did you mean 'ROAD'?")


def test_every_entry_has_a_summary_of_one_line():
    for family, entries in REGISTRY.items():
        for name, entry in entries.items():
            assert entry.summary, f"{family} {name}"
            assert "\n" not in entry.summary


def test_an_entry_knows_its_options():
    def make(data, first, second=2):
        """One line.

        More.
        """

    assert Entry(make).options == ("data", "first", "second")
    assert (Entry(make, needs_data=True).options, Entry(make, needs_data=True).required) == (
        ("first", "second"),
        ("first",),
    )
    assert Entry(make).summary == "One line."
    assert Entry(lambda method, **options: None).options is None
    assert Entry(lambda method, **options: None).required == ("method",)


def test_a_captum_method_by_the_name_of_its_class(model, batch):
    make = lookup("attributions", "captum").make
    built, direct = make("Saliency", abs=False), attributions.Captum(captum.attr.Saliency, abs=False)
    assert torch.equal(built(model, batch, KEY), direct(model, batch, KEY))
    # Constructor options go through `init`; lists, which TOML has, become the tuples that Captum wants.
    occlusion = make("Occlusion", sliding_window_shapes=[3, 8, 8], strides=[3, 8, 8])
    maps = occlusion(model, batch, KEY)
    assert maps.shape == (3, 3, 16, 16)
    assert torch.equal(maps[..., :8, :8], maps[..., :1, :1].expand(-1, -1, 8, 8))
    local = make("InputXGradient")(model, batch, KEY)
    steps = make("IntegratedGradients", init={"multiply_by_inputs": False}, n_steps=4)(model, batch, KEY)
    assert not torch.equal(local, steps)


def test_a_layer_is_found_by_its_name_in_the_users_network(model, batch):
    own_network = model.network.network
    name, layer = next((n, m) for n, m in own_network.named_modules() if isinstance(m, torch.nn.Conv2d))
    built = lookup("attributions", "captum").make("LayerGradCam", layer=name)
    direct = attributions.Captum(captum.attr.LayerGradCam, init={"layer": layer})
    assert torch.equal(built(model, batch, KEY), direct(model, batch, KEY))
    with pytest.raises(InputError, match=rf"layer '{name}x': .*did you mean '{name}'"):
        lookup("attributions", "captum").make("LayerGradCam", layer=f"{name}x")(model, batch, KEY)


def test_wrong_captum_methods_are_named():
    make = lookup("attributions", "captum").make
    with pytest.raises(UnknownNameError, match="unknown Captum method 'Salency': did you mean 'Saliency'"):
        make("Salency")
    with pytest.raises(InputError, match="LayerGradCam"):
        make("LayerGradCam")


def test_precomputed_maps_come_from_a_file(tmp_path):
    maps = np.arange(8.0).reshape(2, 2, 2)
    np.save(tmp_path / "maps.npy", maps)
    np.savez(tmp_path / "maps.npz", mine=maps, other=-maps)
    make = lookup("attributions", "maps").make
    assert np.array_equal(make(tmp_path / "maps.npy").maps, maps)
    assert np.array_equal(make(tmp_path / "maps.npz", array="mine").maps, maps)
