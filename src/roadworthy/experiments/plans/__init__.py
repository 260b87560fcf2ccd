"""Plans: what to run, as a TOML file."""
