"""docs/performance.md and README.md show what bench/ratios.json holds."""

import json

import pytest

from bench import report

RESULTS = json.loads((report.ROOT / "bench" / "ratios.json").read_text())


@pytest.mark.parametrize("path", report.PAGES, ids=lambda path: path.name)
def test_pages_show_the_results(path):
    page = path.read_text()
    assert "<!-- imputation" in page
    assert report.filled(page, RESULTS) == page, "run python bench/report.py"


def test_a_changed_result_changes_the_pages():
    changed = json.loads(json.dumps(RESULTS))
    changed["imputation"]["rows"][0]["CPU"] *= 2
    for path in report.PAGES:
        assert report.filled(path.read_text(), changed) != path.read_text()


def test_every_row_is_compared_with_ours_on_the_same_masks():
    rows = RESULTS["imputation"]["rows"]
    places = {report.where(row) for row in rows}
    assert len(places) == 8  # two sizes, two kinds of masks, one and two threads
    for tool in {row["tool"] for row in rows}:
        assert {report.where(row) for row in rows if row["tool"] == tool} == places
