"""Token removal and the methods of vision transformers, on models that have no tokens."""

import roadworthy as rw
from faults.rows_compare import TRAIN, compare
from faults.rows_plans import planned
from faults.table import Row
from roadworthy.core.errors import InputError, ModelError, PlanError

METHODS = ("attention-rollout", "gradient-attention", "raw-attention", "token-grad-cam")


ROWS = [
    Row("compare: token removal from a CNN", compare(imputers="token-removal"), ModelError, r"units=rw.Patches\(16\) and imputers=\"linear\""),
    Row("compare: token removal from a CNN, by patches", compare(imputers="token-removal", units=rw.Patches(4)), ModelError, "reads pixels, not tokens"),
    Row("compare: token removal with retraining", compare(imputers="token-removal", **TRAIN), InputError, "evaluators=\"no-retrain\""),
    *(Row(f"compare: {name} on a CNN", compare(methods={"m": name}), ModelError, "use another method, such as 'ig'") for name in METHODS),
    Row("plan: token removal with options", planned("evaluation", "imputers", [{"name": "token-removal", "value": 1}]), PlanError, "evaluation.imputers"),
]  # fmt: skip
