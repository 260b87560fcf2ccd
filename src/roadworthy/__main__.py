"""`python -m roadworthy` is the command `roadworthy`."""

from roadworthy.cli.app import app

app()
