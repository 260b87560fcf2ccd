"""From per-image Verdicts to curves, scores, ranks, tests and agreement, with intervals. Numbers only: no torch here.

curves ► scores ► bootstrap or betting ► contest ► pairs ► ranking ► warnings ► summary; consistency ► agreement
ranking ► changes (of two runs); bounds (accuracy and bits); debiasing

A score is linear in the images (`PAPER` 5): area and srg of a method are means of per-image values, so all methods are
resampled and compared on the same images.
"""

from roadworthy.statistics.agreement import kendall, krippendorff, spearman
from roadworthy.statistics.betting import betting_interval
from roadworthy.statistics.bootstrap import resampled_means
from roadworthy.statistics.bounds import least_bits, most_bits
from roadworthy.statistics.changes import changes
from roadworthy.statistics.consistency import consistency, consistency_matrix, overall_alpha
from roadworthy.statistics.contest import Contest, Stopping, contests
from roadworthy.statistics.curves import Setting, Value, Verdicts, curves, per_image, whole_curves
from roadworthy.statistics.debiasing import debiased
from roadworthy.statistics.intervals import LEVEL, mean_interval, share_interval
from roadworthy.statistics.pairs import COLUMNS as PAIR_COLUMNS
from roadworthy.statistics.pairs import groups, holm, pairs, undecided
from roadworthy.statistics.ranking import ranking, scores
from roadworthy.statistics.scores import SCORES, Block, aopc, area, blocks
from roadworthy.statistics.summary import summary, winners
from roadworthy.statistics.warnings import Ties, warnings

__all__ = [
    "LEVEL",
    "PAIR_COLUMNS",
    "SCORES",
    "Block",
    "Contest",
    "Setting",
    "Stopping",
    "Ties",
    "Value",
    "Verdicts",
    "aopc",
    "area",
    "betting_interval",
    "blocks",
    "changes",
    "consistency",
    "consistency_matrix",
    "contests",
    "curves",
    "debiased",
    "groups",
    "holm",
    "kendall",
    "krippendorff",
    "least_bits",
    "mean_interval",
    "most_bits",
    "overall_alpha",
    "pairs",
    "per_image",
    "ranking",
    "resampled_means",
    "scores",
    "share_interval",
    "spearman",
    "summary",
    "undecided",
    "warnings",
    "whole_curves",
    "winners",
]
