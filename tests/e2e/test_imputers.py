"""`roadworthy imputers compare`: a table and pictures of imputations of a user's own images."""

import pandas as pd
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from commands import invoke, output_of
from projects import write
from roadworthy.core.random import Key

PLAN = """
[data]
name = "folder"
root = "images"
[model]
name = "small-cnn"
channels = 3
classes = 2
[methods]
grad = "gradient"
[evaluation]
self_test = false
imputers = ["image-mean", { name = "constant", value = 0.0, as = "black" }]
"""


@pytest.fixture
def project(tmp_path):
    """Smooth images, 24 in two classes."""
    noise = Key(0).normal(range(24), (3, 12, 12)).numpy()
    smooth = gaussian_filter(noise, (0, 0, 3, 3))
    images = 0.5 + 0.2 * smooth / smooth.std()
    for row, image in enumerate(images.clip(0, 1)):
        folder = tmp_path / "images" / f"class {row % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.transpose(1, 2, 0) * 255).astype("uint8")).save(folder / f"{row:02}.png")
    write(tmp_path / "plan.toml", PLAN)
    return tmp_path


def test_imputers_are_compared_by_error_detectability_and_time_with_pictures(project):
    invoke(project, "imputers", "compare", "plan.toml", "--fraction", 0.3, "--out", "out")
    table = pd.read_csv(project / "out" / "imputers.csv").set_index(["imputer", "masks"])
    assert set(table.index) == {
        (name, masks) for name in ("fixed", "blur", "linear", "image-mean", "black") for masks in ("scatter", "blobs")
    }
    mse = table["mse"]
    for masks in ("scatter", "blobs"):
        # Smooth images around .5 with deviation .2: black misses by .5² + .2² = .29, a mean by about .2² = .04.
        assert mse["black", masks] == pytest.approx(0.29, rel=0.15)
        assert mse["linear", masks] < mse["fixed", masks] < mse["black", masks]
        assert table["auc"]["black", masks] > 0.95  # no pixel of the images is black
    assert (table["milliseconds"] > 0).all()
    for masks in ("scatter", "blobs"):
        with Image.open(project / "out" / f"{masks}-30.png") as picture:
            assert picture.width > 800


def test_fractions_that_leave_nothing_to_compare_are_refused(project):
    assert "give values between" in output_of(project, "imputers", "compare", "plan.toml", "--fraction", 1, code=1)
