"""What does an evaluation measure, features or masks? The paper's two example worlds, decomposed exactly.

python examples/leakage_identity.py
"""

import pandas as pd

from roadworthy.audit.discrete import background, left_right, removal, reserved, top_bottom

WORLDS = {
    "left/right, faithful map": left_right(visible=0.9),
    "top/bottom, map of nothing": top_bottom(match=0.75),
    "top/bottom, partly leaking": top_bottom(match=0.75, leak=0.8),
}
IMPUTERS = {"invertible": reserved, "minimally revealing": background((0, 1))}


def main() -> pd.DataFrame:
    rows = []
    for world, cases in WORLDS.items():
        for order in ("morf", "lerf"):
            for name, imputer in IMPUTERS.items():
                terms = removal(cases, order, 1, imputer)
                rows.append((world, order, name, terms.outcome, terms.feature, terms.mask, terms.mitigator))
    table = pd.DataFrame(rows, columns=["world", "order", "imputer", "outcome", "feature", "mask", "mitigator"])
    print("Bits: outcome = feature + mask - mitigator")
    print(table.round(3).to_string(index=False))
    return table


if __name__ == "__main__":
    main()
