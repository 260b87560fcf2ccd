"""What to run, run it once, keep it."""
