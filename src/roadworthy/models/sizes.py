"""The one check that every architecture makes at its door."""

from roadworthy.core.errors import RangeError


def check_positive(**sizes: int) -> None:
    """Each of `classes=`, `width=`, `channels=` … must be a whole number from 1."""
    for name, size in sizes.items():
        if size < 1 or size % 1:
            raise RangeError(f"{name}={size}: a network needs a whole number of at least 1")
