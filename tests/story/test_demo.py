"""The demo from the command line, in a folder of its own, on fewer images than usual."""

import subprocess
import sys

from roadworthy.datasets import Digits


def test_the_demo_prints_a_ranking_and_writes_a_page(tmp_path):
    words = [sys.executable, "-m", "roadworthy", "demo", "--images", "24", "--out", str(tmp_path / "demo.html")]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    accuracy = float(lines[0].rpartition(": ")[2].partition("%")[0])
    assert accuracy >= 95
    assert result.stderr == ""  # not a terminal: no progress bar
    linear = [line for line in lines if "│" in line][:15]  # 8 methods, 3 controls, 2 blurred and 2 inverted copies
    places = {name: row for row, line in enumerate(linear) for name in ("random", "inverted") if name in line}
    assert min(places.values()) >= 10  # the last of the inverted and random: near the end of 15
    page = (tmp_path / "demo.html").read_text()
    assert page.count("<svg") == 2  # a figure per imputer
    assert page.count("data:image/png") == 4 * 2 * 7  # images, imputers, original + map + five fractions
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


def test_train_and_test_digits_do_not_overlap():
    train, test = Digits("train"), Digits("test")
    assert (len(train), len(test)) == (4000, 1000)
    assert not set(train.ids.tolist()) & set(test.ids.tolist())
