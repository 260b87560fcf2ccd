"""Progress: a bar on a terminal, after two seconds; elsewhere a line now and then."""

import io
import time

import pytest

from roadworthy.core import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, patience, show=True, title="comparing", term="xterm"):
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setenv("TERM", term)
    with progress.progress_bar(title, 4, show) as advance:
        for _ in range(4):
            advance(1)
            time.sleep(0.02)  # the bar is started by a timer thread
    return stream.getvalue()


def test_a_terminal_shows_a_bar_after_the_delay(monkeypatch):
    assert "comparing" in shown(monkeypatch, Terminal(), patience=0)


def test_quick_work_shows_nothing(monkeypatch):
    assert shown(monkeypatch, Terminal(), patience=60).strip() == ""
    assert shown(monkeypatch, io.StringIO(), patience=0) == ""


def test_nothing_is_shown_if_disabled(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    assert shown(monkeypatch, Terminal(), patience=0, show=False) == ""
    assert shown(monkeypatch, io.StringIO(), patience=0, show=False) == ""


def test_a_title_is_not_markup_and_sends_no_control_characters(monkeypatch):
    assert "[red]IG\\x1b" in shown(monkeypatch, Terminal(), patience=0, title="[red]IG\x1b")


class Clock:
    """Stands in for the module `time`: a second passes at every look."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1
        return self.now


def test_a_log_file_gets_a_line_now_and_then(monkeypatch):
    # The clock stands at 1 at the start, and at s + 1 when second s is over. Lines: 30 s after the start, then 60 s,
    # 120 s, 240 s and 480 s later, in all after 30, 90, 210, 450 and 930 s; the next, 600 s later, is after the end.
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "time", Clock())
    with progress.progress_bar("training (epochs)", 1000) as advance:
        for _ in range(1000):
            advance(1)
    assert stream.getvalue().splitlines() == [
        "training (epochs) (30 of 1,000, 30 s so far)",
        "training (epochs) (90 of 1,000, 2 min so far)",
        "training (epochs) (210 of 1,000, 4 min so far)",
        "training (epochs) (450 of 1,000, 8 min so far)",
        "training (epochs) (930 of 1,000, 16 min so far)",
    ]


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    assert shown(monkeypatch, Terminal(), 0, term="dumb").startswith("comparing (1 of 4")


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_work_goes_on_where_nothing_can_be_written(monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "_is_interactive", lambda: False)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    with progress.progress_bar("comparing", 4) as advance:
        advance(1)
