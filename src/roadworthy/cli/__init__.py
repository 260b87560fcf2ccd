"""The command `roadworthy`: parse, call, show."""

from roadworthy.cli.app import app

__all__ = ["app"]
