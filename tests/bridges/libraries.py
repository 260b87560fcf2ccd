"""The libraries that bridges are tested with: imported here, without their own deprecation warnings."""

import os
import warnings
from importlib import import_module

import pytest


def library(name):
    """The module, or a skipped test; where CI has installed all of them, a failed one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if os.environ.get("ROADWORTHY_BRIDGES"):
            return import_module(name)
        return pytest.importorskip(name, exc_type=ImportError)
