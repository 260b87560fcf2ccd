"""Rebuild the pictures of README and docs, and the sample report, from one run of the demo: `make pictures`.

The run is kept in runs/demo, so a second call only draws. Screenshots need Chromium and Playwright; without them the
old ones stay.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

import roadworthy as rw
from roadworthy.experiments.comparison import Comparison
from roadworthy.report.palette import colors

DOCS = Path(__file__).resolve().parents[1]
LIGHT, DARK = "#FFFFFF", "#16181D"
"""backgrounds"""
_ON_DARK = {"black": "#E8E8E8", "#000000": "#E8E8E8", "#5A5A5A": "#B4B4B4"}
VIEWS = {
    "page-light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "page-dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "page-phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=DOCS.parent / "runs" / "demo", help="run directory of the demo")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for the files")
    arguments = parser.parse_args()
    comparison = without_machine(rw.run(DOCS.parent / "plans" / "demo.toml", store=arguments.store))
    for path in [*pictures(comparison, arguments.out / "pictures"), *pages(comparison, arguments.out)]:
        print(f"{path}  {path.stat().st_size / 1e3:,.0f} kB")  # noqa: T201


def without_machine(comparison: Comparison) -> Comparison:
    """The machine and its times would change with everyone who rebuilds the report."""
    kept = {name: value for name, value in comparison.results.manifest.items() if name not in ("machine", "durations")}
    return replace(comparison, results=replace(comparison.results, manifest=kept, runtimes=()))


def pictures(comparison: Comparison, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    looks = colors({point.method for point in comparison.predictions}, comparison.controls)
    return [
        written(comparison.plot.ranks(), folder / "ranks-by-imputer.svg"),
        written(on_dark(comparison.plot.ranks(), looks), folder / "ranks-by-imputer-dark.svg", DARK),
        written(comparison.plot.examples(), folder / "how-it-works.png"),
        written(comparison.plot.ranking(), folder / "ranking.svg"),
        written(comparison.plot.curves(), folder / "curves.svg"),
        written(comparison.plot.agreement(), folder / "agreement.svg"),
    ]


def on_dark(figure: Figure, looks: dict) -> Figure:
    """The same figure with the colors that the methods have on a dark page."""
    dark = _ON_DARK | {look.color: look.dark for look in looks.values()}
    for artist in figure.findobj(lambda each: isinstance(each, Line2D | Text)):
        artist.set_color(dark.get(artist.get_color(), artist.get_color()))
    return figure


def written(figure: Figure, path: Path, background: str = LIGHT) -> Path:
    """SVG with text as outlines: it looks the same where the font is missing."""
    figure.set_facecolor(background)
    for axes in figure.axes:
        axes.set_facecolor(background)
    options = {"dpi": 170} if path.suffix == ".png" else {"metadata": {"Date": None}}
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "roadworthy"}):
        figure.savefig(path, facecolor=background, **options)
    return path


def pages(comparison: Comparison, folder: Path) -> list[Path]:
    """The sample report and screenshots of its first screen."""
    report = comparison.report(folder / "sample-report.html")
    return [report, *screenshots(report, folder)]


def screenshots(report: Path, folder: Path) -> list[Path]:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no Chromium or no Playwright: the screenshots stay as they are")  # noqa: T201
        return []
    paths = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, view in VIEWS.items():
            page = browser.new_page(**view)
            page.goto(report.resolve().as_uri())
            paths.append(folder / f"{name}.png")
            paths[-1].write_bytes(page.screenshot(animations="disabled"))
            page.close()
        browser.close()
    return paths


if __name__ == "__main__":
    main()
