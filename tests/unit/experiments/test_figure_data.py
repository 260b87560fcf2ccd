"""Data for figures, gathered from a comparison; what is missing has a reason and a remedy."""

import pandas as pd
import pytest

from predictions import endurance_study
from roadworthy.core.errors import InputError
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.figure_data import gather
from roadworthy.experiments.results import Results
from roadworthy.report.figures.data import AUDIT


def comparison(imputer="linear"):
    evaluated = endurance_study(images=60, imputer=imputer, IG=(0.3, 0.6), GB=(0.5, 0.5), random=(0.4, 0.4))
    retrained = {point._replace(evaluator="retrain"): predictions for point, predictions in evaluated.items()}
    return Comparison(
        Results(
            evaluated | retrained,
            ("random",),
            preferred=("no-retrain", imputer),
            linear_imputers=(imputer,),
        )
    )


def write_audit(folder):
    (folder / "audit").mkdir(parents=True)
    for name, columns in AUDIT.items():
        row = ["linear", "IG"] if name == "detection" else ["IG", "morf"]
        pd.DataFrame([[*row, *[0.5] * (len(columns) - 2)]], columns=columns).to_csv(
            folder / "audit" / f"{name}.csv", index=False
        )


@pytest.mark.parametrize("imputer", ["linear", "mine"])
def test_missing_parts_have_a_reason_and_a_remedy(tmp_path, imputer):
    data = gather(comparison(imputer), tmp_path)
    assert (data.controls, data.method, data.linear_imputer, data.fixed_imputer) == (("random",), "IG", imputer, "")
    assert set(data.gaps) == {"masks", "detection", "geometry", "examples", "headline", "runtimes", "masked scores"}
    assert "roadworthy audit" in data.gaps["masks"]
    assert all("\n" not in reason for reason in data.gaps.values())


def test_the_audits_tables_are_read_and_the_requested_method_is_used(tmp_path):
    write_audit(tmp_path)
    data = gather(comparison(), tmp_path, method="GB")
    assert data.method == "GB"
    assert set(data.gaps) == {"examples", "headline", "runtimes"}
    assert {name: len(table) for name, table in data.audit.items()} == {"masks": 1, "detection": 1, "geometry": 1}


def test_an_unknown_method_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"method 'XX'.*IG, GB"):
        gather(comparison(), tmp_path, method="XX")


def test_a_table_of_the_audit_that_lacks_a_column_is_a_gap_with_its_remedy(tmp_path):
    write_audit(tmp_path)
    (tmp_path / "audit" / "masks.csv").write_text("method,order\nIG,morf\n")
    data = gather(comparison(), tmp_path)
    assert "lacks fraction" in data.gaps["masks"]
    assert "roadworthy audit" in data.gaps["masks"]
    assert data.audit["masks"].empty
