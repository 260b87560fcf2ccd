"""Several processes, on this machine or on a Ray cluster: the same bytes as one, whatever happens to a worker."""

import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from commands import contents, flat, invoke, killed_when, roadworthy, stamps, wait_until
from projects import write

DEADLY = """
import os
import signal
from pathlib import Path

def maps(model, batch, key):
    if 17 in batch.ids.tolist() and {condition}:
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return batch.images.mean(dim=1)

marker = Path(__file__).with_suffix(".died")
"""


def plan_with(project, name, condition):
    """The plan with a method that kills its process at image 17 (of the second of three blocks)."""
    write(project / f"{name}.py", DEADLY.format(condition=condition))
    text = (project / "plan.toml").read_text().replace('GB = "gb"', f'deadly = "{name}:maps"')
    return write(project / f"{name}.toml", text)


def run(project, plan, store, jobs, *words, code=0):
    return invoke(project, "run", plan, "--store", store, "--jobs", jobs, *words, code=code)


def test_two_jobs_give_the_same_bytes_as_one(project, uninterrupted):
    run(project, "plan.toml", "two jobs", 2)
    assert contents(project / "two jobs") == uninterrupted


def test_the_items_of_a_worker_that_died_are_computed_by_another(project):
    plan = plan_with(project, "once", "not marker.exists()")
    run(project, plan, "died once", 2)
    assert (project / "once.died").exists()  # it did die
    run(project, plan, "did not die", 1)
    assert contents(project / "died once") == contents(project / "did not die")


@pytest.mark.slow
def test_an_item_that_kills_every_worker_is_recorded_and_the_rest_is_computed(project, uninterrupted):
    plan = plan_with(project, "always", "True")
    result = run(project, plan, "died always", 2, code=1)
    assert "1 failed" in flat(result.stdout)
    status = flat(invoke(project, "status", "died always").stdout)
    assert "a worker died 3 times" in status
    # Of the method that kills its workers the maps of one block are missing, and the predictions that need them.
    assert len(stamps(project / "died always")) == len(uninterrupted) - 1 - 2 * 2 * 2 * 3


def test_workers_do_not_outlive_a_killed_driver(project):
    store, workers = project / "no driver", []

    def working():
        if stamps(store):
            workers[:] = children_of(os.getpid(), "no driver")
        return workers

    killed_when(working, project, "run", "plan.toml", "--store", store, "--jobs", 2)
    assert len(workers) >= 2
    wait_until(lambda: not any(map(alive, workers)), seconds=30)


def children_of(parent, argument):
    """The processes that were started by the child of `parent` that has this argument."""
    [driver] = [pid for pid in _children(parent) if argument in _command_line(pid)]
    return _children(driver)


def _children(parent):
    return [int(pid) for pid in subprocess.run(["pgrep", "-P", str(parent)], capture_output=True).stdout.split()]


def _command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_text()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def restless_plan(project):
    """The plan with a model whose weights depend on the process that builds it."""
    write(
        project / "restless.py",
        """
        import os
        import torch
        from my_model import build

        def build_anew():
            torch.manual_seed(os.getpid())
            return build()
        """,
    )
    text = (project / "plan.toml").read_text().replace("my_model:build", "restless:build_anew")
    return write(project / "restless.toml", text.replace('weights = "weights.safetensors"\n', ""))


def check_refusal(project, store, result):
    error = flat(result.stderr)
    assert "PlanError: model: restless:build_anew" in error
    assert "not deterministic" in error
    assert stamps(project / store) == {}
    assert "failed 0" in flat(invoke(project, "status", store).stdout)


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # its weights are random
def test_a_worker_that_builds_another_model_than_the_driver_is_refused(project):
    check_refusal(project, "restless", run(project, restless_plan(project), "restless", 2, code=1))


# ── Ray ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two Ray nodes on loopback addresses of their own, ended by their process ids."""
    pytest.importorskip("ray", reason="the Ray executor is an extra: pip install 'roadworthy[ray]'")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**token, "RAY_USAGE_STATS_ENABLED": "0"}.items():
            patch.setenv(name, value)
        yield from two_nodes(tmp_path_factory.mktemp("ray") / "ray.log")


def two_nodes(log):
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus", "1", "--block"]
    port, nodes = free_port(), []
    try:
        with log.open("wb") as output:
            for words in (
                ["--head", "--node-ip-address", "127.0.0.2", "--port", str(port), "--include-dashboard=false"],
                ["--address", f"127.0.0.2:{port}", "--node-ip-address", "127.0.0.3"],
            ):
                nodes.append(subprocess.Popen([*start, *words], stdout=output, stderr=output, start_new_session=True))
                wait_until(lambda: log.read_text().count("block forever") == len(nodes), nodes[-1])
        yield f"127.0.0.2:{port}"
    finally:
        for node in reversed(nodes):
            os.killpg(node.pid, signal.SIGTERM)
        for node in nodes:
            node.wait(timeout=60)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))
        return probe.getsockname()[1]


@pytest.mark.ray
@pytest.mark.slow
def test_ray_on_two_nodes_gives_the_same_bytes_though_a_worker_dies(project, cluster):
    plan = plan_with(project, "once_on_ray", "not marker.exists()")
    roadworthy(project, "run", plan, "--store", "ray", "--executor", "ray", "--address", cluster)
    assert (project / "once_on_ray.died").exists()
    run(project, plan, "without ray", 1)
    assert contents(project / "ray") == contents(project / "without ray")


@pytest.mark.ray
@pytest.mark.slow
def test_a_ray_worker_that_builds_another_model_than_the_driver_is_refused(project, cluster):
    plan, words = restless_plan(project), ("--executor", "ray", "--address", cluster)
    check_refusal(
        project, "restless on ray", roadworthy(project, "run", plan, "--store", "restless on ray", *words, code=1)
    )
