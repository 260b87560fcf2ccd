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
from roadworthy.report.examples import Answer, AnsweredImage, Example, Gallery, Removal
from roadworthy.report.findings import Card, Findings
from roadworthy.report.html.card import first_screen
from roadworthy.report.html.examples import Picture, data_url
from roadworthy.report.html.page import page

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
        "cards": [Card("Best method", "good", "0.75 [0.5, 1]", "plain"), Card("Sure?", "<b>yes</b>", "", "good")],
        "ranking": ranking,
        "pairwise": statistics.pairwise(predictions),
        "curves": statistics.curves(predictions),
        "agreement": statistics.agreement_intervals(predictions),
        "classes": pd.concat([first, first.assign(label=2, name="two")]),
        "audit": audit_tables(),
        "warnings": ["Only 4 images were evaluated."],
        "facts": {"Model": "mine", "Data": "theirs"},
        "plan": "[data]\nname = 'digits'",
    }
    return Findings(**{**parts, **changes})


def sections_of(text):
    return re.findall(r"<h2>(.*?)</h2>", text.partition("<main")[2])


def section(text, name):
    return text.partition(f'<section id="{name}"')[2].partition("</section>")[0]


def cells(html_text):
    """The rows of all tables, as lists of texts."""
    rows = re.findall(r"<tr>(.*?)</tr>", html_text, flags=re.DOTALL)
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows]
    return [[html.unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", "", cell)) for cell in row] for row in found]


def test_the_sections_come_in_order():
    assert sections_of(page(findings())) == [
        "Ranking", "MoRF against LeRF", "Curves", "Examples", "Do the settings agree?", "Does the benchmark leak?",
        "Warnings", "Classes", "How it was made", "How to read this page",
    ]  # fmt: skip


def test_the_same_findings_give_the_same_bytes_and_unknown_parts_are_left_out():
    assert page(findings()) == page(findings())
    bare = page(
        Findings(state="NOT YET", conclusion="Nothing can be ranked yet.", no_examples="the data were not found")
    )
    assert sections_of(bare) == ["Examples", "How it was made", "How to read this page"]
    assert "No examples: the data were not found." in bare
    assert "<svg" not in bare


def test_the_page_opens_with_facts_state_conclusion_cards_and_plot():
    facts = {"Model": "mine (depth: 20)", "Accuracy before removal": "77.0 % [70.0 %, 83.0 %]", "Date": "3 July 2022"}
    text = page(findings(facts=facts, confidence=0.9, audit={}))
    opening = text.partition("<main")[0]
    state = '<span class="state clear-winner">CLEAR WINNER</span> good is clearly better than'
    cards = ["Best method</h2>", "&lt;b&gt;yes&lt;/b&gt;"]
    parts = [
        "<strong>mine</strong>",
        "77.0 % [70.0 %, 83.0 %] · 3 July 2022",
        state,
        *cards,
        '<svg class="forest"',
        "<nav",
    ]
    places = [opening.index(part) for part in parts]
    assert places == sorted(places)
    assert "good is ahead of bad by 1.125" in opening
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


def test_leakage_is_a_matrix_of_methods_and_settings_with_the_main_imputer_first():
    tables = audit_tables()
    fixed = tables["conclusions"].assign(imputer="fixed", bits=1.5, found=True)
    tables["conclusions"] = pd.concat([fixed, tables["conclusions"]])
    leakage = section(page(findings(audit=tables)), "leakage")
    assert cells(leakage)[:3] == [
        ["", "linear · MoRF", "linear · LeRF", "fixed · MoRF", "fixed · LeRF"],
        ["good", "≥ 0.02 bits", "≥ 0.10 bits", "≥ 1.50 bits", "≥ 1.50 bits"],
        ["bad", "none found", "≥ 0.01 bits", "≥ 1.50 bits", "≥ 1.50 bits"],
    ]
    assert "found in 7 of 8 cells" in leakage
    assert "leak found: at least 0.10 bits [0.05, 0.15]; accuracy 61 %" in leakage  # on the cell
    assert leakage.count("<details>") == 4  # the other tables are folded


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


def answered(label="class cat", correct=True, methods=("good", "bad")):
    """An image of 2 × 2 pixels of which the method's top pixel was removed in MoRF, three pixels in LeRF."""
    image = np.full((3, 2, 2), 0.5, dtype=np.float32)
    top = np.array([[True, False], [False, False]])
    before = Answer("cat" if correct else "dog", correct, "cat", 0.9 if correct else 0.2)
    removals = [
        Removal("morf", 0.25, top, image * 0.5, Answer("dog", False, "cat", 0.126)),
        Removal("lerf", 0.75, ~top, image * 0.7, Answer("cat", True, "cat", 0.8)),
    ]
    return AnsweredImage(f"Image 7, {label}", label, image, before, "linear", dict.fromkeys(methods, removals))


def gallery(*images, roles=("best score", "worst score")):
    named = dict(zip(("good", "bad"), roles, strict=False))
    return Gallery(images, named, images[0], "Selected because the two differ here.", "Images at equal distances.")


def pixels_of(text, alt):
    """The picture with that alternative text."""
    content = re.search(rf'src="data:image/png;base64,([^"]+)" alt="{re.escape(alt)}"', text).group(1)
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


def test_pictures_show_what_was_removed_and_what_the_model_answered():
    text = page(findings(gallery=gallery(answered())))
    opening = text.partition("<main")[0]
    captions = [re.sub("<[^>]+>", "", caption) for caption in re.findall(r"<figcaption>(.*?)</figcaption>", opening)]
    assert captions[-9:] == ["the image ✓ cat 90\xa0%", *2 * [
        "its top 25\xa0%", "removed", "imputed ✗ dog (cat 13\xa0%)", "without its least relevant 75\xa0% ✓ cat 80\xa0%",
    ]]  # fmt: skip
    assert "Selected because the two differ here." in opening
    assert "Images at equal distances." in section(text, "examples")
    removed = pixels_of(text, "Selected image: Image 7, class cat, good: removed")
    assert removed[0, 0].tolist() == [237, 0, 140]  # the color of holes: 255 · (.93, 0, .55)
    assert removed[1, 1].tolist() == [128, 128, 128]
    marked = pixels_of(text, "Selected image: Image 7, class cat, good: its top 25\xa0%")
    assert marked[0, 0].tolist() == [230, 92, 0]
    assert marked[1, 1].tolist() == [166, 166, 166]  # 255 · (.6 · .5 + .35)


def test_every_alternative_text_is_unique():
    text = page(findings(gallery=gallery(answered(), answered("class dog", correct=False)), examples=[example()]))
    alts = re.findall(r' alt="([^"]*)"', text)
    assert len(alts) == 9 * 3 + 4  # the first image is shown twice
    assert len(set(alts)) == len(alts)


def test_examples_can_be_filtered_by_class_and_answer_where_they_differ():
    text = section(page(findings(gallery=gallery(answered(), answered("class dog", correct=False)))), "examples")
    assert re.findall(r'<article class="example" data-class="(.*?)" data-answer="(.*?)">', text) == [
        ("class cat", "right"), ("class dog", "wrong"),
    ]  # fmt: skip
    assert "<option>class dog</option>" in text
    alike = section(page(findings(gallery=gallery(answered(), answered()))), "examples")
    assert alike.count("<label hidden>") == 2


def test_without_labels_an_answer_is_right_if_it_stays_the_same():
    text = page(findings(gallery=gallery(answered("predicted cat")), unlabeled=True))
    assert "✓ the answer before removal, ✗ another one" in text
    assert "answers unchanged</text>" in text
    assert ">accuracy</text>" not in text


def example():
    pixels = np.full((1, 4, 4), 0.5, dtype=np.float32)
    series = {(method, "morf", "linear"): [pixels] for method in ("IG", "GB")}
    return Example("Image 7", pixels, (0.2,), {"IG": pixels, "GB": pixels}, series)


def test_examples_show_the_maps_and_what_the_leading_method_leaves():
    text = section(page(findings(gallery=gallery(answered()), examples=[example()])), "examples")
    strips = ["The image and its maps", "Imputed with linear; IG removes most relevant first (MoRF)"]
    assert re.findall(r"<h4>(.*?)</h4>", text) == strips
    assert re.findall(r"<figcaption>(.*?)</figcaption>", text)[-4:] == ["original", "IG", "GB", "20% removed"]


# ── ranking, controls, warnings ──────────────────────────────────────────────────────────────────────────────────────


def with_controls(**changes):
    """Two methods, a blind control between them, a blurred copy above them; on 400 images."""
    predictions = endurance_study(
        good=(0.3, 0.7), bad=(0.5, 0.4), center=(0.4, 0.6), good_blurred=(0.2, 0.8), good_inverted=(0.7, 0.3)
    )
    controls = ["center", "good blurred", "good inverted"]
    parts = {
        "ranking": statistics.ranking(predictions, controls),
        "pairwise": statistics.pairwise(predictions, controls),
        "curves": statistics.curves(predictions),
        "agreement": None,
        "classes": statistics.per_class(predictions).assign(name=lambda table: table["label"].map("class {}".format)),
        "controls": controls,
        "copies": {f"good {how}": Copy("good", how) for how in ("blurred", "inverted")},
        "warnings": [],
        "audit": {},
    }
    return findings(**{**parts, **changes})


def test_methods_are_ranked_without_the_controls_between_them():
    found = with_controls()
    assert found.ranking["method"].tolist() == ["good blurred", "good", "center", "bad", "good inverted"]
    ranking = section(page(found), "ranking")
    rows = cells(ranking)
    assert [row[:2] for row in rows[:3]] == [["method", "rank"], ["good", "1"], ["bad", "2"]]
    assert rows[3] == ["control", "LeRF − MoRF"]
    assert rows[4][0] == "center"
    assert rows[5][0] == "copy"
    assert [(row[0], row[3].split(":")[0]) for row in rows[6:]] == [
        ("good blurred", "clearly better"), ("good inverted", "clearly worse"),
    ]  # fmt: skip


def test_the_plot_has_controls_as_lines_and_hollow_marks_for_methods_that_do_not_beat_them():
    opening = page(with_controls()).partition("<main")[0]
    plot = opening.partition('<svg class="forest"')[2].partition("</svg>")[0]
    assert re.findall(r'class="reference-name"[^>]*>(.*?)<', plot) == ["center"]
    rows = re.findall(r'<g class="forest-row.*?</g></g>|<g class="forest-row.*?</text></g>', plot, flags=re.DOTALL)
    assert len(rows) == 2
    assert [("hollow" in row, re.search("<title>(.*?):", row).group(1)) for row in rows] == [
        (False, "good"), (True, "bad"),
    ]  # fmt: skip


def test_a_table_of_methods_against_controls_replaces_sentences():
    warnings = section(page(with_controls()), "warnings")
    (header, good, bad) = cells(warnings)
    assert header == ["", "center"]
    assert re.match(r"✓ \+0\.\d{3}$", good[1])
    assert re.match(r"✗ −0\.\d{3}$", bad[1])
    assert "imputed with linear: 1 of 2 methods." in warnings
    assert "None beyond what this table shows." in warnings


def test_the_main_setting_comes_first_everywhere():
    clear = endurance_study(good=(0.2, 0.8), bad=(0.5, 0.55))
    both = endurance_study(imputer="fixed", good=(0.5, 0.55), bad=(0.2, 0.8)) | clear
    ranking = statistics.ranking(both)
    assert ranking["imputer"].iloc[0] == "fixed"  # in order of evaluation
    parts = {"ranking": ranking, "pairwise": statistics.pairwise(both), "curves": statistics.curves(both), "audit": {}}
    parts |= {"agreement": statistics.agreement_intervals(both), "classes": None, "preferred": ("no-retrain", "linear")}
    text = page(findings(**parts, debiased=["linear"], fixed=["fixed"]))
    for name in ("ranking", "debiasing", "curves", "agreement"):
        found = re.findall(r"Imputed with (\w+)|(?:MoRF|LeRF) · (\w+)", section(text, name))
        assert next(a or b for a, b in found) == "linear", name
    assert "What debiasing changed" in sections_of(text)
    assert "What the imputer changed" in sections_of(page(findings(**parts)))


def test_one_image_gives_a_page_without_intervals():
    one = study(good={order: [row[1:2] for row in rows] for order, rows in GOOD.items()},
                bad={order: [row[1:2] for row in rows] for order, rows in BAD.items()})  # fmt: skip
    parts = {"ranking": statistics.ranking(one), "pairwise": statistics.pairwise(one), "curves": statistics.curves(one)}
    text = page(findings(**parts, agreement=statistics.agreement_intervals(one), classes=None, audit={}))
    visible = re.sub(r"<(style|script)>.*?</\1>|data:[^\"]*", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", visible)
    assert "A single image has no intervals" in visible


def test_many_methods_are_cut_on_the_first_screen_and_complete_in_the_ranking():
    predictions = study(**{f"method {k:02}": GOOD if k % 2 else BAD for k in range(40)})
    parts = {"ranking": statistics.ranking(predictions), "pairwise": statistics.pairwise(predictions)}
    text = page(findings(**parts, curves=statistics.curves(predictions), agreement=None, classes=None, audit={}))
    opening, _, rest = text.partition("<main")
    assert opening.count('class="forest-row') == 12
    assert "Not shown: 28 lower-ranked methods." in opening
    assert rest.count('class="forest-row') == 40


# ── classes, downloads, notebook ─────────────────────────────────────────────────────────────────────────────────────


def test_blue_is_good_in_the_table_of_classes():
    # good loses its accuracy in MoRF and keeps it in LeRF; bad the other way around.
    classes = section(page(findings()), "classes")
    rows = re.findall(r'<th scope="row">(\w+)</th>(.*?)</tr>', classes)
    # AOPC of good: MoRF (3/4 + 1)/2 = .875, LeRF (0 + 1/4)/2 = .125; their difference is .75, for bad −.75.
    assert [(name, re.findall(r'class="(h\w+)">(.*?)<', cells)) for name, cells in rows] == [
        (name, [("hp8", "0.75"), ("hn8", "−0.75")]) for name in ("one", "two")
    ]


def test_every_table_can_be_saved_as_csv():
    text = page(findings())
    links = dict(re.findall(r'<a download="([^"]+)" href="data:text/csv;charset=utf-8;base64,([^"]+)"', text))
    names = ("ranking", "pairwise", "curves", "agreement", "classes", *(f"audit-{name}" for name in audit_tables()))
    assert set(links) == {f"roadworthy-{name}.csv" for name in names}
    table = pd.read_csv(io.BytesIO(base64.b64decode(links["roadworthy-curves.csv"])))
    expected = statistics.curves(study(good=GOOD, bad=BAD))
    pd.testing.assert_frame_equal(table, expected, rtol=1e-5)


def test_formulas_in_names_stay_text_in_downloads():
    predictions = study(**{"=1+1": GOOD, "bad": BAD})
    text = page(findings(curves=statistics.curves(predictions), ranking=None, agreement=None, classes=None, audit={}))
    (content,) = re.findall(r'curves.csv" href="data:text/csv;charset=utf-8;base64,([^"]+)"', text)
    assert "\n'=1+1," in base64.b64decode(content).decode()


def test_a_notebook_shows_the_first_screen_without_style_sheet_and_script():
    cell = first_screen(with_controls(facts={"Model": "<i>mine</i>", "Images": "400"}))
    assert "&lt;i&gt;mine&lt;/i&gt;" in cell
    assert "CLEAR WINNER" in cell
    assert "Best method" in cell
    assert cell.count("forest-row") == 2
    assert "<style" not in cell
    assert "<script" not in cell
    assert "background:#ffffff;color:#1b1e23" in cell  # readable on dark pages too
    assert "href" not in cell
