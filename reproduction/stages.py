"""The plans behind docs/reproduction.md, in the order in which they are run."""

from typing import NamedTuple


class Stage(NamedTuple):
    plan: str
    """in plans/"""
    shares: str = ""
    """an earlier plan whose items are copied first: maps are computed once"""
    imported: tuple[str, str] | None = None
    """plan and model whose maps are written to runs/maps first: methods of this plan"""
    waits_for: str = ""
    """a module of `reproduction` whose files the plan needs"""

    @property
    def data(self) -> str:
        return self.plan.partition("-")[0]


STAGES = (
    Stage("cifar10-tables"),
    Stage("cifar10-tables-retrain", shares="cifar10-tables"),
    Stage("cifar10-tables-warm", shares="cifar10-tables-retrain"),
    Stage("food101-tables"),
    Stage("food101-tables-warm", shares="food101-tables"),
    Stage("cifar10-tables-prediction"),
    Stage("cifar10-tables-filtered", shares="cifar10-tables"),
    Stage("cifar10-tables-resnet20", imported=("cifar10-tables", "ResNet-18")),
    Stage("cifar10-tables-carried", shares="cifar10-tables", imported=("cifar10-tables-resnet20", "ResNet-20")),
    Stage("cifar10-tables-gain", shares="cifar10-tables", waits_for="gain_masks"),
)
MAIN = {
    "cifar10": ("cifar10-tables", "cifar10-tables-retrain", "cifar10-tables-warm", "cifar10-tables-gain"),
    "food101": ("food101-tables", "food101-tables-warm"),
}
"""data set to the plans of the paper's tables: they share the test images and the explained model"""
AUDITED = "cifar10-tables"
QUESTIONS = ("geometry", "detection", "masks")
SHARES = (0.3, 0.5, 0.7)
"""fractions of the audit: those of the retrained networks, and half"""
