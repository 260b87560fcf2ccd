"""Fixtures that several files share: a run of the demo, and a browser."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock


class DemoRun(NamedTuple):
    lines: list[str]
    errors: str
    page: Path


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The demo, run from the command line in its own folder, on fewer images than usual; once for all workers."""
    folder = shared_folder(tmp_path_factory) / "demo"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            run_demo(tmp_path_factory.mktemp("demo")).rename(folder)
    return DemoRun(
        (folder / "stdout.txt").read_text().splitlines(), (folder / "stderr.txt").read_text(), folder / "demo.html"
    )


def run_demo(folder):
    command = [sys.executable, "-m", "roadworthy", "demo", "--images", "24", "--out", "demo.html"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (folder / "stdout.txt").write_text(result.stdout)
    (folder / "stderr.txt").write_text(result.stderr)
    return folder


def shared_folder(tmp_path_factory):
    """The temporary folder of this session, above those of its workers."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium: Playwright need not download its own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install 'roadworthy[dev]'")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not chromium:
        pytest.skip("no browser: these tests open the report in Chromium; install it (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
