"""The command as a user meets it: in a process of its own, or in this one where starting another takes longer."""

import subprocess
import sys

from typer.testing import CliRunner

from roadworthy.cli.app import app


def command(*words):
    return [sys.executable, "-m", "roadworthy", *map(str, words)]


def roadworthy(folder, *words, code=0):
    result = subprocess.run(command(*words), cwd=folder, capture_output=True, text=True)
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def told(*words, code=0):
    """What the command prints, in this process."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def flat(text):
    """Without the line breaks and frames that a terminal adds."""
    return " ".join(text.replace("│", " ").split())


def contents(store):
    """Every result's bytes, by its path."""
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.glob("*/*.safetensors"))}
