"""`roadworthy imputers compare`: a table and pictures of fills on a user's own images."""

import pandas as pd
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter
from typer.testing import CliRunner

from roadworthy.cli.app import app
from roadworthy.core.random import Key

PLAN = """
[data]
name = "folder"
root = "pictures"
[model]
name = "small-cnn"
channels = 3
classes = 2
[methods]
grad = "gradient"
[evaluation]
imputers = ["image-mean", { name = "constant", value = 0.0, as = "black" }]
"""


@pytest.fixture
def project(tmp_path):
    """Smooth pictures, 24 in two classes."""
    noise = Key(0).normal(range(24), (3, 12, 12)).numpy()
    smooth = gaussian_filter(noise, (0, 0, 3, 3))
    images = 0.5 + 0.2 * smooth / smooth.std()
    for row, image in enumerate(images.clip(0, 1)):
        folder = tmp_path / "pictures" / f"class {row % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.transpose(1, 2, 0) * 255).astype("uint8")).save(folder / f"{row:02}.png")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_fills_are_compared_by_error_by_being_told_and_by_time_with_pictures(project, monkeypatch):
    monkeypatch.chdir(project)
    words = ["imputers", "compare", "plan.toml", "--fraction", "0.3", "--out", "fills"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    table = pd.read_csv("fills/imputers.csv").set_index(["imputer", "masks"])
    assert set(table.index) == {
        (name, masks) for name in ("fixed", "blur", "linear", "image-mean", "black") for masks in ("scatter", "blobs")
    }
    mse = table["mse"]
    for masks in ("scatter", "blobs"):
        # Smooth pictures around .5 with deviation .2: black misses by .5² + .2² = .29, a mean by about .2² = .04.
        assert mse["black", masks] == pytest.approx(0.29, rel=0.15)
        assert mse["linear", masks] < mse["fixed", masks] < mse["black", masks]
        assert table["auc"]["black", masks] > 0.95  # no pixel of the pictures is black
    assert (table["milliseconds"] > 0).all()
    for masks in ("scatter", "blobs"):
        with Image.open(f"fills/{masks}-30.png") as picture:
            assert picture.width > 800


def test_shares_that_leave_nothing_to_compare_are_refused(project, monkeypatch):
    monkeypatch.chdir(project)
    result = CliRunner().invoke(app, ["imputers", "compare", "plan.toml", "--fraction", "1"])
    assert result.exit_code == 1
    assert "give shares between" in " ".join(result.output.split())
