"""What the paper asserts, on real CIFAR-10 images with a real ResNet-20; fewer images and samples than the demo's."""

import pytest

import roadworthy as rw
from roadworthy.models import resnet20_cifar10

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def comparison(real_data):
    model = resnet20_cifar10(real_data / "weights" / "resnet20_cifar10.safetensors")
    return rw.compare(
        model, rw.datasets.first(rw.datasets.CIFAR10(real_data), 96),
        rw.attributions.paper_methods(steps=4, ig_samples=4, gb_samples=4), imputers=["linear", "fixed"],
        fractions=(0.1, 0.3, 0.5, 0.7, 0.9), controls=("random", "inverted"),
    )  # fmt: skip


def test_linear_fill_makes_the_orders_agree_more_than_fixed_fill(comparison):
    table = comparison.agreement()
    both = table[(table["imputer_a"] == table["imputer_b"]) & (table["order_a"] != table["order_b"])]
    found = both.set_index(["imputer_a", "pairing"])["spearman"]
    # The demo's 500 images gave, removed with kept, +.65 (linear) and −.07 (fixed); equal shares, +.32 and −.44.
    # These 96 gave +.52 and +.35; +.29 and −.31: the first pairing is noisier with few methods and images.
    assert found["linear", "kept"] > found["fixed", "kept"]
    assert found["linear", "removed"] > found["fixed", "removed"] + 0.3


def test_random_and_inverted_controls_come_last_or_nearly_so(comparison):
    table = comparison.ranking().query("imputer == 'linear'").reset_index(drop=True)
    # 8 methods, random, 2 inverted copies: GB and GB-SG are about as uninformative as random on this network.
    places = table.index[table["control"]]
    assert list(places[-2:]) == [9, 10]
    assert places[0] >= 5


def test_the_model_is_right_where_nothing_is_removed_and_near_chance_where_nearly_all_is(comparison):
    curves = comparison.curves().set_index(["method", "order", "imputer", "fraction"])["accuracy"]
    assert curves["IG", "morf", "linear", 0.0] > 0.85
    # 90 % of the pixels removed, most relevant first: the paper's curves end between .1 and .3.
    assert curves["IG-SG", "morf", "linear", 0.9] < 0.35
