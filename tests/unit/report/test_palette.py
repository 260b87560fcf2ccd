from itertools import combinations

import numpy as np
import pytest

import references
from roadworthy.report.palette import MARKERS, colors

PAPER = ["IG", "IG-SG", "IG-SQ", "IG-Var", "GB", "GB-SG", "GB-SQ", "GB-Var"]


def contrast(shade: str, ground: str) -> float:
    """That of WCAG 2: (lighter + .05) / (darker + .05), relative luminances."""

    def luminance(color: str) -> float:
        parts = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    dark, light = sorted((luminance(shade), luminance(ground)))
    return (light + 0.05) / (dark + 0.05)


def test_color_and_marker_of_a_method_are_the_same_in_every_report():
    names = [*PAPER, *(f"method {k:02}" for k in range(20))]
    looks = colors(names, ["random", "edges"])
    assert colors(reversed(names), ["edges", "random"]) == looks
    for name in names:
        alone = colors([name, "another"])[name]
        assert (alone.color, alone.marker) == (looks[name].color, looks[name].marker)


def test_no_two_methods_look_the_same():
    names = [f"method {k:02}" for k in range(20)]
    looks = colors(names, ["random", "edges"]).values()
    assert len({(look.color, look.dash) for look in looks}) == 22
    assert len({(look.dark, look.dash) for look in looks}) == 22


def test_controls_are_gray_and_dashed():
    look = colors(["IG", "random"], ["random"])["random"]
    assert look.dash
    assert look.color[1:3] == look.color[3:5] == look.color[5:7]


def test_the_papers_methods_have_solid_lines_and_markers_of_their_own():
    looks = colors(PAPER)
    assert not any(look.dash for look in looks.values())
    assert sorted(look.marker for look in looks.values()) == sorted(MARKERS)


@pytest.mark.parametrize(("field", "ground"), [("color", "#ffffff"), ("dark", "#1d2127")])
def test_every_color_has_a_contrast_of_at_least_3_on_its_ground(field, ground):
    looks = colors([*PAPER, *(str(k) for k in range(200))], ["random"])
    assert len({look.color for look in looks.values()}) == 13  # all twelve and a gray
    assert min(contrast(getattr(look, field), ground) for look in looks.values()) >= 3


@pytest.mark.parametrize("field", ["color", "dark"])
@pytest.mark.parametrize("sight", ["normal", "protan", "deutan"])
def test_the_colors_of_the_papers_methods_are_distinguishable_for_color_blind_readers(field, sight):
    """12 in CIELAB: a difference of 2.3 is just noticeable side by side, but lines are apart."""
    seen = [references.seen_as(getattr(look, field), sight) for look in colors(PAPER).values()]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 12
