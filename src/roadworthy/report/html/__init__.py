"""The HTML report: tables in, one file out."""
