"""Arguments of compare: what cannot be meant is refused before anything is read; what can be read is not dropped."""

import numpy as np
import pytest
import torch

import roadworthy as rw
import worlds

WORLD = worlds.quadrants(n=8)


class Unread:
    """Data that must not be read, because the arguments are wrong."""

    classes = ()
    ids = torch.arange(8)

    def __len__(self):
        return 8

    def batches(self, size):
        raise AssertionError("data were read before the arguments were checked")


def compare(data=None, **options):
    options = {
        "methods": {"own": lambda model, batch, key: batch.images},
        "fractions": (0.5,),
        "controls": (),
        **options,
    }
    return rw.compare(WORLD.model, data or (WORLD.images, WORLD.labels), progress=False, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": {1: "gradient"}}, "method 1: its name must be text"),
        ({"methods": {"a\nb": "gradient"}}, "on one line"),
        ({"methods": {}}, "methods is empty"),
        ({"methods": ["gradient"]}, "methods is a list"),
        ({"seeds": ()}, "seeds is empty"),
        ({"seeds": 3}, r"seeds=\(3,\)"),
        ({"seeds": (0, 0)}, "twice"),
        ({"seeds": (0.5,)}, "whole number"),
        ({"seeds": (True,)}, "whole number"),
        ({"seeds": (-1,)}, "0 or more"),
        ({"seeds": (2**64,)}, "64 bits"),
        ({"seeds": range(200_000)}, "at most 1,000"),
        ({"orders": ()}, "orders is empty"),
        ({"orders": "morf"}, r"orders=\('morf',\)"),
        ({"orders": {"mine": 3}}, "a function"),
        ({"fractions": "half"}, "fractions"),
        ({"fractions": ("half",)}, "numbers in"),
        ({"fractions": (float("nan"),)}, "nan"),
        ({"fractions": ()}, "empty"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
        ({"map_batch_size": "8"}, "map_batch_size='8'"),
        ({"map_seed": None}, "map_seed=None"),
        ({"channel_reduction": "mean"}, "sum, abs_sum, max_abs"),
        ({"confidence": 95}, "0.95"),
        ({"confidence": "high"}, "0.95"),
        ({"margin": float("nan")}, "0.02"),
        ({"device": "meta"}, "destroy the weights"),
        ({"device": "gpu"}, "'cpu'"),
        ({"device": object()}, "'cpu'"),
        ({"target": ["label"]}, "'label' or the 'prediction'"),
        ({"evaluators": None}, "evaluators"),
        ({"controls": ("center", "sobel")}, "sobel"),
        ({"controls": None}, "controls"),
    ],
)  # fmt: skip
def test_an_argument_that_cannot_be_meant_is_refused_before_data_are_read(options, message):
    with pytest.raises(rw.errors.InputError, match=message):
        compare(Unread(), **options)


def test_generators_are_read_once_and_nothing_is_dropped():
    comparison = compare(
        fractions=(share for share in (0.3, 0.6)),
        seeds=(seed for seed in (0, 1)),
        orders=(order for order in ("morf", "lerf")),
        imputers=(imputer for imputer in ("linear", "fixed")),
        controls=(name for name in ("random",)),
    )
    points = comparison.predictions
    # 2 methods × 2 orders × 2 imputers × 2 seeds × fractions 0, .3, .6
    assert len(points) == 2 * 2 * 2 * 2 * 3


def test_numpy_integers_are_integers():
    assert compare(seeds=np.arange(1), batch_size=np.int64(4), map_batch_size=np.uint8(4)).predictions


def test_noise_that_is_not_a_number_is_refused():
    with pytest.raises(rw.errors.RangeError, match="noise"):
        rw.NoisyLinear(noise=float("nan"))
