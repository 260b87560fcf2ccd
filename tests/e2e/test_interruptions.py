"""A run that is killed or stopped, and run again: nothing is lost, nothing is computed twice."""

import os
import random
import signal
import subprocess

import pytest

from commands import command, contents, invoke, killed_when, output_of, stamps, wait_until


def killed_and_resumed(project, store, kills, most):
    """Kill a run that many times, each time after 1 to `most` more items; then let it finish."""
    chance, root = random.Random(5), project / store
    for _ in range(kills):
        before = stamps(root)
        goal = len(before) + chance.randint(1, most)
        killed_when(lambda goal=goal: len(stamps(root)) >= goal, project, *words(store, jobs=1))
        after = stamps(root)
        assert len(after) >= goal  # it did compute something
        assert all(after[path] == stamp for path, stamp in before.items())  # nothing was written again
    unfinished = len(after)
    invoke(project, *words(store, jobs=1))
    return unfinished


def words(store, jobs):
    return "run", "plan.toml", "--store", store, "--jobs", jobs


def test_killed_three_times_and_resumed_it_ends_with_the_same_bytes(project, uninterrupted):
    unfinished = killed_and_resumed(project, "killed", kills=3, most=120)
    assert unfinished < len(uninterrupted)  # every kill interrupted something
    assert contents(project / "killed") == uninterrupted


@pytest.mark.slow
def test_killed_ten_times_and_resumed_it_ends_with_the_same_bytes(project, uninterrupted):
    unfinished = killed_and_resumed(project, "killed often", kills=10, most=40)
    assert unfinished < len(uninterrupted)
    assert contents(project / "killed often") == uninterrupted


def stopped(project, store, jobs, ending):
    """Send a signal to a run that has computed something; returns its exit code and what it printed."""
    process = subprocess.Popen(
        command(*words(store, jobs)),
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that starts the tests in the background makes them, and what they start, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        wait_until(lambda: stamps(project / store), process)
        if ending is signal.SIGINT:
            os.killpg(process.pid, ending)  # a terminal sends Ctrl-C to the workers too
        else:
            process.send_signal(ending)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    return process.returncode, output, errors


@pytest.mark.parametrize(("ending", "jobs"), [(signal.SIGTERM, 1), (signal.SIGINT, 2)], ids=["SIGTERM", "Ctrl-C"])
def test_a_run_that_is_stopped_says_how_to_resume_and_exits_with_130(project, uninterrupted, ending, jobs):
    for attempt in range(4):  # on a busy machine the run may end before the signal reaches it
        store = f"stopped by {ending.name} {attempt}"
        code, output, errors = stopped(project, store, jobs, ending)
        done = len(stamps(project / store))
        if code == 130:
            break
    assert code == 130
    assert "run again to resume" in output
    assert "Traceback" not in errors
    assert 0 < done < len(uninterrupted)
    assert f"done {done}" in output_of(project, "status", store)
