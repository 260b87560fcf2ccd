"""Who computes tasks: this process, processes of this machine, or a Ray cluster."""

from roadworthy.experiments.executors.in_process import InProcess
from roadworthy.experiments.executors.local import Local
from roadworthy.experiments.executors.ray import Ray

__all__ = ["InProcess", "Local", "Ray"]
