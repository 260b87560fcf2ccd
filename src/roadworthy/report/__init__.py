"""Pages to look at, from plain tables."""
