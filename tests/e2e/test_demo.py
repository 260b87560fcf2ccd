"""The demo from the command line, on fewer images than usual."""

from roadworthy.datasets import Digits


def test_the_demo_prints_a_ranking_and_writes_a_report(demo_run):
    lines = demo_run.lines
    accuracy = float(lines[0].rpartition(": ")[2].partition("%")[0])
    assert accuracy >= 95
    assert demo_run.errors == ""  # not a terminal: no progress bar
    linear = [line for line in lines if "│" in line][:15]  # 8 methods, 3 controls, 2 blurred and 2 inverted copies
    places = {name: row for row, line in enumerate(linear) for name in ("random", "inverted") if name in line}
    assert min(places.values()) >= 10  # the last of the inverted and random: near the end of 15
    page = demo_run.page.read_text()
    assert page.count('<svg class="chart"') == 2 * 2  # imputers × orders
    # Per image: itself, 4 to 6 leading maps, and 2 imputers × 2 orders × 9 fractions.
    pictures, images = page.count("data:image/png"), page.count('class="example"')
    assert images == 4
    assert images * (1 + 4 + 36) <= pictures <= images * (1 + 6 + 36)
    assert "http://" not in page
    assert "https://" not in page


def test_train_and_test_digits_do_not_overlap():
    train, test = Digits("train"), Digits("test")
    assert (len(train), len(test)) == (4000, 1000)
    assert not set(train.ids.tolist()) & set(test.ids.tolist())
