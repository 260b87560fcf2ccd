"""Random SIGKILLs: the same bytes, nothing done twice, nothing left over. More of them: `make faults KILLS=200`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("KILLS", "6"))


@pytest.mark.slow
@pytest.mark.timeout(600 + 60 * KILLS)
def test_a_run_that_is_killed_at_random_ends_with_the_same_bytes(tmp_path):
    """In a process of its own: it forks, and the threads and warning filters of this one are not what a user has."""
    script, out = Path(__file__).parent / "kills.py", tmp_path / "tally.json"
    subprocess.run([sys.executable, script, "--kills", str(KILLS), "--per-run", "3", "--out", out], check=False)
    tally = json.loads(out.read_text())
    assert sum(tally["kills"].values()) >= KILLS
    assert {what.split()[-2] for what in tally["kills"]} == {"1", "2"}  # with one job and with two
    assert {name: tally[name] for name in ("differ", "twice", "left", "failures")} == {
        "differ": [], "twice": [], "left": [], "failures": []
    }  # fmt: skip
    assert max(tally["orphans"], default=0) < 10  # they end with their driver; the margin is for a busy machine
