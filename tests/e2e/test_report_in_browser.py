"""The report in a browser: opened from disk, with mouse and keyboard, on narrow screens, without scripts."""

import html
import re
from itertools import pairwise

import pytest

import roadworthy as rw
import worlds

MARKUP = "<img src=x onerror=alert(1)>"


class Visit:
    """An open page, with its requests and everything that it complained about."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.goto(path.as_uri())
        self.page.wait_for_load_state("load")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture(scope="module")
def markup_page(tmp_path_factory):
    """A report on methods and classes whose names are markup."""
    world = worlds.quadrants(n=12)
    data = rw.datasets.Arrays(world.images, world.labels, classes=(MARKUP, "</script>", "'\"&", "{{ 7 * 7 }}"))
    maps = {MARKUP: world.truth, "</style><b>bold</b>": world.images.mean(dim=1)}
    comparison = rw.compare(world.model, data, maps, fractions=(0.3, 0.6), progress=False)
    return comparison.report(tmp_path_factory.mktemp("markup") / "page.html")


def test_it_opens_from_disk_without_a_request_and_without_an_error(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        loaded = {url for url in visit.requests if not url.startswith("data:")}
        assert loaded == {demo_run.page.as_uri()}
        assert visit.complaints == []
        assert len(visit.page.inner_text(".conclusion")) > 20


def test_its_policy_blocks_foreign_scripts_and_images(browser, demo_run, tmp_path):
    # The same page with a foreign script and an image from the network.
    foreign = '<script>document.title = "taken"</script><img src="https://example.org/x.png">'
    page = tmp_path / "foreign.html"
    page.write_text(demo_run.page.read_text().replace("<main>", f"<main>{foreign}"))
    with Visit(browser, page) as visit:
        assert visit.page.title() != "taken"
        assert sum("Content Security Policy" in text for text in visit.complaints) == 2


def test_a_method_can_be_hidden_in_all_charts_and_shown_again_by_the_keyboard(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        key = visit.page.get_by_role("button", name="IG-SG", exact=True)
        lines = visit.page.locator(f'.line[data-m="{key.get_attribute("data-m")}"]')
        shown = [lines.nth(i).is_visible() for i in range(lines.count())]
        assert shown == [True] * 4  # 2 imputers × 2 orders
        key.click()
        assert key.get_attribute("aria-pressed") == "false"
        assert not any(lines.nth(i).is_visible() for i in range(4))
        assert visit.page.locator(".line:not(.off)").count() == 14 * 4  # of 15 methods and controls
        key.press("Space")
        assert key.get_attribute("aria-pressed") == "true"
        assert all(lines.nth(i).is_visible() for i in range(4))
        visit.page.get_by_role("button", name="Without controls").click()
        assert visit.page.locator(".line:not(.off)").count() == 8 * 4


def test_hovering_over_a_point_shows_its_value(browser, demo_run):
    # The titles of the points in the file, before any script has run.
    texts = [
        html.unescape(text) for text in re.findall(r"<title>([^<]*removed[^<]*)</title>", demo_run.page.read_text())
    ]
    with Visit(browser, demo_run.page) as visit:
        points = visit.page.locator(".chart").first.locator("circle")
        last = points.last
        last.scroll_into_view_if_needed()
        box = last.bounding_box()
        visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        shown = visit.page.inner_text("#tip")
        assert shown in texts
        assert re.search(r"90% removed: \d+\.\d% \[\d+\.\d%, \d+\.\d%\]", shown)
        at = visit.page.locator("#tip").bounding_box()
        assert abs(at["x"] - box["x"]) < 300
        visit.page.mouse.move(2, 2)
        assert visit.page.inner_text("#tip") == ""


def test_the_arrow_keys_move_through_a_chart(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        chart = visit.page.locator(".chart").first
        chart.focus()
        texts = []
        for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
            chart.press(key)
            texts.append(visit.page.inner_text("#tip"))
        names, fractions = zip(*(re.match(r"(.*), (\d+)% removed", text).groups() for text in texts), strict=True)
        assert fractions == ("0", "10", "10", "0")
        assert names[0] == names[1]
        assert names[1] != names[2] == names[3]
        chart.press("Escape")
        assert visit.page.inner_text("#tip") == ""


OVERFLOWING = """() => {
  const inside = (element) => { for (let up = element; up; up = up.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(up).overflowX)) return true; return false; };
  return [...document.querySelectorAll("main *, header *")].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5) && !inside(element);
  }).map((element) => element.outerHTML.slice(0, 80));
}"""


@pytest.mark.parametrize("width", [400, 320, 1280])
def test_nothing_overflows_at_any_width(browser, demo_run, markup_page, width):
    for path in (demo_run.page, markup_page):
        with Visit(browser, path, viewport={"width": width, "height": 800}) as visit:
            assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= width
            assert visit.page.evaluate(OVERFLOWING) == []


def test_markup_in_names_stays_text(browser, markup_page):
    with Visit(browser, markup_page) as visit:
        assert visit.complaints == []
        assert visit.page.locator('img[src="x"]').count() == 0
        assert visit.page.locator("main b").count() == 0
        assert visit.page.get_by_role("button", name=MARKUP, exact=True).is_visible()
        assert visit.page.locator("#classes").get_by_text("class {{ 7 * 7 }}", exact=True).count() > 0
        assert all(url.startswith(("file:", "data:")) for url in visit.requests)


def test_it_can_be_read_without_scripts(browser, demo_run):
    with Visit(browser, demo_run.page, java_script_enabled=False) as visit:
        assert visit.page.locator(".chart .line").first.is_visible()
        assert visit.page.locator(".key").first.is_disabled()  # a legend, without buttons
        assert visit.page.locator(".toggle-all").first.is_hidden()


def test_light_and_dark_follow_the_system(browser, demo_run):
    backgrounds = {}
    for scheme in ("light", "dark"):
        with Visit(browser, demo_run.page, color_scheme=scheme) as visit:
            backgrounds[scheme] = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert backgrounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}


def test_every_image_chart_and_table_has_a_text_for_screen_readers(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        for selector, attribute in (("img", "alt"), (".chart", "aria-label"), (".wide", "aria-label")):
            all_have = (
                f"(all) => all.length && all.every((element) => (element.getAttribute('{attribute}') || '').length > 2)"
            )
            assert visit.page.eval_on_selector_all(selector, all_have), selector
        headings = visit.page.locator("h1, h2, h3, h4").evaluate_all(
            "(all) => all.map((element) => Number(element.tagName[1]))"
        )
        assert headings[0] == 1
        assert all(b <= a + 1 for a, b in pairwise(headings))  # no level is skipped
