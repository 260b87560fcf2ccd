"""Does the benchmark itself leak the class?

Measures, on images and masks:
    mask_information    how well a classifier predicts the class from the masks alone
    leakage             how well images imputed with the masks of others predict the class of these others
    reader              the cross-fitted linear reader behind it
    mask_detection      how well a network detects which pixels of an imputed image were imputed
    geometry            how much of the removed pixels the linear imputation restores (γ), and how smooth maps are
Numbers from them:
    information         bits about the class that an accuracy proves
    debiasing           the table of γ, accuracies free of geometry, and how much of a lead is geometry
    tables              the audit's tables: masks, leakage, detection, geometry, conclusions
Theory, on worlds small enough to be exact:
    identity            the decomposition of I(x';C) into feature information, mask information and mitigator
    discrete            the paper's two examples as joint distributions
    toy                 the Gaussian world of the paper's older supplement
    truth               models whose evidence is known, and maps whose true order is known
"""

from roadworthy.audit.debiasing import debiased, gamma_table, leads, linear_leads
from roadworthy.audit.geometry import Geometry, Reconstruction, blurriness, class_means, geometry_of, measure_geometry
from roadworthy.audit.identity import Identity
from roadworthy.audit.information import bits_at_least, bits_if_optimal
from roadworthy.audit.leakage import leak_through
from roadworthy.audit.mask_detection import detect, mask_detector, train_mask_detector, train_test_rows
from roadworthy.audit.mask_information import MASK_CLASSIFIERS, MaskClassifier, check_classes, classify_masks
from roadworthy.audit.tables import (
    DetectionSetting,
    LeakageSetting,
    audit_tables,
    conclusion_table,
    detection_table,
    leakage_table,
    mask_table,
    most_relevant_share,
)
from roadworthy.audit.toy import ToyWorld, run_toy

__all__ = [
    "MASK_CLASSIFIERS",
    "DetectionSetting",
    "Geometry",
    "Identity",
    "LeakageSetting",
    "MaskClassifier",
    "Reconstruction",
    "ToyWorld",
    "audit_tables",
    "bits_at_least",
    "bits_if_optimal",
    "blurriness",
    "check_classes",
    "class_means",
    "classify_masks",
    "conclusion_table",
    "debiased",
    "detect",
    "detection_table",
    "gamma_table",
    "geometry_of",
    "leads",
    "leak_through",
    "leakage_table",
    "linear_leads",
    "mask_detector",
    "mask_table",
    "measure_geometry",
    "most_relevant_share",
    "run_toy",
    "train_mask_detector",
    "train_test_rows",
]
