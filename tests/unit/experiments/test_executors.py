"""The local executor: no task gets lost, whenever a worker dies."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from roadworthy.experiments.executors.local import _drain


class DyingPool:
    """Takes `healthy` tasks and answers each at once; then a worker dies, and submitting raises."""

    def __init__(self, healthy):
        self.healthy = healthy

    def submit(self, function, task):
        if not self.healthy:
            raise BrokenProcessPool
        self.healthy -= 1
        future = Future()
        future.set_result(f"{task} done")
        return future


@pytest.mark.parametrize("healthy", range(5))
def test_a_task_that_a_broken_pool_refuses_is_tried_again(healthy):
    waiting, again, running, done = iter("abcd"), [], {}, []
    try:
        finished = _drain(DyingPool(healthy), waiting, again, running, lambda task, result: done.append(task), jobs=2)
    except BrokenProcessPool:
        finished = False
    assert finished == (healthy >= 4)
    # Every task is done, in a worker's hands, to be tried again or still waiting.
    assert sorted([*done, *running.values(), *again, *waiting]) == list("abcd")
