"""The report in a browser: opened from disk, with mouse and keyboard, on narrow screens, without scripts."""

import html
import re
from itertools import pairwise
from xml.etree import ElementTree

import pandas as pd
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
    page.write_text(demo_run.page.read_text().replace("<body>", f"<body>{foreign}"))
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


def values_at(page_text, chart, fraction):
    """What the file says about a chart at a fraction, before any script has run: method to value."""
    svg = re.findall(r'<svg class="chart".*?</svg>', page_text, flags=re.DOTALL)[chart]
    titles = re.findall(rf"<title>([^<]*), {fraction}% removed: ([^<]*)</title>", svg)
    return {html.unescape(name): value for name, value in titles}


def shown_values(page):
    """The rows of the crosshair's list, from top to bottom."""
    rows = page.locator("#tip li")
    return [
        (rows.nth(k).locator("span").inner_text(), rows.nth(k).locator("b").inner_text()) for k in range(rows.count())
    ]


def place_in(chart, fraction, page):
    """Where a fraction is in a chart, in pixels of the window."""
    x = float(chart.locator(f'.point[data-f="{fraction}%"]').first.get_attribute("data-x"))
    width = float(chart.get_attribute("viewBox").split()[2])
    box = chart.bounding_box()
    return box["x"] + x / width * box["width"], box["y"] + box["height"] / 2


def test_hovering_lists_all_methods_at_the_nearest_fraction_in_the_order_of_the_chart(browser, demo_run):
    expected = values_at(demo_run.page.read_text(), 0, 50)
    assert len(expected) > 8
    with Visit(browser, demo_run.page) as visit:
        chart = visit.page.locator(".chart").first
        chart.scroll_into_view_if_needed()
        x, y = place_in(chart, 50, visit.page)
        visit.page.mouse.move(x + 4, y)
        assert visit.page.inner_text("#tip h4") == "50% removed"
        shown = shown_values(visit.page)
        assert dict(shown) == expected
        accuracies = [float(value.split("%")[0]) for _, value in shown]
        assert accuracies == sorted(accuracies, reverse=True)
        tip = visit.page.locator("#tip").bounding_box()
        assert tip["x"] >= 0
        assert tip["x"] + tip["width"] <= 1280
        visit.page.mouse.move(2, 2)
        assert visit.page.inner_text("#tip") == ""
        assert visit.complaints == []


def test_hidden_methods_are_not_listed(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        visit.page.get_by_role("button", name="Without controls").click()
        chart = visit.page.locator(".chart").first
        chart.focus()
        chart.press("ArrowRight")
        assert len(shown_values(visit.page)) == 8


def test_a_touch_lists_the_values_until_the_next_touch_elsewhere(browser, demo_run):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with Visit(browser, demo_run.page, **phone) as visit:
        chart = visit.page.locator(".chart").first
        chart.evaluate("(chart) => { document.documentElement.style.scrollBehavior = 'auto'; "
                       "window.scrollTo(0, chart.getBoundingClientRect().top + window.scrollY - 400); }")  # fmt: skip
        x, y = place_in(chart, 50, visit.page)
        visit.page.touchscreen.tap(x, y)
        assert visit.page.inner_text("#tip h4") == "50% removed"
        tip, box = visit.page.locator("#tip").bounding_box(), chart.bounding_box()
        assert (
            tip["y"] >= box["y"] + box["height"] or tip["y"] + tip["height"] <= box["y"]
        )  # it does not hide the chart
        assert tip["x"] + tip["width"] <= 390
        visit.page.touchscreen.tap(5, box["y"] - 30)
        assert visit.page.inner_text("#tip") == ""
        assert visit.complaints == []


def test_the_arrow_keys_move_through_fractions_and_methods(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        chart = visit.page.locator(".chart").first
        chart.focus()
        fractions, names = [], []
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "End"):
            chart.press(key)
            fractions.append(visit.page.inner_text("#tip h4").split("%")[0])
            near = visit.page.locator("#tip li.near span")
            names.append(near.inner_text() if near.count() else None)
            spoken = visit.page.inner_text("#live")
            assert spoken.startswith(f"{fractions[-1]}% removed: {names[-1] or ''}")
        assert fractions == ["0", "10", "10", "10", "0", "90"]
        assert names[:2] == [None, None]
        assert names[2] != names[3] == names[4] == names[5]
        chart.press("Escape")
        assert visit.page.inner_text("#tip") == ""


def test_examples_are_filtered_by_class_and_by_right_or_wrong(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        examples = visit.page.locator(".example")
        number = examples.count()
        classes = examples.evaluate_all("(all) => all.map((element) => element.dataset.class)")
        assert number > 4
        visit.page.locator("#filter-class").select_option(classes[0])
        visible = [k for k in range(number) if examples.nth(k).is_visible()]
        assert visible == [k for k in range(number) if classes[k] == classes[0]]
        assert visit.page.inner_text("#filter-count") == f"{len(visible)} of {number} shown"
        visit.page.locator("#filter-class").select_option("")
        visit.page.locator("#filter-answer").evaluate(
            "(select) => { select.value = 'wrong'; select.dispatchEvent(new Event('change', { bubbles: true })); }"
        )
        wrong = examples.evaluate_all("(all) => all.filter((element) => element.dataset.answer === 'wrong').length")
        assert visit.page.inner_text("#filter-count") == f"{wrong} of {number} shown"
        assert visit.page.locator(".example:visible").count() == wrong


def test_tables_and_charts_can_be_saved_without_a_request_or_a_message(browser, demo_run, tmp_path):
    with Visit(browser, demo_run.page) as visit:
        before = len(visit.requests)
        with visit.page.expect_download() as table:
            visit.page.get_by_role("link", name="curves as CSV").click()
        table.value.save_as(tmp_path / "curves.csv")
        curves = pd.read_csv(tmp_path / "curves.csv")
        assert table.value.suggested_filename == "roadworthy-curves.csv"
        assert set(curves["imputer"]) == {"linear", "fixed"}
        assert curves["accuracy"].between(0, 1).all()
        for button, lines in (("scores as SVG", 8), ("curves imputed with linear MoRF as SVG", 14)):
            if lines == 14:
                visit.page.get_by_role("button", name="IG-SG", exact=True).click()  # hidden lines are not saved
            with visit.page.expect_download() as chart:
                visit.page.get_by_role("button", name=button, exact=True).click()
            chart.value.save_as(tmp_path / "chart.svg")
            svg = ElementTree.parse(tmp_path / "chart.svg").getroot()
            assert svg.tag == "{http://www.w3.org/2000/svg}svg"
            colored = [
                group for group in svg.iter("{http://www.w3.org/2000/svg}g") if group.get("stroke", "").startswith("#")
            ]
            assert len(colored) == lines
            assert not any("class" in element.attrib or "style" in element.attrib for element in svg.iter())
        assert visit.complaints == []
        assert [url for url in visit.requests[before:] if not url.startswith(("blob:", "data:"))] == []


def test_a_saved_chart_looks_the_same_alone(browser, demo_run, tmp_path):
    """Its colors are attributes: nothing of it depends on the page's style sheet."""
    with Visit(browser, demo_run.page, color_scheme="light") as visit:
        with visit.page.expect_download() as chart:
            visit.page.get_by_role("button", name="scores as SVG", exact=True).click()
        chart.value.save_as(tmp_path / "chart.svg")
        paint = "(all) => all.map((element) => getComputedStyle(element).stroke)"
        inside = visit.page.locator(".forest .interval > line").evaluate_all(paint)
    with Visit(browser, tmp_path / "chart.svg") as alone:
        groups = alone.page.locator("g[stroke] > line").evaluate_all(paint)
    assert len(set(inside)) == 8
    assert groups == inside


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
        assert visit.page.locator("#filter-class").locator("option", has_text="{{ 7 * 7 }}").count() == 1
        assert all(url.startswith(("file:", "data:")) for url in visit.requests)


def test_it_can_be_read_without_scripts(browser, demo_run):
    with Visit(browser, demo_run.page, java_script_enabled=False) as visit:
        assert visit.page.locator(".chart .line").first.is_visible()
        assert visit.page.locator(".key").first.is_disabled()  # a legend, without buttons
        assert visit.page.locator(".toggle-all").first.is_hidden()
        assert visit.page.locator("#filter").is_hidden()
        assert visit.page.locator(".save-svg").first.is_hidden()
        assert visit.page.get_by_role("link", name="curves as CSV").is_visible()


def test_light_and_dark_follow_the_system(browser, demo_run):
    backgrounds = {}
    for scheme in ("light", "dark"):
        with Visit(browser, demo_run.page, color_scheme=scheme) as visit:
            backgrounds[scheme] = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert backgrounds == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}


def test_every_image_chart_and_table_has_a_text_for_screen_readers(browser, demo_run):
    with Visit(browser, demo_run.page) as visit:
        for selector, attribute in (("img", "alt"), ("svg[role=img]", "aria-label"), (".wide", "data-label")):
            texts = visit.page.eval_on_selector_all(
                selector, f"(all) => all.map((element) => element.getAttribute('{attribute}') || '')"
            )
            assert texts, selector
            assert all(len(text) > 2 for text in texts), selector
            assert len(set(texts)) == len(texts), selector
        headings = visit.page.locator("h1, h2, h3, h4").evaluate_all(
            "(all) => all.map((element) => Number(element.tagName[1]))"
        )
        assert headings[0] == 1
        assert all(b <= a + 1 for a, b in pairwise(headings))  # no level is skipped
        rows = visit.page.locator("tbody tr").evaluate_all("(all) => all.map((row) => row.firstElementChild.outerHTML)")
        assert rows
        assert all(row.startswith('<th scope="row"') for row in rows)


FOCUSABLE = """() => [...document.querySelectorAll("[tabindex='0']")].filter((element) => element.offsetParent)
  .map((element) => [element.className.baseVal || element.className, element.scrollWidth > element.clientWidth])"""


def test_the_first_tab_stop_skips_to_the_results_and_tables_that_fit_are_no_stop(browser, demo_run):
    with Visit(browser, demo_run.page, viewport={"width": 1280, "height": 900}) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.textContent") == "Skip to the results"
        visit.page.keyboard.press("Enter")
        assert visit.page.url.endswith("#main")
        stops = visit.page.evaluate(FOCUSABLE)
        assert all(scrolls for kind, scrolls in stops if kind == "wide")
    with Visit(browser, demo_run.page, viewport={"width": 320, "height": 700}) as visit:
        stops = visit.page.evaluate(FOCUSABLE)
        assert any(kind == "wide" and scrolls for kind, scrolls in stops)


def test_on_a_phone_the_first_column_stays_while_a_table_scrolls(browser, demo_run):
    with Visit(browser, demo_run.page, viewport={"width": 320, "height": 700}) as visit:
        table = visit.page.locator("#ranking .wide").first
        name, rank = table.locator("tbody th").first, table.locator("tbody td").first
        before = name.bounding_box()["x"], rank.bounding_box()["x"]
        table.evaluate("(box) => { box.scrollLeft = 80; }")
        assert name.bounding_box()["x"] == before[0]
        assert rank.bounding_box()["x"] == before[1] - 80


def test_the_first_screen_fits_a_laptop(browser, demo_run):
    """State, conclusion, four cards, plot and pictures are seen without scrolling much: within 1280 × 1000."""
    with Visit(browser, demo_run.page, viewport={"width": 1280, "height": 1000}) as visit:
        assert visit.page.locator(".card").count() == 4
        for selector in (".conclusion", ".card >> nth=3", ".forest", ".walk >> nth=0"):
            box = visit.page.locator(selector).first.bounding_box()
            assert box["y"] + box["height"] <= 1000, selector
