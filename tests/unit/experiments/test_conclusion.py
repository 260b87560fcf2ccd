"""The conclusion: whoever reads it alone, and no table, makes no wrong statement."""

import re
from html import unescape

import numpy as np
import pytest
import torch

import roadworthy as rw
import worlds
from predictions import BLIND, comparison, endurance_study
from roadworthy.core.results import Copy


def concluded(predictions, **facts):
    return comparison(predictions, **facts).conclusion()


# ── five prepared comparisons ────────────────────────────────────────────────────────────────────────────────────────
# A method's numbers are the fractions up to which images stay correct in MoRF and in LeRF, on average: (0.2, 0.8) is a
# good method, (0.5, 0.5) is random.

WEAK_CONTROLS = {"random": (0.5, 0.5), "edges": (0.48, 0.52), "center": (0.46, 0.54)}


@pytest.fixture(scope="module")
def clear_winner():
    return comparison(endurance_study(good=(0.2, 0.8), fair=(0.4, 0.6), poor=(0.45, 0.55), **WEAK_CONTROLS))


@pytest.fixture(scope="module")
def control_above_all():
    return comparison(
        endurance_study(good=(0.45, 0.55), fair=(0.47, 0.53), random=(0.5, 0.5), edges=(0.48, 0.52), center=(0.2, 0.8))
    )


@pytest.fixture(scope="module")
def two_leaders():
    return comparison(
        endurance_study(images=4000, one=(0.2, 0.8), two=(0.2, 0.8), poor=(0.45, 0.55), random=(0.5, 0.5))
    )


@pytest.fixture(scope="module")
def twelve_images():
    return comparison(
        endurance_study(images=12, one=(0.44, 0.56), two=(0.45, 0.55), random=(0.5, 0.5), center=(0.47, 0.53))
    )


@pytest.fixture(scope="module")
def not_above_center():
    """The best method is clearly ahead of the others, but center scores a little better."""
    return comparison(
        endurance_study(good=(0.3, 0.7), fair=(0.42, 0.58), poor=(0.45, 0.55), random=(0.5, 0.5), center=(0.295, 0.705))
    )


PREPARED = ("clear_winner", "control_above_all", "two_leaders", "twelve_images", "not_above_center")


def test_a_clear_winner_beats_all_methods_and_all_controls(clear_winner):
    conclusion = clear_winner.conclusion()
    assert conclusion.state == "CLEAR WINNER"
    expected = (
        "good is clearly better than the other 2 methods and the controls center, edges and random, on 400 images"
    )
    assert expected in conclusion.sentence
    assert "fair" not in conclusion.sentence


def test_a_control_above_all_methods_is_said_first_and_named(control_above_all):
    """Before: "good ranks first on 400 images, clearly ahead of every other method" on row 2, far below center."""
    conclusion = control_above_all.conclusion()
    assert conclusion.state == "NO METHOD BEATS THE CONTROLS"
    assert conclusion.sentence.startswith("The control center, which does not use the model, is clearly better than")
    table = control_above_all.ranking().set_index("method")["srg"]
    assert f"it scores {table['center']:.3f}" in conclusion.sentence
    assert f"the best of them, good, {table['good']:.3f}" in conclusion.sentence
    assert "good is clearly" not in str(conclusion)


def test_two_leaders_within_the_margin_are_tied(two_leaders):
    conclusion = two_leaders.conclusion()
    assert conclusion.state == "TIE"
    assert re.match(r"(one and two|two and one) are tied on 4,000 images", conclusion.sentence)
    most = float(re.search(r"at most (0\.\d+)", conclusion.sentence).group(1))
    pair = two_leaders.pairwise().query("method_a in ('one', 'two') and method_b in ('one', 'two')").iloc[0]
    assert pair["tie"]
    assert max(-pair["low"], pair["high"]) <= most < 0.02
    assert "Both are clearly better than the control random." in conclusion.sentence
    assert re.search(r"poor is clearly worse than (one|two)\.", conclusion.sentence)


def test_twelve_images_settle_nothing_and_the_sentence_says_how_many_would(twelve_images):
    conclusion = twelve_images.conclusion()
    assert conclusion.state == "NOT YET"
    assert "one has the best score of 2 methods, but on 12 images it is not clearly better than the controls" in (
        conclusion.sentence
    )
    pairs = twelve_images.pairwise().set_index(["method_a", "method_b"])["images_needed"]
    needed = max(pairs["one", "random"], pairs["one", "center"])
    # Two digits: shown as it is.
    assert f"About {needed:.0f} images would separate them, if the difference stays." in conclusion.sentence
    assert "clearly better than two" not in str(conclusion)


def test_a_lead_over_methods_only_is_no_clear_winner(not_above_center):
    """Before: "clearly ahead of every other method" under a control with a higher score."""
    conclusion = not_above_center.conclusion()
    assert not_above_center.ranking()["method"].tolist()[:2] == ["center", "good"]
    assert conclusion.state == "NOT YET"
    expected = (
        "good has the best score of 3 methods, but on 400 images it is not clearly better than pointing at the center "
        "of every image (the control center), which scores better"
    )
    assert expected in conclusion.sentence
    assert "first" not in str(conclusion)
    assert "clearly better than every" not in str(conclusion)


@pytest.mark.parametrize("name", PREPARED)
def test_every_output_has_the_same_conclusion_and_the_plain_accuracy(name, request, tmp_path):
    result = request.getfixturevalue(name)
    conclusion = result.conclusion()
    assert str(result).endswith(str(conclusion))
    assert str(conclusion).startswith(f"{conclusion.state}: {conclusion.sentence}\n- ")
    page, cell = result.report(tmp_path / "page.html").read_text(), result._repr_html_()
    for text in (page, cell):
        assert f"{conclusion.state}</span> {conclusion.sentence}" in unescape(text)
    for line in conclusion.details:
        assert line in unescape(page)
    for text in (str(result), page, cell):
        assert re.search(r"[Aa]ccuracy before removal: 100\.0 % \[\d+\.\d %, 100\.0 %\]", text)


@pytest.mark.parametrize("name", PREPARED)
def test_shares_of_resamples_are_called_that(name, request):
    text = str(request.getfixturevalue(name))
    assert "probability" not in text
    assert "100 % of resamples" not in text
    assert re.search(r"in (>?\d\d) % of resamples", text)


# ── conclusions, warnings and tables agree ───────────────────────────────────────────────────────────────────────────


def random_study(seed):
    """Methods and controls of random quality, on few or many images."""
    generator = np.random.default_rng(seed)
    names = ["a", "b", "c"][: 1 + seed % 3] + list(BLIND)[: seed % 4]
    # Between worlds with clear differences and worlds with almost none.
    spread = (0.25, 0.03, 0.001)[seed // 12]
    lead = 0.2 * (seed % 2)
    skill = {name: spread * generator.normal() + lead * (name not in BLIND) for name in names}
    images = int(generator.choice([3, 12, 200, 3000]))
    return endurance_study(images=images, seed=seed, **{name: (0.5 - s, 0.5 + s) for name, s in skill.items()})


@pytest.mark.parametrize("seed", range(36))
def test_no_conclusion_contradicts_the_intervals_of_the_pairs_or_a_warning(seed):
    predictions = random_study(seed)
    result = comparison(predictions)
    conclusion, warnings = result.conclusion(), " ".join(result.warnings()["text"])
    names = {point.method for point in predictions}
    methods, controls = sorted(names - set(BLIND)), sorted(names & set(BLIND))
    if len(names) == 1:
        assert conclusion.state == "NOT YET"
        assert "nothing to compare it with" in conclusion.sentence
        return
    bound = {}  # of one method's score minus another's, straight from the table
    for row in result.pairwise().itertuples():
        bound[row.method_a, row.method_b] = (row.low, row.high)
        bound[row.method_b, row.method_a] = (-row.high, -row.low)
    beats_all = [a for a in methods if all(bound[a, b][0] > 0 for b in names - {a})]
    assert (conclusion.state == "CLEAR WINNER") == bool(beats_all)
    if beats_all:
        assert conclusion.sentence.startswith(beats_all[0])
        assert not re.search(rf"(Not clearly better|beaten) [^:]*: [^.]*\b{beats_all[0]}\b", warnings)
    if conclusion.state == "NO METHOD BEATS THE CONTROLS":
        for method in methods:
            assert any(bound[method, control][0] <= 0 and bound[method, control][1] < 0.02 for control in controls)
        assert any(f"control {control}" in conclusion.sentence for control in controls)
        assert re.search(r"(Not clearly better than|beaten by) the controls? ", warnings)
    if conclusion.state == "TIE":
        tied = re.match(r"(.*?) are tied", conclusion.sentence).group(1)
        leaders = re.findall(r"\b[abc]\b", tied)
        assert len(leaders) > 1
        assert all(max(map(abs, bound[a, b])) < 0.02 for a in leaders for b in leaders if a != b)
        assert all(bound[a, control][0] > 0 for a in leaders for control in controls)
    assert ("No control was evaluated" in conclusion.sentence) == (not controls)
    for a, b in re.findall(
        r"\b([abc]), the only method, is clearly better than the control (\w+)", conclusion.sentence
    ):
        assert bound[a, b][0] > 0


def test_the_random_studies_reach_every_state():
    assert len({concluded(random_study(seed)).state for seed in range(36)}) == 4


# ── single cases ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_single_method_is_compared_with_the_controls():
    won = concluded(endurance_study(mine=(0.2, 0.8), random=(0.5, 0.5)))
    assert won.state == "CLEAR WINNER"
    assert won.sentence.startswith("mine, the only method, is clearly better than the control random")
    lost = concluded(endurance_study(mine=(0.5, 0.5), random=(0.2, 0.8)))
    assert lost.state == "NO METHOD BEATS THE CONTROLS"
    assert "is clearly better than mine, the only method, on 400 images" in lost.sentence


def test_a_single_method_without_controls_has_nothing_to_be_compared_with():
    alone = concluded(endurance_study(mine=(0.2, 0.8)))
    assert alone.state == "NOT YET"
    assert "mine is the only method and no control was evaluated" in alone.sentence


def test_controls_alone_rank_no_method():
    alone = concluded(endurance_study(random=(0.5, 0.5), center=(0.4, 0.6)))
    assert alone.state == "NOT YET"
    assert "only controls were evaluated" in alone.sentence


def test_without_controls_the_sentence_says_so():
    conclusion = concluded(endurance_study(good=(0.2, 0.8), bad=(0.5, 0.5)))
    assert conclusion.state == "CLEAR WINNER"
    assert conclusion.sentence == (
        "good is clearly better than the other method (bad), on 400 images. No control was evaluated."
    )


def twins(worse_every, better_every=10**9, images=4000):
    """A control, and a method that equals it but on every so many images, where it is worse or better in LeRF."""
    predictions = endurance_study(images=images, random=(0.5, 0.5))
    for point, each in list(predictions.items()):
        hits = each.correct.copy()
        if point.order == "lerf" and point.fraction > 0:
            hits[::worse_every], hits[1::better_every] = False, True
        twin = rw.Predictions(each.ids, each.labels, with_hits(each, hits), each.probability)
        predictions[point._replace(method="mine")] = twin
    return predictions


def test_a_method_that_gains_less_than_the_margin_over_a_control_does_not_beat_it():
    # They differ on 27 of 4,000 images, by at most 1: the standard error is below sqrt(27)/4000 = .0013.
    conclusion = concluded(twins(300, 300))
    assert conclusion.state == "NO METHOD BEATS THE CONTROLS"
    assert re.search(r"mine, the only method, gains at most 0\.00\d over the control random", conclusion.sentence)


def test_a_lead_below_the_margin_is_called_small():
    # On 4,000 images random loses about .4 of LeRF area on every 50th: .008, with standard error .0009.
    predictions = twins(50)
    swapped = {"mine": "random", "random": "mine"}
    conclusion = concluded({point._replace(method=swapped[point.method]): p for point, p in predictions.items()})
    assert conclusion.state == "CLEAR WINNER"
    assert re.search(r"Its lead over random is small: at most 0\.01\d\.", conclusion.sentence)


def test_equal_methods_are_a_tie_and_not_a_question_of_more_images():
    predictions = endurance_study(images=4000, a=(0.2, 0.8), random=(0.5, 0.5))
    twin = {point._replace(method="b"): p for point, p in predictions.items() if point.method == "a"}
    conclusion = concluded(predictions | twin)
    assert conclusion.state == "TIE"
    assert "images would" not in conclusion.sentence


def test_nearly_equal_scores_on_few_images_are_open_not_too_close_for_more_images():
    """The difference is 0 by accident: no number of images would separate equal scores, but more would show a tie."""
    predictions = endurance_study(images=400, a=(0.2, 0.8), random=(0.5, 0.5))
    turned = {
        # Images in reverse order: the same score, other images.
        point._replace(method="b"): rw.Predictions(p.ids, p.labels, with_hits(p, p.correct[::-1]), p.probability)
        for point, p in predictions.items()
        if point.method == "a"
    }
    conclusion = concluded(predictions | turned)
    assert conclusion.state == "NOT YET"
    assert conclusion.sentence.startswith("a and b share the best score of 2 methods on 400 images.")
    assert "ahead of" not in str(conclusion)
    assert re.search(r"about [\d,]+ images would show whether they lie within 0\.02", conclusion.sentence)
    assert "too small" not in conclusion.sentence


def with_hits(predictions, hits):
    return np.where(hits, predictions.labels, (predictions.labels + 1) % 4)


def test_copies_of_maps_neither_win_nor_count_as_controls_but_are_explained():
    predictions = endurance_study(a=(0.3, 0.7), a_blurred=(0.2, 0.8), random=(0.5, 0.5))
    conclusion = concluded(predictions, copies={"a blurred": Copy("a", "blurred")})
    assert conclusion.state == "CLEAR WINNER"
    assert conclusion.sentence == "a, the only method, is clearly better than the control random, on 400 images."
    assert any("a blurred (" in line and "not about a method" in line for line in conclusion.details)


def test_other_settings_have_their_own_state_and_a_disagreement_is_a_detail():
    predictions = endurance_study(good=(0.2, 0.8), bad=(0.5, 0.5), random=(0.5, 0.5)) | endurance_study(
        imputer="fixed", good=(0.45, 0.55), bad=(0.2, 0.8), random=(0.5, 0.5)
    )
    conclusion = concluded(predictions)
    assert conclusion.sentence.startswith("good is clearly better than the other method (bad)")
    assert conclusion.sentence.endswith(" (Setting: imputed with linear.)")
    assert any(
        line.startswith("Imputed with fixed: CLEAR WINNER. bad is clearly better") for line in conclusion.details
    )
    assert "In 1 of 2 settings another method has the best score: bad (imputed with fixed)." in conclusion.details
    other = concluded(predictions, preferred=("no-retrain", "fixed"))
    assert other.sentence.startswith("bad is clearly better")
    assert other.sentence.endswith(" (Setting: imputed with fixed.)")


def test_confidence_and_margin_apply_without_early_stopping():
    predictions = endurance_study(images=300, a=(0.2, 0.8), b=(0.22, 0.785), random=(0.5, 0.5))
    strict, loose = comparison(predictions, confidence=0.999), comparison(predictions, confidence=0.6)
    for table, low, high in (("ranking", "srg_low", "srg_high"), ("curves", "low", "high"), ("pairwise", "low", "high"),
                             ("per_class", "low", "high"), ("plain_accuracy", "low", "high")):  # fmt: skip
        wide, narrow = getattr(strict, table)(), getattr(loose, table)()
        assert (wide[high] - wide[low]).mean() > 1.2 * (narrow[high] - narrow[low]).mean(), table
    assert any("99.9 % confidence" in line for line in strict.conclusion().details)
    assert strict.conclusion().state == "NOT YET"
    assert loose.conclusion().state == "CLEAR WINNER"
    assert comparison(predictions, confidence=0.999, margin=0.2).conclusion().state == "TIE"


def test_a_conclusion_is_frozen():
    with pytest.raises(AttributeError):
        concluded(endurance_study(a=(0.2, 0.8), random=(0.5, 0.5))).state = "TIE"
    assert rw.Conclusion("TIE", "a and b are tied.") == rw.Conclusion("TIE", "a and b are tied.", ())


def test_a_model_that_is_not_above_chance_has_no_clear_winner_whatever_the_scores_say():
    # Maps of the labels: LeRF keeps what the label needs, so scores differ although the model knows nothing.
    world = worlds.quadrants(n=120)
    labels = world.labels[torch.from_numpy(np.random.default_rng(0).permutation(120))]
    with pytest.warns(rw.errors.LowAccuracyWarning):
        comparison = rw.compare(
            world.model, (world.images, labels), {"G": "gradient", "IG": "ig"}, fractions=(0.3, 0.6), progress=False
        )
    conclusion = comparison.conclusion()
    assert conclusion.state == "NOT YET"
    assert "not clearly above chance" in conclusion.sentence
