"""Numbers in, numbers out: curves, scores, intervals, tests, ranks, agreement, warnings. No torch.

All tables are computed from per-image predictions. Scores are means of per-image values, so all methods are resampled
and compared on the same images.

    curves, classes, completeness      accuracy and probability against the fraction removed; which curves are complete
    plain_accuracy                     accuracy before removal
    scores                             areas, AOPC and SRG per image; what is ranked together
    intervals, bootstrap, betting      confidence intervals: Student and Wilson, paired bootstrap, anytime-valid
    early_stopping, evidence, anytime  the early stopping rule, the evidence for it, bounds that hold at any time
    paired, pairwise, ranking          differences between methods, tests, groups, ranks
    average_ranks                      ranks image by image, averaged
    agreement, agreement_intervals     rank correlation between settings (correlation; latent_ranks)
    recovery                           how far scores recover a known order
    self_test, scope                   damaged copies of known order; how far imputed images drift
    diff                               differences between two runs
    standing                           what the tables establish about a block
    warnings                           what to know before trusting the tables
"""

from roadworthy.statistics.agreement import agreement, agreement_matrix, overall_alpha
from roadworthy.statistics.agreement_intervals import agreement_change, agreement_intervals
from roadworthy.statistics.average_ranks import average_ranks
from roadworthy.statistics.betting import betting_interval
from roadworthy.statistics.bootstrap import resampled_means
from roadworthy.statistics.completeness import complete_curves
from roadworthy.statistics.correlation import kendall, krippendorff, spearman
from roadworthy.statistics.curves import PointPredictions, Setting, Value, curves, per_image
from roadworthy.statistics.diff import diff
from roadworthy.statistics.early_stopping import StoppingRule, answered, undecided
from roadworthy.statistics.intervals import CONFIDENCE, mean_interval, share_interval
from roadworthy.statistics.paired_differences import PairedComparisons, PairedDifferences, paired_comparisons
from roadworthy.statistics.pairwise import MARGIN, PAIRWISE_COLUMNS, groups, holm, pairwise
from roadworthy.statistics.per_class import per_class
from roadworthy.statistics.plain_accuracy import plain_accuracy
from roadworthy.statistics.ranking import methods_by_score, ranking, scores
from roadworthy.statistics.recovery import Recovery, recovery
from roadworthy.statistics.scope import out_of_scope, scope
from roadworthy.statistics.scores import (
    SCORES,
    Block,
    BlockKey,
    Score,
    aopc,
    area,
    blocks,
    leading_score,
    preferred_block,
)
from roadworthy.statistics.self_test import copy_changes, known_order
from roadworthy.statistics.standing import Standing, State, standings
from roadworthy.statistics.warnings import Ties, warnings

__all__ = [
    "CONFIDENCE",
    "MARGIN",
    "PAIRWISE_COLUMNS",
    "SCORES",
    "Block",
    "BlockKey",
    "PairedComparisons",
    "PairedDifferences",
    "PointPredictions",
    "Recovery",
    "Score",
    "Setting",
    "Standing",
    "State",
    "StoppingRule",
    "Ties",
    "Value",
    "agreement",
    "agreement_change",
    "agreement_intervals",
    "agreement_matrix",
    "answered",
    "aopc",
    "area",
    "average_ranks",
    "betting_interval",
    "blocks",
    "complete_curves",
    "copy_changes",
    "curves",
    "diff",
    "groups",
    "holm",
    "kendall",
    "known_order",
    "krippendorff",
    "leading_score",
    "mean_interval",
    "methods_by_score",
    "out_of_scope",
    "overall_alpha",
    "paired_comparisons",
    "pairwise",
    "per_class",
    "per_image",
    "plain_accuracy",
    "preferred_block",
    "ranking",
    "recovery",
    "resampled_means",
    "scope",
    "scores",
    "share_interval",
    "spearman",
    "standings",
    "undecided",
    "warnings",
]
