"""What does a retrained classifier really measure? The paper's two worlds, taken apart exactly.

python examples/leakage_identity.py
"""

import pandas as pd

from roadworthy.audit.discrete import background, left_right, removal, reserved, top_bottom

WORLDS = {
    "left/right, honest map": left_right(seen=0.9),
    "top/bottom, map of nothing": top_bottom(told=0.75),
    "top/bottom, half-leaking": top_bottom(told=0.75, leak=0.8),
}
FILLS = {"invertible": reserved, "minimally revealing": background((0, 1))}


def main() -> pd.DataFrame:
    rows = []
    for world, cases in WORLDS.items():
        for order in ("morf", "lerf"):
            for fill, filled in FILLS.items():
                found = removal(cases, order, 1, filled)
                rows.append((world, order, fill, found.outcome, found.feature, found.mask, found.mitigator))
    table = pd.DataFrame(rows, columns=["world", "order", "fill", "outcome", "feature", "mask", "mitigator"])
    print("Bits: outcome = feature + mask - mitigator")
    print(table.round(3).to_string(index=False))
    return table


if __name__ == "__main__":
    main()
