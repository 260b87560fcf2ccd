"""Solvers of Noisy Linear's linear system."""
