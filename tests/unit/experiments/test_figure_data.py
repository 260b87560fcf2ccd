"""Data for figures, gathered from a run directory; what is missing has a reason and a remedy."""

import pandas as pd
import pytest

from predictions import endurance_study
from roadworthy.core.errors import DataError, InputError
from roadworthy.experiments.figure_data import AUDIT, gathered


def paper_study():
    evaluated = endurance_study(images=60, IG=(0.3, 0.6), GB=(0.5, 0.5), random=(0.4, 0.4))
    return evaluated | {point._replace(evaluator="retrain"): one for point, one in evaluated.items()}


def write_audit(folder):
    (folder / "audit").mkdir(parents=True)
    for name, columns in AUDIT.items():
        pd.DataFrame([["IG", "morf", *[0.5] * (len(columns) - 2)]], columns=columns).to_csv(
            folder / "audit" / f"{name}.csv", index=False
        )


def test_missing_parts_have_a_reason_and_a_remedy(tmp_path):
    data = gathered(tmp_path, paper_study())
    assert data.controls == ("random",)
    assert data.method == "IG"
    assert set(data.gaps) == {"masks", "detection", "geometry", "scenes", "runtimes", "masked scores"}
    assert "roadworthy audit" in data.gaps["masks"]
    assert all("\n" not in reason for reason in data.gaps.values())


def test_the_audits_tables_are_read_and_the_requested_method_is_used(tmp_path):
    write_audit(tmp_path)
    data = gathered(tmp_path, paper_study(), method="GB")
    assert data.method == "GB"
    assert set(data.gaps) == {"scenes", "runtimes"}
    assert {name: len(table) for name, table in data.audit.items()} == {"masks": 1, "detection": 1, "geometry": 1}


def test_an_unknown_method_and_an_invalid_audit_table_are_errors(tmp_path):
    with pytest.raises(InputError, match=r"method 'XX'.*IG, GB"):
        gathered(tmp_path, paper_study(), method="XX")
    write_audit(tmp_path)
    (tmp_path / "audit" / "masks.csv").write_text("method,order\nIG,morf\n")
    with pytest.raises(DataError, match=r"masks.csv has no column 'fraction'.*roadworthy audit"):
        gathered(tmp_path, paper_study())
