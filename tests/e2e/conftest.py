"""What several stories share: the demo's page, and a browser to look at pages with."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest


class DemoRun(NamedTuple):
    lines: list[str]
    errors: str
    page: Path


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The demo from the command line, in a folder of its own, on fewer images than usual."""
    folder = tmp_path_factory.mktemp("demo")
    words = [sys.executable, "-m", "roadworthy", "demo", "--images", "24", "--out", "demo.html"]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return DemoRun(result.stdout.splitlines(), result.stderr, folder / "demo.html")


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium; Playwright's own is not asked for."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install 'roadworthy[dev]'")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not found:
        pytest.skip("no browser: these tests look at the page in Chromium; install it (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()
