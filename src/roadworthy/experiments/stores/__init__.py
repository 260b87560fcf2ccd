"""Where items are kept: in memory, or in a run directory."""
