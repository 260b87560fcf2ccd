"""`python -m roadworthy` is the command `roadworthy`."""

from roadworthy.cli import app

app()
