"""Call the command line: in a process of its own, or in this one, which saves the seconds that imports take."""

import contextlib
import subprocess
import sys
import time

from typer.testing import CliRunner

from roadworthy.cli.app import app


def command(*words):
    return [sys.executable, "-m", "roadworthy", *map(str, words)]


def roadworthy(folder, *words, code=0):
    """Run the command in a process of its own."""
    result = subprocess.run(command(*words), cwd=folder, capture_output=True, text=True, timeout=240)
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def invoke(folder, *words, code=0):
    """Run the command in this process; the result has `stdout`, `stderr` and `output` (both)."""
    with contextlib.chdir(folder):
        result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.stderr
    return result


def output_of(folder, *words, code=0):
    """Everything that the command prints, without the line breaks and frames of a terminal."""
    return flat(invoke(folder, *words, code=code).output)


def flat(text):
    return " ".join(text.replace("│", " ").split())


def contents(store):
    """The bytes of every item of a run directory, by path."""
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.glob("*/*/*.safetensors"))}


def stamps(store):
    """When each item was written, by path."""
    return {path: path.stat().st_mtime_ns for path in store.glob("*/*/*.safetensors")}


def wait_until(condition, process=None, seconds=90):
    """Poll until the condition holds or the process has ended."""
    deadline = time.monotonic() + seconds
    while not condition() and (process is None or process.poll() is None):
        assert time.monotonic() < deadline, f"nothing happened within {seconds} s"
        time.sleep(0.005)


def killed_when(condition, folder, *words, seconds=90):
    """Start the command, kill it (SIGKILL) as soon as the condition holds, and return the ended process."""
    process = subprocess.Popen(command(*words), cwd=folder, stdout=subprocess.DEVNULL)
    try:
        wait_until(condition, process, seconds)
    finally:
        process.kill()
        process.wait()
    return process
