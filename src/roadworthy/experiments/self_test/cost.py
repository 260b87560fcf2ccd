"""What the self-test of a plan adds to its cost."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from roadworthy.attributions.controls import Blurred
from roadworthy.evaluation.experiment import POINT_EVALUATORS
from roadworthy.experiments.pending import Survey
from roadworthy.experiments.plans import Plan
from roadworthy.experiments.plans.plan import LEADERS
from roadworthy.experiments.self_test.design import FEW, LAYERS, NEGATIVE, WIDTHS, few_fractions, sample_size


class SelfTestWork(NamedTuple):
    points: int
    seconds: float


def self_test_points(plan: Plan) -> dict[str, int]:
    """How many points each kind of copy means: swapped on all images, smoothed and randomized on some of them."""
    settings = [setting for setting in plan.settings if setting[2] not in POINT_EVALUATORS]
    if not plan.self_test or not settings:
        return {"swapped": 0, "smoothed": 0, "randomized": 0}
    above = [fraction for fraction in plan.fractions if fraction > 0]
    leaders, grid = min(LEADERS, len(plan.methods)), len(plan.seeds) * len(above)
    few = len(plan.seeds) * len(few_fractions(above))
    widths = sum(len(widths) for widths in WIDTHS.values())
    known = sum(width == Blurred.sigma for width in WIDTHS["blurred"]) if "blurred" in plan.controls else 0
    main = [setting for setting in settings if setting[1:] == settings[0][1:]]
    return {
        "swapped": (leaders * len(settings) + (NEGATIVE in plan.controls) * len(main)) * grid,
        "smoothed": leaders * (widths - known) * len(settings) * few,
        "randomized": len(plan.methods) * len(LAYERS) * len(main) * few,
    }


def missing_self_test(plan: Plan, state: Survey | None) -> dict[str, int]:
    """How many of its points are missing; nothing where a plan has none."""
    total = sum(self_test_points(plan).values())
    if not total:
        return {}
    if state is None or state.self_test is None:
        return {"self-test": total}
    missing = {item.id for item in state.missing}
    points = [
        point
        for point, items in state.self_test_points.items()
        if point.fraction > 0 and any(item.id in missing for item in items)
    ]
    return {"self-test": min(total, len(points))}


def self_test_work(
    plan: Plan, images: int, block_size: int, map_seconds: float, point_seconds: Mapping[str, float]
) -> SelfTestWork:
    """`map_seconds`: of all methods on one image; `point_seconds`: of one image at one point, by imputer."""
    counts = self_test_points(plan)
    settings = [setting for setting in plan.settings if setting[2] not in POINT_EVALUATORS]
    if not sum(counts.values()):
        return SelfTestWork(0, 0.0)
    some, few = (min(images, math.ceil(size / block_size) * block_size) for size in (sample_size(images), FEW))
    mean = sum(point_seconds[imputer] for _, imputer, _ in settings) / len(settings)
    copies = mean * (counts["swapped"] * images + counts["smoothed"] * some)
    copies += point_seconds[settings[0][1]] * counts["randomized"] * few
    # of one method in each order, and of pixels at random; γ costs little beside it
    measured = {(order, imputer) for order, imputer, _ in plan.settings}
    measured |= {("random", imputer) for _, imputer, _ in plan.settings}
    scope = sum(point_seconds[imputer] for _, imputer in measured) * (len(plan.fractions) - 1) * some
    return SelfTestWork(sum(counts.values()), copies + scope + map_seconds * len(LAYERS) * few)
