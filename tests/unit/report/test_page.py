"""The page's parts, from tables written by hand: what is told, in which order, in which color."""

import base64
import hashlib
import html
import io
import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import references
import roadworthy as rw
import worlds
from predictions import BAD, GOOD, endurance_study, study
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions
from roadworthy.report.findings import Findings
from roadworthy.report.html import charts
from roadworthy.report.html.page import page
from roadworthy.report.html.strips import Picture, data_url
from roadworthy.report.palette import colors
from roadworthy.report.tables import short_ranking, standings

SHARES = (0.2, 0.4)


def audit_tables(methods=("good", "bad")):
    """Made-up tables in the shape of a leakage audit."""
    cells = [(method, order, share) for method in methods for order in ("morf", "lerf") for share in SHARES]
    masks = [(*cell, 0.61, 0.55, 0.67, 0.25) for cell in cells]
    geometry = [(*cell, 0.42, cell[2] > 0.3, np.nan if cell[0] == "bad" else 0.31, 1.5) for cell in cells]
    recovery = [("linear", masks, share, 0.31, 0.29, 0.33, 0.5) for masks in ("scatter", "blobs") for share in SHARES]
    conclusions = [
        ("good", "morf", "linear", "leak-free", "masks say no more than chance"),
        ("good", "lerf", "linear", "leaks", "masks alone name 61 % of the classes"),
        ("bad", "morf", "linear", "leak-free", "masks say no more than chance"),
    ]
    names = ["method", "order", "fraction"]
    return {
        "masks": pd.DataFrame(masks, columns=[*names, "accuracy", "low", "high", "chance"]),
        "geometry": pd.DataFrame(geometry, columns=[*names, "gamma", "clipped", "optimum", "blur"]),
        "recovery": pd.DataFrame(recovery, columns=["imputer", "masks", "fraction", "error", "low", "high", "guess"]),
        "conclusions": pd.DataFrame(conclusions, columns=["method", "order", "imputer", "conclusion", "why"]),
    }


def findings(**changes):
    predictions = study(good=GOOD, bad=BAD)
    ranking, pairs = statistics.ranking(predictions), statistics.pairs(predictions)
    # The four images of the study are of one class; a second one shows that there is a section.
    one = statistics.per_class(predictions).assign(name="one")
    names = pd.concat([one, one.assign(label=2, name="two")])
    told = {
        "conclusion": statistics.headline(ranking, pairs),
        "ranking": ranking,
        "curves": statistics.curves(predictions),
        "agreement": statistics.agreement(predictions),
        "classes": names,
        "audits": audit_tables(),
        "warnings": ["Only 4 images were evaluated."],
        "facts": {"Model": "mine", "Data": "theirs"},
        "plan": "[data]\nname = 'digits'",
    }
    return Findings(**{**told, **changes})


def test_the_sections_come_in_the_order_in_which_one_asks():
    titles = re.findall(r"<h2>(.*?)</h2>", page(findings()))
    assert titles == [
        "Ranking", "Curves", "Do the settings agree?", "Pictures", "Leakage and geometry", "Class by class", "Beware",
        "How it was made", "How to read this page",
    ]  # fmt: skip


def test_the_same_findings_are_the_same_bytes_and_what_is_not_known_is_left_out():
    assert page(findings()) == page(findings())
    bare = page(Findings(conclusion="Nothing can be ranked yet.", no_pictures="the data are gone"))
    assert re.findall(r"<h2>(.*?)</h2>", bare) == ["Pictures", "How it was made", "How to read this page"]
    assert "There are no pictures: the data are gone." in bare


def test_the_policy_names_the_sums_of_the_pages_own_style_and_script():
    made = page(findings())
    policy = html.unescape(re.search(r'Content-Security-Policy" content="(.*?)"', made).group(1))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", made, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert " style=" not in made  # attributes would be forbidden by the policy


def test_the_leakage_verdict_of_a_method_is_the_worst_over_its_orders():
    made = page(findings())
    rows = re.findall(r"<tr><td>\d.*?</tr>", made.partition('id="curves"')[0], flags=re.DOTALL)
    good, bad = (next(row for row in rows if f"</svg>{name}" in row) for name in ("good", "bad"))
    assert 'title="masks alone name 61 % of the classes">leaks</td>' in good
    assert ">leak-free</td>" in bad


def test_an_inverted_copy_leaks_as_its_method_does_and_what_was_not_audited_has_a_gap():
    ranking = statistics.ranking(study(**{"good": GOOD, "good inverted": BAD, "new": BAD}))
    conclusions = audit_tables()["conclusions"]
    (standing,) = standings(ranking, {"good": 0, "good inverted": 1, "new": 2}, conclusions)
    # The copy's masks are those of its method, the orders exchanged: the worst is the same.
    assert {place.method: place.leaks for place in standing.places} == {
        "good": "leaks",
        "good inverted": "leaks",
        "new": "",
    }
    holes = short_ranking(ranking, conclusions)
    assert dict(zip(ranking["method"], holes["holes"], strict=True)) == {
        "good": "leaks",
        "good inverted": "leaks",
        "new": "–",
    }


def test_audit_tables_are_shown_a_column_per_share_with_what_is_unknown_left_out():
    made = page(findings())
    assert "61.0% [55.0%, 67.0%]" in made
    assert "31.0% [29.0%, 33.0%], guessing 50.0%" in made
    assert "0.42 (best 0.31)" in made
    assert "0.42 clipped (best 0.31)" in made
    assert "<td>0.42 clipped</td>" in made  # bad has no known optimum


def test_a_wrong_audit_table_is_refused_by_name():
    with pytest.raises(rw.errors.InputError, match="audit 'mask' is unknown: there are masks, recovery"):
        findings(audits={"mask": pd.DataFrame()})
    with pytest.raises(rw.errors.InputError, match="audit 'masks' lacks the columns chance"):
        findings(audits={"masks": audit_tables()["masks"].drop(columns="chance")})


def test_a_chart_puts_values_where_the_axes_say():
    table = statistics.curves(study(good=GOOD, bad=BAD))
    (row,) = charts.rows(table, ["bad"], {"good": 0, "bad": 1})
    morf = row.panels[0]
    assert morf.title.startswith("MoRF")
    control, line = morf.lines
    assert (control.name, control.band, line.name) == ("bad", "", "good")  # controls lie beneath, without bands
    # good, MoRF: accuracies 1, 1/4, 0 at shares 0, 0.2, 0.4. The plot is 366 × 224, its corner lies at (44, 248):
    # x = 44 + 366·s/0.4, y = 248 − 224·a.
    assert [(point.x, point.y) for point in line.points] == [(44, 24), (227, 192), (410, 248)]
    assert line.path == "M44.0,24.0L227.0,192.0L410.0,248.0"
    # Wilson, 1 of 4: center (0.25 + 3.84/8)/(1 + 3.84/4), as in the table.
    assert line.points[1].text == "good, 20% removed: 25.0% [4.6%, 69.9%]"
    assert [tick.text for tick in morf.across] == ["0%", "10%", "20%", "30%", "40%"]


def test_a_method_has_one_color_whatever_is_asked_beside_it_in_whatever_order():
    names = [f"method {k:02}" for k in range(20)]
    looks = colors(names, ["random", "edges"])
    assert colors(reversed(names), ["edges", "random"]) == looks
    assert len({(look.color, look.dash) for look in looks.values()}) == 22  # no two look the same
    assert len({(look.dark, look.dash) for look in looks.values()}) == 22
    assert all(looks[name].dash for name in ("random", "edges"))
    assert all(not looks[name].dash for name in names[:8])


@pytest.mark.parametrize("ground", ["color", "dark"])
@pytest.mark.parametrize("sight", ["normal", "protan", "deutan"])
def test_the_color_blind_tell_the_eight_colors_apart(ground, sight):
    """12 in CIELAB: a difference of 2.3 is just noticeable side by side; lines lie apart."""
    shades = [getattr(look, ground) for look in colors([str(k) for k in range(8)]).values()]
    seen = [references.seen_as(shade, sight) for shade in shades]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 12


def test_a_large_picture_is_shown_smaller_and_a_small_one_pixel_by_pixel():
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


def test_images_without_labels_are_not_said_to_be_of_a_class(tmp_path):
    world = worlds.quadrants(n=8)
    options = {"fractions": (0.4,), "controls": (), "progress": False}
    comparison = rw.compare(world.model, world.images, {"t": world.truth}, **options)
    made = comparison.report(tmp_path / "page.html").read_text()
    assert "Image 0, predicted 0" in made
    assert "class 0" not in made
    named = rw.compare(world.model, (world.images, world.labels), {"t": world.truth}, **options)
    assert "Image 1, class 1" in named.report(tmp_path / "named.html").read_text()


def test_the_page_names_model_data_version_and_date_and_every_leading_method_has_its_map(tmp_path):
    world = worlds.quadrants(n=24)
    maps = {"truth": world.truth, "half": world.truth + 0.3 * world.images.mean(dim=1), "none": -world.truth}
    comparison = rw.compare(world.model, (world.images, world.labels), maps, fractions=(0.2, 0.5), progress=False)
    made = comparison.report(tmp_path / "page.html").read_text()
    assert "Model: Quadrants" in made
    assert "Data: Arrays" in made
    assert "Images: 24" in made
    assert f"Roadworthy: {rw.__version__}" in made
    assert re.search(r"Date: \d+ \w+ 20\d\d", made)
    assert all(f"<figcaption>{name}</figcaption>" in made for name in maps)
    leader = comparison.leaders()[0]
    for order in ("most relevant first (MoRF)", "least relevant first (LeRF)"):
        assert f"Filled by linear; {leader} removes {order}" in made


def test_what_a_class_loses_is_the_mean_loss_of_its_images():
    # Labels 0, 0, 1, 1. GOOD in MoRF: image 0 is right at 0 and 0.2, so it loses (0 + 1)/2; the others lose (1 + 1)/2.
    labels = np.array([0, 0, 1, 1])
    predictions = {
        Point("good", "morf", "linear", "no-retrain", share, 0): Predictions(
            np.arange(4), labels, np.where(np.array(row) == 1, labels, 9), np.ones(4, dtype=np.float32)
        )
        for share, row in zip((0.0, 0.2, 0.4), GOOD["morf"], strict=True)
    }
    table = statistics.per_class(predictions)
    assert table[["label", "images", "plain", "drop"]].to_numpy().tolist() == [[0, 2, 1, 0.75], [1, 2, 1, 1]]
    # Class 0 loses 0.5 and 1: mean 0.75, Student's half width 12.7 · 0.25 is cut to what is possible. In class 1 both
    # images agree: 1 − 0.025^(1/2) = 0.842 of all images might still differ, as far as −1.
    assert table[["low", "high"]].round(3).to_numpy().tolist() == [[-1, 1], [round(1 - 2 * (1 - 0.025**0.5), 3), 1]]


def test_a_curve_with_a_hole_waits_and_is_named():
    predictions = study(good=GOOD, bad=BAD)
    asked = list(predictions)
    gone = Point("bad", "lerf", "linear", "no-retrain", 0.2, 0)
    whole, gaps = statistics.whole_curves({point: one for point, one in predictions.items() if point != gone}, asked)
    assert len(whole) == 9  # 3 of the 4 curves, 3 points each
    assert gaps.to_numpy().tolist() == [["bad", "lerf", "linear", "no-retrain", 2, 3]]
    whole, gaps = statistics.whole_curves(predictions, asked)
    assert whole == predictions
    assert gaps.empty


def headline(predictions, controls=("random",)):
    ranking = statistics.ranking(predictions, controls)
    return statistics.headline(ranking, statistics.pairs(predictions, controls))


def test_the_verdict_says_who_comes_first_how_sure_and_what_speaks_against_it():
    # The worlds' methods endure shares that lie far apart (0.2 and 0.8) or are the same.
    clear = endurance_study(good=(0.2, 0.8), bad=(0.5, 0.55), random=(0.6, 0.4))
    assert headline(clear) == (
        "good comes first on 400 images, clearly ahead of every other method (95% sure of all pairs at once). "
        "It clearly beats every control."
    )
    close = endurance_study(one=(0.2, 0.8), other=(0.2, 0.8), random=(0.6, 0.4))
    assert re.match(r"(one|other) comes first on 400 images, but not clearly ahead of (one|other)\. ", headline(close))
    beaten = endurance_study(good=(0.5, 0.5), bad=(0.6, 0.4), random=(0.2, 0.8))
    assert headline(beaten).endswith("It does not clearly beat the control random: do not trust it yet.")
    split = clear | endurance_study(imputer="fixed", good=(0.5, 0.55), bad=(0.2, 0.8), random=(0.6, 0.4))
    assert headline(split).endswith("yet in 1 of 2 settings another comes first: bad.")
    assert headline(split).startswith("Filled by linear: good comes first on 400 images")  # the other fill disagrees


def test_the_ranking_of_the_verdicts_setting_comes_first():
    clear = endurance_study(good=(0.2, 0.8), bad=(0.5, 0.55))
    both = endurance_study(imputer="fixed", good=(0.5, 0.55), bad=(0.2, 0.8)) | clear
    table = statistics.ranking(both, ())
    assert table["imputer"].iloc[0] == "fixed"  # as they were evaluated
    shown = [one.title for one in standings(table, {"good": 0, "bad": 1}, None)]
    assert shown == ["Filled by linear, evaluated by no-retrain", "Filled by fixed, evaluated by no-retrain"]
