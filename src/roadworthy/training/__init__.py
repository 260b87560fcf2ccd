"""Everything that fits weights."""
