"""A device that pretends to be a GPU."""

import pytest

from pretend_device import PretendDevice
from roadworthy.core import device as module


@pytest.fixture
def device(monkeypatch):
    """A dispatch mode holds for one thread only: what comes next is prepared in this one."""

    class Inline:
        def __init__(self, *args, **options): ...
        def __enter__(self):
            return self

        def __exit__(self, *error): ...
        def submit(self, function, *args):
            value = function(*args)
            return type("Done", (), {"result": staticmethod(lambda: value)})

    monkeypatch.setattr(module, "ThreadPoolExecutor", Inline)
    monkeypatch.setattr(module, "_RECENT", {})
    with PretendDevice() as mode:
        yield mode
