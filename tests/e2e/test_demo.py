"""The demo from the command line, on fewer images than usual."""

import re

from roadworthy.datasets import Digits


def test_the_demo_prints_a_ranking_and_ends_with_the_conclusion(demo_run):
    lines = demo_run.lines
    assert lines[0].startswith("A ResNet-20 on 24 CIFAR-10 test images.")
    start = lines.index("Imputed with linear".ljust(len(lines[lines.index("") + 1])))
    linear = lines[start + 3 : start + 18]  # 8 methods, 3 controls, 2 blurred and 2 inverted copies
    assert [re.match(r" ?(\d+|–) ", line)[1] for line in linear] == [*"12345678", *7 * "–"]  # controls have no rank
    inverted = [row for row, line in enumerate(linear) if "inverted" in line]
    assert min(inverted) >= 12  # copies of the best methods, reversed: the last of the 7 controls, or before random
    assert any(line.startswith("Self-test") for line in lines)  # by default
    states = ("CLEAR WINNER", "TIE", "NO METHOD BEATS THE CONTROLS", "NOT YET")
    last = max(number for number, line in enumerate(lines) if line in states)
    assert len(lines) - last <= 6  # a sentence or two follow, and nothing else
    assert max(map(len, lines[1:])) <= 80
    for line in demo_run.errors.splitlines():  # not a terminal: no bar, on a slow machine a line now and then
        assert line.startswith("comparing: ")


def test_the_demo_writes_a_page_that_needs_no_network(demo_run):
    page = demo_run.page.read_text()
    assert "<svg" in page
    assert "data:image/png" in page
    assert "http://" not in page
    assert "https://" not in page


def test_train_and_test_digits_do_not_overlap():
    train, test = Digits("train"), Digits("test")
    assert (len(train), len(test)) == (4000, 1000)
    assert not set(train.ids.tolist()) & set(test.ids.tolist())
