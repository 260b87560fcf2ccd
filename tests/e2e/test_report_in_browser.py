"""The page as a person meets it: opened from disk in Chromium, pointed at, typed at, on a phone, on paper."""

import html
import re
from itertools import pairwise

import pytest

import roadworthy as rw
import worlds

EVIL = "<img src=x onerror=alert(1)>"


class Visit:
    """A page that is open, and everything that went wrong while it was."""

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
def evil_page(tmp_path_factory):
    """A user whose names of methods and classes are markup."""
    world = worlds.quadrants(n=12)
    data = rw.datasets.Arrays(world.images, world.labels, classes=(EVIL, "</script>", "'\"&", "{{ 7 * 7 }}"))
    maps = {EVIL: world.truth, "</style><b>bold</b>": world.images.mean(dim=1)}
    comparison = rw.compare(world.model, data, maps, fractions=(0.3, 0.6), progress=False)
    return comparison.report(tmp_path_factory.mktemp("evil") / "page.html")


def test_it_opens_from_disk_without_a_request_and_without_a_complaint(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        loaded = {url for url in visit.requests if not url.startswith("data:")}
        assert loaded == {demo_run.page.as_uri()}
        assert visit.complaints == []
        assert "ranks first" in visit.page.inner_text(".prediction") or "not clearly" in visit.page.inner_text(
            ".prediction"
        )


def test_the_policy_forbids_scripts_that_are_not_the_pages_own(browser, demo_run, tmp_path):
    # The same page with a foreign script and a picture from the network put in.
    foreign = '<script>document.title = "taken"</script><img src="https://example.org/x.png">'
    page = tmp_path / "foreign.html"
    page.write_text(demo_run.page.read_text().replace("<main>", f"<main>{foreign}"))
    with Visit(browser, page) as visit:
        assert visit.page.title() != "taken"
        assert sum("Content Security Policy" in text for text in visit.complaints) == 2


def test_a_method_is_switched_off_everywhere_and_on_again_by_the_keyboard(browser, demo_run):
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


def test_hovering_a_dot_shows_its_value(browser, demo_run):
    # What the file itself says of a point, before any script has run.
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


def test_the_arrow_keys_walk_through_a_chart(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        chart = visit.page.locator(".chart").first
        chart.focus()
        said = []
        for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
            chart.press(key)
            said.append(visit.page.inner_text("#tip"))
        names, shares = zip(*(re.match(r"(.*), (\d+)% removed", text).groups() for text in said), strict=True)
        assert shares == ("0", "10", "10", "0")
        assert names[0] == names[1]
        assert names[1] != names[2] == names[3]
        chart.press("Escape")
        assert visit.page.inner_text("#tip") == ""


STICKING_OUT = """() => {
  const inside = (one) => { for (let up = one; up; up = up.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(up).overflowX)) return true; return false; };
  return [...document.querySelectorAll("main *, header *")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5) && !inside(one);
  }).map((one) => one.outerHTML.slice(0, 80));
}"""


@pytest.mark.parametrize("width", [400, 320, 1280])
def test_nothing_sticks_out_at_any_width(browser, demo_run, evil_page, width):
    for path in (demo_run.page, evil_page):
        with Visit(browser, path, viewport={"width": width, "height": 800}) as visit:
            assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= width
            assert visit.page.evaluate(STICKING_OUT) == []


def test_markup_in_names_stays_text(browser, evil_page):
    with Visit(browser, evil_page) as visit:
        assert visit.complaints == []
        assert visit.page.locator('img[src="x"]').count() == 0
        assert visit.page.locator("main b").count() == 0
        assert visit.page.get_by_role("button", name=EVIL, exact=True).is_visible()
        assert visit.page.locator("#classes").get_by_text("class {{ 7 * 7 }}", exact=True).count() > 0
        assert all(url.startswith(("file:", "data:")) for url in visit.requests)


def test_without_scripts_it_still_reads(browser, demo_run):
    with Visit(browser, demo_run.page, java_script_enabled=False) as visit:
        assert visit.page.locator(".chart .line").first.is_visible()
        assert visit.page.locator(".key").first.is_disabled()  # a legend, no switches
        assert visit.page.locator(".toggle-all").first.is_hidden()


def test_light_and_dark_follow_the_reader(browser, demo_run):
    paper = {}
    for scheme in ("light", "dark"):
        with Visit(browser, demo_run.page, color_scheme=scheme) as visit:
            paper[scheme] = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}


def test_every_picture_chart_and_table_has_words_for_those_who_cannot_see_it(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        for selector, attribute in (("img", "alt"), (".chart", "aria-label"), (".wide", "aria-label")):
            all_have = f"(all) => all.length && all.every((one) => (one.getAttribute('{attribute}') || '').length > 2)"
            assert visit.page.eval_on_selector_all(selector, all_have), selector
        headings = visit.page.locator("h1, h2, h3, h4").evaluate_all(
            "(all) => all.map((one) => Number(one.tagName[1]))"
        )
        assert headings[0] == 1
        assert all(b <= a + 1 for a, b in pairwise(headings))  # no level is skipped
