import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder that holds cifar-10-batches-bin, food-101 and weights."""
    folder = os.environ.get("ROADWORTHY_DATA")
    if not folder:
        pytest.skip("ROADWORTHY_DATA is not set: name the folder that holds cifar-10-batches-bin, food-101 and weights")
    return Path(folder)
