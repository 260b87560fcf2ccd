"""Plans run, killed and resumed as users do it: real processes, real files."""

import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import worlds
from commands import command, contents, roadworthy

CLASSES = ("north-west", "north-east", "south-west", "south-east")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder: pictures, a model of their own with weights, and a plan."""
    root = tmp_path_factory.mktemp("project")
    world = worlds.quadrants(n=24)
    for row, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        folder = root / "pictures" / CLASSES[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0) * 255).byte().numpy()).save(folder / f"{row:02}.png")
    (root / "my_model.py").write_text(
        textwrap.dedent("""
        from torch import nn

        def build(width=4):
            return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                                 nn.Linear(4 * width, 4))
        """)
    )
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(16, 4),
    )  # fmt: skip
    save_file(network.state_dict(), root / "weights.safetensors")
    (root / "plan.toml").write_text(
        textwrap.dedent("""
        [data]
        name = "folder"
        root = "pictures"
        [model]
        factory = "my_model:build"
        weights = "weights.safetensors"
        [methods]
        IG = { name = "ig", steps = 3 }
        IG-SG = { name = "ig-sg", steps = 3, ig_samples = 2 }
        IG-SQ = { name = "ig-sq", steps = 3, ig_samples = 2 }
        GB = "gb"
        [evaluation]
        imputers = ["fixed", "linear"]
        seeds = [0, 1]
        blurred = ["IG"]
        [run]
        batch = 10
        """)
    )
    return root


def run(project, store, *words):
    return roadworthy(project, "run", "plan.toml", "--store", store, *words)


@pytest.fixture(scope="module")
def unbroken(project):
    run(project, "unbroken", "--jobs", "1")
    found = contents(project / "unbroken")
    # 4 methods, 3 controls, 1 blurred copy; each in 2 orders, 2 imputers, 2 seeds, 10 fractions
    assert len(found) == 8 + 8 * 2 * 2 * 2 * 10
    return found


def stamps(root: Path):
    return {path: path.stat().st_mtime_ns for path in root.glob("*/*.safetensors")}


def test_killed_ten_times_and_resumed_it_ends_with_the_same_bytes_and_does_nothing_twice(project, unbroken):
    random.seed(5)
    root = project / "killed"
    for _ in range(10):
        before = stamps(root)
        goal = len(before) + random.randint(1, 28)
        process = subprocess.Popen(command("run", "plan.toml", "--store", "killed", "--jobs", "1"), cwd=project)
        while process.poll() is None and len(stamps(root)) < goal:
            time.sleep(random.random() / 100)
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = stamps(root)
        assert all(after[path] == stamp for path, stamp in before.items())  # nothing was written again
    assert len(after) < len(unbroken)  # there was work left: the kills were real
    run(project, "killed", "--jobs", "1")
    assert contents(project / "killed") == unbroken
    assert not (root / "lock").exists()


def test_two_jobs_give_the_same_bytes_as_one(project, unbroken):
    run(project, "two", "--jobs", "2")
    assert contents(project / "two") == unbroken


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_polite_ending_is_clean_and_one_signal_is_enough(project, ending):
    store = f"ended-{ending}"
    process = subprocess.Popen(
        command("run", "plan.toml", "--store", store, "--jobs", "2"), cwd=project, stdout=subprocess.PIPE, text=True
    )
    while process.poll() is None and not stamps(project / store):
        time.sleep(0.01)
    process.send_signal(ending)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run again to go on" in out
    assert not (project / store / "lock").exists()
    assert "done" in roadworthy(project, "status", store).stdout


def test_a_dying_worker_costs_nothing_but_its_item_in_hand(project, unbroken):
    process = subprocess.Popen(
        command("run", "plan.toml", "--store", "orphaned", "--jobs", "2"), cwd=project, stdout=subprocess.DEVNULL
    )
    while process.poll() is None and len(stamps(project / "orphaned")) < 12:
        time.sleep(0.01)
    workers = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    assert workers
    for worker in workers[-1:]:
        os.kill(int(worker), signal.SIGKILL)
    assert process.wait(timeout=120) == 0
    assert contents(project / "orphaned") == unbroken


def test_workers_do_not_outlive_a_killed_driver(project):
    process = subprocess.Popen(command("run", "plan.toml", "--store", "driverless", "--jobs", "2"), cwd=project)
    while process.poll() is None and not stamps(project / "driverless"):
        time.sleep(0.01)
    workers = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    assert workers
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), seconds=30)


def test_changed_weights_are_new_work_and_corrupt_files_are_done_again(project, unbroken):
    run(project, "changed", "--jobs", "1")
    victim = next((project / "changed" / "trials").iterdir())
    victim.write_bytes(b"broken")
    again = run(project, "changed", "--jobs", "1")
    assert victim.name in again.stdout.replace("\n", "")
    assert "aside" in again.stdout.replace("\n", "")
    assert contents(project / "changed") == unbroken
    assert "0 of 648 items are missing" in run(project, "changed", "--dry-run").stdout
    weights = project / "weights.safetensors"
    kept = weights.read_bytes()
    try:
        weights.write_bytes(kept[:-4] + np.float32(0.123).tobytes())
        assert "648 of 648 items are missing" in run(project, "changed", "--dry-run").stdout
    finally:
        weights.write_bytes(kept)


def test_a_failing_item_is_recorded_and_the_rest_goes_on(project):
    text = (project / "plan.toml").read_text()
    (project / "failing.toml").write_text(
        text.replace("[evaluation]", "[evaluation]\nfractions = [0.5, 1.0]").replace("seeds = [0, 1]", "seeds = [0]")
    )
    result = roadworthy(project, "run", "failing.toml", "--store", "failing", "--jobs", "1", code=1)
    assert result.returncode == 1
    told = roadworthy(project, "status", "failing").stdout
    # Noisy Linear has no answer when everything is removed: its curves fail as wholes, the fixed fill's are there.
    assert "EverythingRemovedError" in told
    assert len(stamps(project / "failing")) == 8 + 8 * 2 * 1 * 3


def test_status_export_and_merge_tell_what_is_there(project, unbroken):
    assert "done 648  pending 0  failed 0" in roadworthy(project, "status", "unbroken").stdout
    for suffix in ("csv", "json", "parquet"):
        roadworthy(project, "export", "unbroken", f"table.{suffix}")
    lines = (project / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + 640 * 24  # a row per point and image
    roadworthy(project, "merge", "unbroken", "--into", "merged")
    assert contents(project / "merged") == unbroken
    assert "done 648" in roadworthy(project, "status", "merged").stdout
    nowhere = roadworthy(project, "status", "nowhere", code=1)
    assert nowhere.returncode == 1
    assert "is no store" in nowhere.stderr


def test_a_plan_is_checked_with_its_cost(project):
    told = " ".join(roadworthy(project, "plan", "check", "plan.toml").stdout.replace("│", " ").split())
    assert "648 of 648 items are missing from runs/plan" in told
    assert "maps 8 8 " in told
    assert "points 640 640 " in told
    assert "24 images; one job of 1 thread" in told


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Two Ray nodes on loopback addresses of their own, ended by their process ids."""
    pytest.importorskip("ray", reason="the Ray executor is an extra: pip install 'roadworthy[ray]'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus", "1", "--block"]
    nodes = []
    with (tmp_path / "ray.log").open("wb") as log, free_port() as port:
        for words in (
            ["--head", "--node-ip-address", "127.0.0.2", "--port", str(port), "--include-dashboard=false"],
            ["--address", f"127.0.0.2:{port}", "--node-ip-address", "127.0.0.3"],
        ):
            nodes.append(subprocess.Popen([*start, *words], stdout=log, stderr=log, start_new_session=True))
            wait_for(lambda: (tmp_path / "ray.log").read_text().count("block forever") == len(nodes))
    try:
        yield f"127.0.0.2:{port}"
    finally:
        for node in reversed(nodes):
            os.killpg(node.pid, signal.SIGTERM)
        for node in nodes:
            node.wait(timeout=60)


@contextmanager
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))
        port = probe.getsockname()[1]
    yield port


def wait_for(condition, seconds=90):
    deadline = time.time() + seconds
    while not condition():
        assert time.time() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.mark.ray
def test_ray_on_two_nodes_gives_the_same_bytes_though_a_worker_is_killed(project, unbroken, cluster):
    process = subprocess.Popen(
        command("run", "plan.toml", "--store", "ray", "--executor", "ray", "--address", cluster), cwd=project
    )
    workers: list[str] = []

    def at_work():
        """Between two tasks a worker is called ray::IDLE."""
        workers[:] = subprocess.run(["pgrep", "-f", "ray::attempt"], capture_output=True, text=True).stdout.split()
        return workers

    try:
        wait_for(lambda: (len(stamps(project / "ray")) >= 12 and at_work()) or process.poll() is not None)
        assert workers
        os.kill(int(workers[0]), signal.SIGKILL)
        assert process.wait(timeout=200) == 0
    finally:
        process.kill()
        process.wait()
    assert contents(project / "ray") == unbroken
