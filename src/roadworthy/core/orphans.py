"""Processes that end with the one that started them.

Imports nothing heavy: a worker is watched before it imports what it computes with.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_PR_SET_PDEATHSIG = 1
_EVERY = 0.2
"""Seconds between two looks at the parent, where the system does not report its death."""


class Watched(SpawnProcess):
    """Ends with its parent: while it is unpickled already, that is before it imports what it computes with."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[int], dict[str, Any]]:
        return _started, (os.getpid(),), self.__dict__


class WatchedContext(SpawnContext):
    """For a pool: its processes are `Watched`."""

    Process = Watched


def _started(parent: int) -> Watched:
    end_with(parent)
    return Watched.__new__(Watched)


def end_with(parent: int, closed: Connection | None = None) -> None:
    """End this process when `parent` has died, or the other end of the pipe is closed.

    On Linux the kernel ends it, also in the middle of a computation that holds the interpreter.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent, closed), daemon=True).start()


def _watch(parent: int, closed: Connection | None) -> None:
    waiting = threading.Event()
    while os.getppid() == parent and not (closed.poll(_EVERY) if closed else waiting.wait(_EVERY)):
        pass
    os._exit(1)
