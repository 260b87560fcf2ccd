"""The report, from tables written by hand: its sections, tables, charts and colors."""

import base64
import hashlib
import html
import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import roadworthy as rw
from predictions import BAD, GOOD, endurance_study, study
from roadworthy import statistics
from roadworthy.core.results import Copy
from roadworthy.report.examples import Example
from roadworthy.report.findings import Findings
from roadworthy.report.html import charts
from roadworthy.report.html.examples import Picture, data_url
from roadworthy.report.html.page import page
from roadworthy.report.tables import ranking_tables

FRACTIONS = (0.2, 0.4)


def audit_tables(methods=("good", "bad")):
    """Made-up tables in the shape of a leakage audit."""
    cells = [(method, order, fraction) for method in methods for order in ("morf", "lerf") for fraction in FRACTIONS]
    masks = [(*cell, 0.61, 0.55, 0.67, 0.25) for cell in cells]
    geometry = [(*cell, 0.42, cell[2] > 0.3, np.nan if cell[0] == "bad" else 0.31, 1.5) for cell in cells]
    detection = [
        ("linear", kind, fraction, 0.87, 0.31, 0.29, 0.33, 0.5)
        for kind in ("scatter", "blobs")
        for fraction in FRACTIONS
    ]
    conclusions = [
        ("good", "morf", "linear", "leak found: at least 0.02 bits [0.01, 0.03]", "accuracy 52 %", True, 0.02),
        ("good", "lerf", "linear", "leak found: at least 0.10 bits [0.05, 0.15]", "accuracy 61 %", True, 0.1),
        ("bad", "morf", "linear", "none found with 90 masks", "accuracy 57 %", False, 0.2),
        ("bad", "lerf", "linear", "leak found: at least 0.01 bits [0.01, 0.02]", "accuracy 51 %", True, 0.01),
    ]
    names = ["method", "order", "fraction"]
    return {
        "masks": pd.DataFrame(masks, columns=[*names, "accuracy", "low", "high", "chance"]),
        "geometry": pd.DataFrame(geometry, columns=[*names, "gamma", "clipped", "optimum", "blur"]),
        "detection": pd.DataFrame(
            detection, columns=["imputer", "masks", "fraction", "auc", "error", "low", "high", "guess"]
        ),
        "conclusions": pd.DataFrame(
            conclusions, columns=["method", "order", "imputer", "conclusion", "why", "found", "bits"]
        ),
    }


def findings(**changes):
    predictions = study(good=GOOD, bad=BAD)
    ranking = statistics.ranking(predictions)
    # The four images of the study are of one class; the section needs a second one.
    first = statistics.per_class(predictions).assign(name="one")
    parts = {
        "state": "CLEAR WINNER",
        "conclusion": "good is clearly better than the other method (bad), on 4 images.",
        "details": ["good is ahead of bad by 1.125."],
        "ranking": ranking,
        "curves": statistics.curves(predictions),
        "agreement": statistics.agreement(predictions),
        "classes": pd.concat([first, first.assign(label=2, name="two")]),
        "audit": audit_tables(),
        "warnings": ["Only 4 images were evaluated."],
        "facts": {"Model": "mine", "Data": "theirs"},
        "plan": "[data]\nname = 'digits'",
    }
    return Findings(**{**parts, **changes})


def test_the_sections_come_in_order():
    titles = re.findall(r"<h2>(.*?)</h2>", page(findings()))
    assert titles == [
        "Ranking", "Curves", "Do the settings agree?", "Examples", "Leakage and geometry", "Classes", "Warnings",
        "How it was made", "How to read this page",
    ]  # fmt: skip


def test_the_same_findings_give_the_same_bytes_and_unknown_parts_are_left_out():
    assert page(findings()) == page(findings())
    bare = page(
        Findings(state="NOT YET", conclusion="Nothing can be ranked yet.", no_examples="the data were not found")
    )
    assert re.findall(r"<h2>(.*?)</h2>", bare) == ["Examples", "How it was made", "How to read this page"]
    assert "No examples: the data were not found." in bare


def test_the_page_opens_with_state_conclusion_details_and_the_plain_accuracy():
    facts = {"Model": "mine", "Accuracy before removal": "77.0 % [70.0 %, 83.0 %]"}
    text = page(findings(facts=facts, confidence=0.9, audit={}))
    state = '<p class="state clear-winner">CLEAR WINNER</p>'
    accuracy = "Accuracy before removal: 77.0 % [70.0 %, 83.0 %]"
    parts = [state, "good is clearly better than", "good is ahead of bad by 1.125", accuracy, "<nav"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "90\N{NO-BREAK SPACE}% intervals" in text
    assert not re.search(r"95(&nbsp;|\s)%", text)


def test_the_policy_allows_only_the_pages_own_style_and_script_by_hash():
    html_text = page(findings())
    policy = html.unescape(re.search(r'Content-Security-Policy" content="(.*?)"', html_text).group(1))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html_text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert " style=" not in html_text  # the policy forbids style attributes


def test_the_leakage_of_a_method_is_the_worst_over_its_orders():
    rows = re.findall(r"<tr><td>\d.*?</tr>", page(findings()).partition('id="curves"')[0], flags=re.DOTALL)
    good, bad = (next(row for row in rows if f"</svg>{name}" in row) for name in ("good", "bad"))
    assert 'title="accuracy 61 %">leak found: at least 0.10 bits [0.05, 0.15]</td>' in good
    assert ">leak found: at least 0.01 bits [0.01, 0.02]</td>" in bad


def test_an_inverted_copy_leaks_like_its_method_and_unaudited_methods_have_a_gap():
    ranking = statistics.ranking(study(**{"good": GOOD, "good inverted": BAD, "new": BAD}))
    numbers, copies = {"good": 0, "good inverted": 1, "new": 2}, {"good inverted": Copy("good", "inverted")}
    (table,) = ranking_tables(ranking, numbers, findings(copies=copies))
    # The copy has the masks of its method with the orders swapped: the worst is the same.
    assert {row.method: row.leakage for row in table.rows} == {
        "good": "leak found: at least 0.10 bits [0.05, 0.15]",
        "good inverted": "leak found: at least 0.10 bits [0.05, 0.15]",
        "new": "",
    }


def test_audit_tables_have_a_column_per_fraction_and_omit_unknown_values():
    text = page(findings())
    assert "61.0% [55.0%, 67.0%]" in text
    assert "<td>0.87</td>" in text
    assert "0.42 (best 0.31)" in text
    assert "0.42 clipped (best 0.31)" in text
    assert "<td>0.42 clipped</td>" in text  # the optimum of bad is unknown


def test_invalid_audit_tables_raise_errors_that_name_them():
    with pytest.raises(rw.errors.InputError, match=r"unknown audit table 'mask'.*masks, leakage, detection"):
        findings(audit={"mask": pd.DataFrame()})
    with pytest.raises(rw.errors.InputError, match="'masks' lacks the columns chance"):
        findings(audit={"masks": audit_tables()["masks"].drop(columns="chance")})


def test_a_chart_puts_values_at_the_right_coordinates():
    table = statistics.curves(study(good=GOOD, bad=BAD))
    (row,) = charts.rows(table, ["bad"], {"good": 0, "bad": 1})
    morf = row.panels[0]
    assert morf.title.startswith("MoRF")
    control, line = morf.lines
    assert (control.name, control.band, line.name) == ("bad", "", "good")  # controls are drawn first, without bands
    # good, MoRF: accuracies 1, 1/4, 0 at fractions 0, 0.2, 0.4. The plot is 366 × 224, its corner is at (44, 248):
    # x = 44 + 366·s/0.4, y = 248 − 224·a.
    assert [(point.x, point.y) for point in line.points] == [(44, 24), (227, 192), (410, 248)]
    assert line.path == "M44.0,24.0L227.0,192.0L410.0,248.0"
    # Wilson, 1 of 4: center (0.25 + 3.84/8)/(1 + 3.84/4), as in the table.
    assert line.points[1].text == "good, 20% removed: 25.0% [4.6%, 69.9%]"
    assert [tick.text for tick in morf.across] == ["0%", "10%", "20%", "30%", "40%"]


def test_large_pictures_are_scaled_down_and_small_ones_kept_exactly():
    small = np.linspace(0, 1, 3 * 8 * 8, dtype=np.float32).reshape(3, 8, 8)
    kind, _, content = data_url(Picture("small", small)).partition(",")
    back = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))
    assert kind == "data:image/png;base64"
    assert np.array_equal(back, np.round(small * 255).astype(np.uint8).transpose(1, 2, 0))
    noisy = np.random.default_rng(0).random((3, 300, 200), dtype=np.float32)
    kind, _, content = data_url(Picture("large", noisy)).partition(",")
    assert kind == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(content))).size == (85, 128)  # 200/300 · 128 = 85.3
    assert len(content) < 20_000


def test_examples_show_the_maps_and_what_the_leading_method_leaves():
    pixels = np.full((1, 4, 4), 0.5, dtype=np.float32)
    series = {(method, "morf", "linear"): [pixels] for method in ("IG", "GB")}
    example = Example("Image 7", pixels, (0.2,), {"IG": pixels, "GB": pixels}, series)
    text = page(findings(examples=[example])).partition('id="examples"')[2]
    strips = ["The image and its maps", "Imputed with linear; IG removes most relevant first (MoRF)"]
    assert re.findall(r"<h4>(.*?)</h4>", text) == strips
    assert re.findall(r"<figcaption>(.*?)</figcaption>", text) == ["original", "IG", "GB", "20% removed"]
    assert text.count("data:image/png;base64,") == 4


def test_the_ranking_of_the_main_setting_comes_first():
    clear = endurance_study(good=(0.2, 0.8), bad=(0.5, 0.55))
    both = endurance_study(imputer="fixed", good=(0.5, 0.55), bad=(0.2, 0.8)) | clear
    table = statistics.ranking(both, ())
    assert table["imputer"].iloc[0] == "fixed"  # in order of evaluation
    titles = [
        ranked.title
        for ranked in ranking_tables(table, {"good": 0, "bad": 1}, findings(preferred=("no-retrain", "linear")))
    ]
    assert titles == ["Imputed with linear, evaluator no-retrain", "Imputed with fixed, evaluator no-retrain"]
