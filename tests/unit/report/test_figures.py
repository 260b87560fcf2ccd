"""Figures draw the numbers of their tables; files are reproducible and safely named."""

import gc
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

from layouts import problems
from predictions import curve_study, endurance_study
from roadworthy import statistics
from roadworthy.audit.debiasing import debiased
from roadworthy.audit.information import bits_at_least, bits_if_optimal
from roadworthy.report.examples import Answer, AnsweredImage, Example, Gallery, Removal
from roadworthy.report.figures import curves, latex, leakage, pictures
from roadworthy.report.figures.agreement import agreement_map, short
from roadworthy.report.figures.answers import answered
from roadworthy.report.figures.catalog import FIGURES, TABLES, _only_new_garbage, leakiest_curves, write_all
from roadworthy.report.figures.critical import critical_difference, not_separated
from roadworthy.report.figures.data import FigureData
from roadworthy.report.figures.forest import forest
from roadworthy.report.figures.setting_curves import References, setting_curves
from roadworthy.report.figures.slopes import slopes
from roadworthy.report.figures.style import write_figure
from roadworthy.report.palette import colors
from roadworthy.report.ranks import Agreement, RankPanel, RankRow

METHODS = ["IG", "IG-SG", "GB", "GB-SG"]
LOOKS = colors([*METHODS, "random"], ["random"])


def curve_table(evaluators=("no-retrain", "retrain"), imputers=("fixed", "linear"), methods=(*METHODS, "random")):
    """Straight lines from 90 % down with a slope per method; MoRF falls twice as fast."""
    return pd.DataFrame(
        [
            (method, order, imputer, evaluator, fraction, accuracy, accuracy, accuracy - 0.02, accuracy + 0.02)
            for evaluator in evaluators
            for imputer in imputers
            for order in ("morf", "lerf")
            for slope, method in enumerate(methods, start=1)
            for fraction in (0.0, 0.1, 0.5, 0.9)
            for accuracy in [max(0.0, 0.9 - fraction * slope * (0.16 if order == "morf" else 0.08))]
        ],
        columns=["method", "order", "imputer", "evaluator", "fraction", "accuracy", "probability", "low", "high"],
    )


def audit_tables():
    points = [(m, o, f) for m in METHODS for o in ("morf", "lerf") for f in (0.1, 0.5, 0.9)]
    masks = pd.DataFrame(points, columns=["method", "order", "fraction"])
    masks["accuracy"] = 0.3 + 0.1 * masks["method"].map(METHODS.index) + 0.1 * masks["fraction"]
    masks = masks.assign(low=masks["accuracy"] - 0.03, high=masks["accuracy"] + 0.03, chance=0.1, images=500)
    masks["bits"] = [bits_at_least(value, [0.1] * 10) for value in masks["accuracy"]]
    masks["bits_if_optimal"] = [bits_if_optimal(value, [0.1] * 10) for value in masks["accuracy"]]
    masks = masks.assign(bits_low=masks["bits"] - 0.1, bits_high=masks["bits"] + 0.1)
    detection = pd.DataFrame(
        [
            (imputer, kind, order, f, error * f, 0.9, error * f - 0.01, error * f + 0.01, min(f, 1 - f))
            for imputer, error in (("fixed", 0.01), ("linear", 0.3))
            for kind, order in (("scatter", ""), ("blobs", np.nan), ("IG-SG", "morf"), ("IG-SG", "lerf"))
            for f in (0.1, 0.5, 0.9)
        ],
        columns=["imputer", "masks", "order", "fraction", "error", "auc", "low", "high", "guess"],
    )
    geometry = pd.DataFrame(points, columns=["method", "order", "fraction"])
    geometry["gamma"] = (0.2 + 0.15 * geometry["method"].map(METHODS.index) + 0.3 * geometry["fraction"]).round(3)
    geometry = geometry.assign(clipped=geometry["fraction"] == 0.1, optimum=np.nan, blur=0.5)
    return {"masks": masks, "detection": detection, "geometry": geometry}


def lines(panel):
    """Plotted points by label."""
    return {line.get_label().lstrip("\u200b"): line.get_xydata() for line in panel.get_lines()}


def test_a_panel_shows_the_curves_of_its_evaluator_and_order_in_the_methods_colors():
    table = curve_table(imputers=("linear",), methods=("IG", "IG-SG", "random"))
    figure = curves.family_curves(table, LOOKS)
    assert [panel.get_title() for panel in figure.axes] == [
        "MoRF (lower is better), no retraining",
        "LeRF (higher is better), no retraining",
        "MoRF (lower is better), retrained",
        "LeRF (higher is better), retrained",
    ]
    drawn = lines(figure.axes[1])
    # LeRF of the second method: .9 − .08 · 2 · f
    assert drawn["IG-SG"].tolist() == [[f, pytest.approx(0.9 - 0.16 * f)] for f in (0.0, 0.1, 0.5, 0.9)]
    assert {line.get_color() for line in figure.axes[0].get_lines()} == {
        LOOKS[name].color for name in ("IG", "IG-SG", "random")
    }


def test_a_method_has_one_color_in_every_figure():
    audit, table = audit_tables(), curve_table()
    drawn = [
        *curves.family_curves(table[(table["evaluator"] == "retrain") & (table["imputer"] == "fixed")], LOOKS).axes,
        *leakage.mask_accuracy(audit["masks"], LOOKS).axes,
        *leakage.bias_indicator(audit["geometry"], LOOKS).axes,
    ]
    for panel in drawn:
        for line in panel.get_lines():
            name = line.get_label().lstrip("\u200b")
            assert name not in LOOKS or line.get_color() == LOOKS[name].color
    assert len(set(colors([f"m{i}" for i in range(24)], []).values())) == 24


def test_a_measured_mask_accuracy_spans_the_bounds():
    masks = audit_tables()["masks"].query("method == 'IG' and order == 'morf' and fraction == 0.5")
    panel = leakage.information(masks, 10, LOOKS).axes[1]
    left, right = lines(panel)["IG"]
    # IG is the first: .3 + .1 · .5 = .35; Fano: log2 10 − H₂(.35) − .65 · log2 9 = .327. Kovalevskij: an error of .65
    # is nine tenths of the way from 1/2 (1 bit remains) to 2/3 (log2 3 bits): log2 10 − 1.5265 = 1.795
    assert left.tolist() == pytest.approx([0.327, 0.35], abs=5e-4)
    assert right.tolist() == pytest.approx([1.795, 0.35], abs=5e-4)


def test_debiased_curves_divide_the_drop_by_gamma_and_have_gaps_below_chance():
    table = curve_table(evaluators=("retrain",), imputers=("linear",), methods=("IG", "IG-SG"))
    geometry = pd.DataFrame(
        [("IG", "morf", 0.5, 0.5, False), ("IG", "morf", 0.9, 0.16, False)],
        columns=["method", "order", "fraction", "gamma", "clipped"],
    )
    panel = curves.debiased_curves(table, debiased(table, geometry, 0.1), LOOKS).axes[0]
    # At 0: .9. At .5 the drop of .5 · .16 is divided by γ; .9 − .144/.16 = 0 is below chance. No γ at .1.
    drawn = next(line for line in panel.get_lines() if line.get_linestyle() == "-")
    assert drawn.get_xdata().tolist() == [0.0, 0.5, 0.9]
    assert drawn.get_ydata()[:2].tolist() == pytest.approx([0.9, 0.9 - 0.08 / 0.5])
    assert np.isnan(drawn.get_ydata()[2])
    solid, dotted = ([line for line in panel.get_lines() if line.get_linestyle() == style] for style in ("-", ":"))
    assert [len(solid), len(dotted)] == [2, 3]  # two methods; the third dotted line is a legend entry


def test_masks_are_drawn_over_the_curves_most_exposed_to_leakage():
    evaluator, imputer, rows = leakiest_curves(curve_table(), "fixed")
    assert (evaluator, imputer, set(rows["order"])) == ("retrain", "fixed", {"morf"})
    assert leakiest_curves(curve_table(evaluators=("no-retrain",), imputers=("linear",)), "")[:2] == (
        "no-retrain",
        "linear",
    )
    masks = audit_tables()["masks"].query("order == 'morf'")
    figure = leakage.mask_over_curves(masks, rows, LOOKS)
    assert [panel.get_title().lstrip("\u200b") for panel in figure.axes] == METHODS
    # The third method: .9 − .16 · 3 · f
    assert lines(figure.axes[2])["MoRF curve"][-1].tolist() == pytest.approx([0.9, 0.9 - 0.16 * 3 * 0.9])


def test_detection_errors_have_a_panel_per_kind_of_masks_and_order():
    figure = leakage.detection_error(audit_tables()["detection"])
    assert [panel.get_title().lstrip("\u200b") for panel in figure.axes[:4]] == [
        "masks: scatter",
        "masks: blobs",
        "masks: IG-SG, MoRF",
        "masks: IG-SG, LeRF",
    ]
    for panel in figure.axes[:4]:  # one point per fraction: MoRF and LeRF are not joined into one line
        assert lines(panel)["linear"][:, 0].tolist() == [0.1, 0.5, 0.9]
    drawn = lines(figure.axes[0])
    assert drawn["linear"].tolist() == [[f, pytest.approx(0.3 * f)] for f in (0.1, 0.5, 0.9)]
    assert drawn["constant prediction,\nknows the fraction"][:, 1].tolist() == pytest.approx([0.1, 0.5, 0.1])


def test_gamma_is_hollow_where_it_was_clipped():
    panel = leakage.bias_indicator(audit_tables()["geometry"], LOOKS).axes[0]
    hollow = [line for line in panel.get_lines() if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata().tolist() for line in hollow] == [[0.1]] * 4
    assert lines(panel)["GB"][:, 1].tolist() == pytest.approx([0.53, 0.65, 0.77])  # .2 + .15 · 2 + .3 · f


def test_one_method_is_drawn_with_every_evaluator_and_imputer():
    figure = curves.evaluator_curves(curve_table().query("method == 'GB'"), LOOKS["GB"])
    labels = {
        f"{evaluator}, {imputer}" for evaluator in ("no retraining", "retrained") for imputer in ("fixed", "linear")
    }
    assert set(lines(figure.axes[0])) == set(lines(figure.axes[1])) == labels


def example():
    def flat(value):
        return np.full((3, 4, 4), value, dtype=np.float32)

    return Example(
        title="image 7, cat",
        image=flat(1.0),
        fractions=(0.1, 0.9),
        relevance={"GB": flat(0.6)[:1], "IG": flat(0.5)[:1]},
        imputed={
            ("GB", "morf", "fixed"): [flat(0.3), flat(0.4)],
            ("GB", "morf", "linear"): [flat(0.7), flat(1.5)],
            ("GB", "lerf", "fixed"): [flat(0.1), flat(0.2)],
            ("GB", "lerf", "linear"): [flat(0.1), flat(0.2)],
            **{("IG", order, "fixed"): [flat(0.1), flat(0.2)] for order in ("morf", "lerf")},
        },
    )


def test_pictures_are_in_rows_by_method_and_by_imputer():
    shown = [panel.images[0].get_array() for panel in pictures.modified_data(example()).axes]
    # two methods: image, map, two fractions in each of two orders
    assert [float(np.ravel(pixels)[0]) for pixels in shown] == pytest.approx(
        [1, 0.6, 0.3, 0.4, 0.1, 0.2, *(1, 0.5, 0.1, 0.2, 0.1, 0.2)]
    )
    shown = [panel.images[0].get_array() for panel in pictures.imputations([example(), example()]).axes]
    # values above 1 are clipped
    assert [float(np.ravel(pixels)[0]) for pixels in shown] == pytest.approx([1, 0.3, 0.4, 1, 0.7, 1] * 2)


def cells(text):
    body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0].replace(r"\midrule", "")
    return [[cell.strip() for cell in row.split("&")] for row in body.replace("\n", "").split(r"\\") if row.strip()]


def test_the_table_of_accuracies_has_a_row_per_setting():
    table = cells(latex.accuracy_table(curve_table(), "IG"))
    assert table[0] == ["IG, removed:", r"0\%", r"10\%", r"50\%", r"90\%"]
    assert len(table) == 1 + 8  # two evaluators, two orders, two imputers
    assert table[1][0] == "MoRF, no retraining, fixed"
    assert table[1][3] == r"$82.0$ {\scriptsize$\pm$2.0}"  # .9 − .16 · .5


def settings_study(seeds=1):
    """Two settings that agree at .2 and disagree at .4, the same for every seed."""
    tables = {
        ("morf", "linear"): {m: {0.2: 0.1 * k, 0.4: 0.1 * k} for k, m in enumerate(["a", "b", "c"], start=1)},
        ("lerf", "linear"): {
            "a": {0.2: 0.9, 0.4: 0.1}, "b": {0.2: 0.5, 0.4: 0.5}, "c": {0.2: 0.1, 0.4: 0.9}
        },
    }  # fmt: skip
    return {point: one for seed in range(seeds) for point, one in curve_study(tables, seed=seed).items()}


def test_the_table_of_agreement_is_a_lower_triangle():
    table = cells(latex.agreement_table(statistics.agreement(settings_study())))
    assert table[0] == ["", "(1)", "(2)"]
    assert table[1] == ["(1) MoRF, no retraining, linear", "$1.00$", ""]
    assert table[2] == ["(2) LeRF, no retraining, linear", "$0.00$", "$1.00$"]  # +1 at .2, −1 at .4
    several = cells(latex.agreement_table(statistics.agreement(settings_study(seeds=3))))
    assert several[2][1] == r"$0.00$ {\scriptsize$\pm$0.00}"


def test_the_table_of_runtimes_escapes_names_for_latex():
    runtimes = pd.DataFrame([("retrain", "my_fill & 50%", 3903.0, 1.0), ("no-retrain", "linear", 33.3, 0.0085)])
    text = latex.runtime_table(runtimes.set_axis(["evaluator", "imputer", "seconds", "relative"], axis=1))
    assert r"retrained & my\_fill \& 50\% & 3903 & 100\,\% \\" in text
    assert cells(text)[2] == ["no retraining", "linear", "33.3", r"0.85\,\%"]


@pytest.mark.parametrize("name", [r"\input{/etc/passwd}", "10%", r"a & b \\ c", r"x_1^{2} $y$ #~", r"\end{tabular}"])
def test_names_from_users_are_text_in_latex(name):
    text = latex.accuracy_table(curve_table(methods=(name,), imputers=(name,)), name)
    assert text.count(r"\end{tabular}") == 1
    assert r"\input" not in text
    assert len(cells(text)) == 1 + 4  # two evaluators, two orders; no name adds rows
    assert {text.count(r"\resizebox{"), text.count(r"\caption{")} == {1}
    assert not re.search(r"(?<!\\)#|a & b|\^\{2", text)


def test_figures_are_written_as_pdf_svg_and_png_with_reproducible_bytes(tmp_path):
    table = curve_table(methods=("IG", "<b>$x_1$ & _y"))
    looks = colors(list(table["method"].unique()), [])

    def written(folder):
        paths = write_figure(curves.family_curves(table, looks), tmp_path / folder, "f")
        return [path.read_bytes() for path in paths]

    first, second = written("one"), written("two")
    assert first == second
    pdf, svg, png = first
    assert (pdf[:4], png[1:4]) == (b"%PDF", b"PNG")
    assert b"<b>" not in svg


def test_a_figure_is_laid_out_once_and_drawn_once_per_format_whatever_the_users_settings(tmp_path, monkeypatch):
    table, drawn, draw = curve_table(methods=("IG", "GB")), [], Figure.draw
    looks = colors(list(table["method"].unique()), [])
    monkeypatch.setattr(Figure, "draw", lambda figure, renderer: drawn.append(figure) or draw(figure, renderer))

    def written(folder):
        paths = write_figure(curves.family_curves(table, looks), tmp_path / folder, "f")
        return [path.read_bytes() for path in paths]

    plain = written("plain")
    assert len(drawn) == 3  # PDF, SVG, PNG
    for setting in ("figure.autolayout", "figure.constrained_layout.use"):
        with rc_context({setting: True}):
            assert written(setting) == plain


@cache
def tables(methods, imputers, evaluators, images=40):
    """Ranking and what follows from it, of methods that each last a little longer than the one before."""
    names = {method: (0.2 + 0.3 * k / len(methods), 0.7 - 0.4 * k / len(methods)) for k, method in enumerate(methods)}
    predictions = {
        point._replace(evaluator=evaluator): each
        for evaluator in evaluators
        for imputer in imputers
        for point, each in endurance_study(images, imputer=imputer, **names, random=(0.4, 0.4)).items()
    }
    ranking, pairs = statistics.ranking(predictions, ["random"]), statistics.pairwise(predictions, ["random"])
    return {
        "ranking": ranking,
        "standings": statistics.standings(ranking, pairs, (), 0.02),
        "average_ranks": statistics.average_ranks(predictions),
        "agreement": statistics.agreement_intervals(predictions, ["random"]),
    }


def figure_data(audit=None, methods=METHODS, gaps=None, imputers=("linear",), evaluators=("no-retrain", "retrain")):
    """Without examples and runtimes."""
    missing = {name: f"no {name}" for name in ("examples", "runtimes")}
    return FigureData(
        curves=curve_table(evaluators, imputers, (*methods, "random")),
        **tables(tuple(methods), tuple(imputers), tuple(evaluators)),
        runtimes=pd.DataFrame(),
        audit=audit_tables() if audit is None else audit,
        examples=[],
        gallery=Gallery(),
        controls=("random",),
        copies=(),
        classes=10,
        chance=0.1,
        preferred=(evaluators[0], imputers[0]),
        confidence=0.95,
        method=methods[0],
        linear_imputer="linear",
        fixed_imputer="fixed",
        headline="With linear instead of fixed, MoRF and LeRF agree more: Spearman +0.57 [+0.30, +1.07]",
        gaps=missing | (gaps or {}),
    )


def test_entries_whose_data_are_missing_are_skipped_with_the_reason(tmp_path):
    masks = pd.DataFrame(columns=["method", "order", "fraction", "accuracy", "bits", "bits_if_optimal"])
    absent = ("masks", "detection", "geometry", "headline")
    data = figure_data(audit={"masks": masks}, gaps={name: f"no {name}" for name in absent})
    paths, skipped = write_all(data, tmp_path)
    reasons = dict(line.split(": ") for line in skipped)
    assert reasons == {
        "headline": "no headline",
        "detection-error": "no detection",
        "mask-only": "no masks",
        "mask-only-over": "no masks",
        "debiased": "no geometry",
        "bias-indicator": "no geometry",
        "examples": "no examples",
        "modified-data": "no examples",
        "imputations": "no examples",
        "runtimes": "no runtimes",
    }
    assert {path.name for path in paths if path.suffix == ".pdf"} == {
        "curves-ig-linear.pdf", "curves-gb-linear.pdf", "methods-no-retrain-linear.pdf", "methods-retrain-linear.pdf",
        "information.pdf", "evaluators-ig.pdf", "ranks-by-imputer.pdf", "agreement-removed.pdf", "agreement-kept.pdf",
        "ranking-no-retrain-linear.pdf", "ranking-retrain-linear.pdf",
        "critical-difference-no-retrain-linear.pdf", "critical-difference-retrain-linear.pdf",
    }  # fmt: skip
    assert {path.name for path in paths if path.suffix == ".tex"} == {
        "agreement.tex", "accuracies-ig.tex", "accuracies-ig-sg.tex", "accuracies-gb.tex", "accuracies-gb-sg.tex",
    }  # fmt: skip


def test_with_the_audits_tables_every_figure_but_the_pictures_is_drawn(tmp_path):
    steps = []
    paths, skipped = write_all(figure_data(), tmp_path, steps.append)
    assert {line.partition(":")[0] for line in skipped} == {"examples", "modified-data", "imputations", "runtimes"}
    assert len(steps) == len(FIGURES) + len(TABLES)
    assert {
        "detection-error.svg",
        "debiased-ig.svg",
        "bias-indicator.svg",
        "mask-only-over-retrain-linear.svg",
    } <= {path.name for path in paths}
    assert all(path.stat().st_size > 300 for path in paths)


def test_names_from_users_cannot_leave_the_folder_or_overwrite_each_other(tmp_path):
    no_audit = dict.fromkeys(("masks", "detection", "geometry"), "no audit")
    data = figure_data(audit={"masks": audit_tables()["masks"][:0]}, methods=("../../a b", "a-b"), gaps=no_audit)
    paths, _ = write_all(data, tmp_path / "out")
    assert all(path.parent == tmp_path / "out" for path in paths)
    assert len(set(paths)) == len(paths)
    assert {path.name for path in paths if "accuracies" in path.name} == {"accuracies-a-b.tex", "accuracies-a-b-2.tex"}
    assert all(re.fullmatch(r"[a-z0-9-]+\.(pdf|svg|png|tex)", path.name) for path in paths)


LONG = ["IG", "IG-SG", "GB", "GB-SG", "a method with quite a long name", *(f"method {k}" for k in range(12))]


@pytest.fixture(scope="module")
def many():
    """Seventeen methods, two imputers, two evaluators: the crowded case."""
    return figure_data(methods=LONG, imputers=("linear", "fixed"))


@pytest.fixture(scope="module")
def few():
    return figure_data(methods=METHODS, imputers=("linear", "fixed"), evaluators=("no-retrain",))


CHARTS = [entry for entry in FIGURES if "examples" not in entry.needs]


@pytest.mark.parametrize("entry", CHARTS, ids=[entry.name for entry in CHARTS])
def test_no_text_overlaps_another_is_crossed_by_a_line_or_leaves_the_figure(entry, few, many):
    for data in (many,) if {"retrain", "evaluators"} & set(entry.needs) else (few, many):
        suffix, figure = next(entry.draw(data))
        assert problems(figure) == [], suffix


def test_the_check_of_layouts_finds_what_it_looks_for():
    figure = curves.family_curves(curve_table(imputers=("linear",), methods=("IG",)), LOOKS)
    panel = figure.axes[0]
    panel.text(0.5, 0.82, "on the curve")  # .9 − .16 · .5
    panel.text(0.2, 0.3, "twice")
    panel.text(0.21, 0.31, "twice")
    panel.legend(loc="upper left", bbox_to_anchor=(0.3, 0.3))
    figure.text(0.99, 0.5, "beyond the edge")
    found = " ".join(problems(figure))
    for words in ("crosses 'on the curve'", "'twice' and 'twice'", "legend covers", "'beyond the edge' leaves"):
        assert words in found


def test_the_headline_figure_has_the_fixed_color_above_noisy_linear(many):
    suffixes, figures = zip(*next(entry for entry in FIGURES if entry.name == "headline").draw(many), strict=True)
    assert suffixes == ("no-retrain", "retrain")
    assert [panel.get_title() for panel in figures[0].axes] == [
        "MoRF (lower is better), imputed with fixed",
        "LeRF (higher is better), imputed with fixed",
        "MoRF (lower is better), imputed with linear",
        "LeRF (higher is better), imputed with linear",
    ]


def test_text_in_svg_is_text(tmp_path, few):
    _, svg, _ = write_figure(next(FIGURES[0].draw(few))[1], tmp_path, "f")
    assert ">whole images 90 %</text>" in svg.read_text()


def test_emphasized_methods_have_thick_lines_and_every_curve_its_name():
    table = curve_table(evaluators=("no-retrain",), imputers=("linear",))
    references = References(0.1, {("no-retrain", "linear"): 0.9})
    panel = setting_curves(table, LOOKS, ("IG", "random"), references).axes[1]
    widths = {line.get_label(): line.get_linewidth() for line in panel.get_lines() if line.get_label() in LOOKS}
    assert {name for name, width in widths.items() if width > 1} == {"IG", "random"}
    assert {text.get_text() for text in panel.texts} == {*METHODS, "random", "chance 10 %", "whole images 90 %"}


def test_beyond_fourteen_curves_only_the_emphasized_have_names():
    names = [f"m{k}" for k in range(20)]
    table = curve_table(evaluators=("no-retrain",), imputers=("linear",), methods=names)
    references = References(0.1, {("no-retrain", "linear"): 0.9})
    panel = setting_curves(table, colors(names), ("m3",), references).axes[0]
    assert {text.get_text() for text in panel.texts} == {"m3", "chance 10 %", "whole images 90 %"}


def answered_image(methods=("IG", "GB")):
    image, removed = np.zeros((3, 4, 4), dtype=np.float32), np.eye(4, dtype=bool)
    right, wrong = Answer("ship", True, "ship", 0.97), Answer("airplane", False, "ship", 0.21)
    removals = [Removal("morf", 0.25, removed, image, wrong), Removal("lerf", 0.5, removed, image, right)]
    return AnsweredImage("Image 7, class ship", "class ship", image, right, "linear", dict.fromkeys(methods, removals))


def test_examples_show_each_step_with_the_answer_and_the_rule_of_selection():
    lead = answered_image()
    gallery = Gallery([lead], {"IG": "best score", "GB": "worst score"}, lead, "The first image.", "All images.")
    figure = answered(gallery, lead)
    shown = [panel for panel in figure.axes if panel.images]
    assert len(shown) == 1 + 2 * 4  # the original; marked, removed, imputed and LeRF of two methods
    assert [panel.get_xlabel() for panel in shown[:5]] == [
        "✓ ship 97 %",
        "",
        "",
        "✗ airplane\nship 21 %",
        "✓ ship 97 %",
    ]
    marked = shown[1].images[0].get_array()
    assert (marked[np.eye(4, dtype=bool)] == marked[0, 0]).all()  # the removed pixels have one color, the others not
    assert not (marked[0, 1] == marked[0, 0]).all()
    titles = [" ".join(panel.get_title().split()) for panel in shown[:6]]
    assert titles == ["original", "its top 25 %", "removed", "imputed", "without its least relevant 50 %", ""]
    assert "The first image." in figure.get_supxlabel()
    assert figure.get_suptitle().endswith("imputed with linear")
    assert problems(figure) == []


def test_one_method_has_one_row_of_pictures():
    lead = answered_image(["IG"])
    figure = answered(Gallery([lead], {"IG": "the only method"}, lead, "The first image."), lead)
    assert sum(bool(panel.images) for panel in figure.axes) == 5


def test_bars_join_only_methods_that_no_test_separates():
    block = pd.DataFrame({"method": ["a", "b", "c", "d", "copy"], "groups": ["a", "ab", "b", "c", "ab"]})
    assert not_separated(block, {"a", "b", "c", "d"}) == [["a", "b"], ["b", "c"]]
    assert not_separated(block, {"a", "c", "d"}) == []  # a and c share no letter; a bar needs two methods
    ranks = pd.DataFrame(
        {"method": ["a", "b", "c", "d"], "average_rank": [1.5, 2.0, 2.5, 4.0], "imputer": "linear",
         "evaluator": "no-retrain", "images": 10}
    )  # fmt: skip
    figure = critical_difference(ranks, [["a", "b"], ["b", "c"]], colors(["a", "b", "c", "d"]))
    bars = [line.get_xdata().tolist() for line in figure.axes[0].get_lines() if line.get_linewidth() > 2]
    assert bars == [[1.5, 2.0], [2.0, 2.5]]
    assert problems(figure) == []


def test_the_forest_plot_marks_who_clearly_beats_the_controls():
    strong, weak = (0.05, 0.95), (0.5, 0.5)
    predictions = endurance_study(200, strong=strong, weak=weak, random=(0.5, 0.5))
    ranking, pairs = (make(predictions, ["random"]) for make in (statistics.ranking, statistics.pairwise))
    (standing,) = statistics.standings(ranking, pairs, (), 0.02).values()
    figure = forest(standing, colors(["strong", "weak", "random"], ["random"]), 0.95)
    faces = {line.get_label(): line.get_markerfacecolor() for line in figure.axes[0].get_lines()}
    assert faces["weak"] == "white"
    assert faces["strong"] != "white"
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == ["1  strong", "2  weak"]  # controls are lines, not rows
    assert figure.axes[0].texts[0].get_text() == "random"
    assert figure.get_suptitle() == "Imputed with linear, no retraining, 200 images"


def test_the_slope_chart_words_agreement_by_its_interval():
    rows = (RankRow("IG", 1, 2, 1, 2), RankRow("GB", 2, 1, 2, 1))
    panel = RankPanel("no-retrain", "fixed", rows, {"removed": Agreement(-0.4, -0.7, -0.1)})
    figure = slopes([panel], LOOKS, ["IG"], "a headline")
    assert figure.axes[0].get_title() == "Imputed with fixed, no retraining\nthe two orders disagree"
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines["IG"].get_ydata().tolist() == [1, 2]
    assert lines["IG"].get_linewidth() > lines["GB"].get_linewidth()
    assert lines["IG"].get_marker() != lines["GB"].get_marker()
    unknown = Agreement(0.11, -0.56, 0.98)
    wide = panel._replace(evaluator="warm-start", agreement={"kept": unknown, "removed": unknown})
    assert "not established" in wide.words
    assert problems(slopes([wide, wide], LOOKS, ["IG"], "a headline")) == []


def test_the_heat_map_has_each_pair_once_with_its_interval():
    table = statistics.agreement_intervals(settings_study(), [])
    figure = agreement_map(table)
    low, high = table.loc[table["pairing"] == "removed", ["low", "high"]].iloc[0]
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["0", f"[{short(low)}, {short(high)}]"]  # +1 at .2, −1 at .4
    assert len(agreement_map(table, "kendall").axes[0].texts) == 1  # without an interval
    assert "keeps as much" in agreement_map(table, pairing="kept").get_supxlabel()


def test_what_was_frozen_before_drawing_is_frozen_after_it_and_nothing_else():
    with _only_new_garbage():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
    gc.freeze()
    try:
        with _only_new_garbage():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
