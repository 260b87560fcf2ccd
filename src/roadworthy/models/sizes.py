"""The check of sizes shared by all architectures."""

from roadworthy.core.errors import RangeError


def check_positive(**sizes: int) -> None:
    """Each of `classes=`, `width=`, `channels=` … must be a positive integer."""
    for name, size in sizes.items():
        if size < 1 or size % 1:
            raise RangeError(f"{name}={size}: must be a positive integer")
