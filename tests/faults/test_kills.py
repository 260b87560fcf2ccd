"""Random SIGKILLs: the same bytes, nothing done twice, nothing left over. More of them: `make faults KILLS=200`."""

import os

import pytest

from faults.kills import campaign

KILLS = int(os.environ.get("KILLS", "6"))


@pytest.mark.slow
@pytest.mark.timeout(600 + 60 * KILLS)
def test_a_run_that_is_killed_at_random_ends_with_the_same_bytes(tmp_path):
    tally = campaign(tmp_path, KILLS, per_run=3, say=print)
    assert sum(tally.kills.values()) >= KILLS
    assert {what.split()[-2] for what in tally.kills} == {"1", "2"}  # with one job and with two
    assert (tally.differ, tally.twice, tally.left, tally.failures) == ([], [], [], [])
    assert max(tally.orphans, default=0) < 10  # they end with their driver; the margin is for a busy machine
