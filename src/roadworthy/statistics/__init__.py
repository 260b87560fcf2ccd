"""From per-image PointPredictions to curves, scores, ranks, tests and agreement, with intervals. Numbers only: no torch here.

curves ► scores ► bootstrap or betting ► contest ► pairs ► ranking ► warnings ► summary; agreement ► agreement;
debiasing, of what `geometry.py` measured; discrete ► identity, leakage taken apart on worlds that can be listed;
information ► audit; ranking ► changes, of two runs

A score is linear in the images (`PAPER` 5): area and srg of a method are means of per-image values, so all methods are
resampled and compared on the same images.
"""

from roadworthy.statistics.agreement import agreement, agreement_matrix, overall_alpha
from roadworthy.statistics.agreement_intervals import agreement_intervals
from roadworthy.statistics.betting import betting_interval
from roadworthy.statistics.bootstrap import resampled_means
from roadworthy.statistics.changes import changes
from roadworthy.statistics.classes import per_class
from roadworthy.statistics.contest import Contest, Stopping, contests
from roadworthy.statistics.correlation import kendall, krippendorff, spearman
from roadworthy.statistics.curves import PointPredictions, Setting, Value, curves, per_image
from roadworthy.statistics.gaps import whole_curves
from roadworthy.statistics.intervals import LEVEL, mean_interval, share_interval
from roadworthy.statistics.pairs import COLUMNS as PAIR_COLUMNS
from roadworthy.statistics.pairs import groups, holm, pairs, undecided
from roadworthy.statistics.ranking import ranking, scores
from roadworthy.statistics.scores import SCORES, Block, aopc, area, blocks
from roadworthy.statistics.summary import headline, main_block, summary, winners
from roadworthy.statistics.warnings import Ties, lead_of, warnings

__all__ = [
    "LEVEL",
    "PAIR_COLUMNS",
    "SCORES",
    "Block",
    "Contest",
    "PointPredictions",
    "Setting",
    "Stopping",
    "Ties",
    "Value",
    "agreement",
    "agreement_intervals",
    "agreement_matrix",
    "aopc",
    "area",
    "betting_interval",
    "blocks",
    "changes",
    "contests",
    "curves",
    "groups",
    "headline",
    "holm",
    "kendall",
    "krippendorff",
    "lead_of",
    "main_block",
    "mean_interval",
    "overall_alpha",
    "pairs",
    "per_class",
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
