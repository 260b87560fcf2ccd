"""Remove, impute, predict."""
