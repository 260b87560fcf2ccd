"""Results in the formats of other tools: W&B, MLflow, TensorBoard and DVC."""

from roadworthy.experiments.integrations.logging import log

__all__ = ["log"]
