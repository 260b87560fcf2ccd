"""Plans: what to run, as a TOML file."""

from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.plans.reading import plan_from, read_plan

__all__ = ["Plan", "plan_from", "read_plan"]
