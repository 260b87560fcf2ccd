"""The progress bar is shown in interactive sessions, after two seconds, and nowhere else."""

import io
import time

from roadworthy.core import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, patience, show=True):
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    with progress.progress_bar("comparing", 4, show) as advance:
        for _ in range(4):
            advance(1)
            time.sleep(0.02)  # the bar is started by a timer thread
    return stream.getvalue()


def test_a_terminal_shows_a_bar_after_the_delay(monkeypatch):
    assert "comparing" in shown(monkeypatch, Terminal(), patience=0)


def test_quick_work_shows_nothing(monkeypatch):
    assert shown(monkeypatch, Terminal(), patience=60).strip() == ""


def test_nothing_is_shown_in_a_file_or_if_disabled(monkeypatch):
    assert shown(monkeypatch, io.StringIO(), patience=0) == ""
    assert shown(monkeypatch, Terminal(), patience=0, show=False) == ""
