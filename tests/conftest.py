import os
from pathlib import Path

import pytest

# One thread per process, subprocesses included: the workers share the cores. Set before torch and NumPy are imported.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

MARKS = {"real_data": "data", "browser": "browser"}
"""A test that uses this fixture, directly or through another, gets this mark."""


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in MARKS.keys() & getattr(item, "fixturenames", ()):
            item.add_marker(MARKS[fixture])


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder that holds cifar-10-batches-bin, food-101 and weights."""
    folder = os.environ.get("ROADWORTHY_DATA")
    if not folder:
        pytest.skip("ROADWORTHY_DATA is not set: name the folder that holds cifar-10-batches-bin, food-101 and weights")
    return Path(folder)
