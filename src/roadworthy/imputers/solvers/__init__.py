"""Solvers of the linear system of Noisy Linear imputation."""
