"""Charts in a browser: they are drawn, labelled, coloured, and followed by mouse, finger and keyboard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations, pairwise, product
from typing import Any

import pytest
from django.db.models import F
from playwright.sync_api import Browser, Locator, expect
from plotly.offline import get_plotlyjs_version

from dashboard.models import Change, Commit, Point, Run, Series
from tests.dashboard.factories import set_environment
from tests.pages import builders
from tests.pages.documents import environment_member
from tests.pages.test_browser import PHONE, Site, _queries_beside_the_browser, browser, site
from tests.pages.test_static import VENDOR

__all__ = ["_queries_beside_the_browser", "browser", "site"]

pytestmark = pytest.mark.django_db(transaction=True)

RANGE = "canvas => canvas.layout.xaxis.range"
WIDTH = "canvas => canvas.clientWidth"


@pytest.mark.parametrize(
    ("where", "figures", "marks"),
    [
        ("/series/{series}/", 1, ".scatterlayer path.js-line"),
        ("/runs/{run}/", 3, ".barlayer path"),
        ("/runs/{full}/", 5, ".scatterlayer path.js-line"),
        ("/regressions/{regression}/", 2, ".barlayer path"),
        ("/experiments/{experiment}/", 2, ".scatterlayer path.js-fill"),
        ("/machines/{machine}/", 2, ".scatterlayer path.js-line"),
    ],
)
def test_charts_are_drawn(site: Site, where: str, figures: int, marks: str) -> None:
    page = site.page(where)
    assert page.locator(".canvas[data-drawn] svg.main-svg").count() >= figures
    assert page.locator(marks).count() > 0


@pytest.mark.parametrize("viewport", [{"width": 1440, "height": 900}, PHONE])
def test_the_bands_of_a_repetition_are_named_where_nothing_is_drawn(
    site: Site, viewport: dict[str, int]
) -> None:
    page = site.page("/runs/{full}/", viewport=viewport)
    canvas = page.locator(".canvas[data-drawn]").filter(has_text="warm-up")
    names = canvas.locator(".annotation")
    assert {name.strip() for name in names.all_text_contents()} == {
        *("start-up", "warm-up", "measured window, as in the table")
    }
    labels = [measure_box(label) for label in names.all()]
    drawings = [measure_box(area) for area in canvas.locator(".nsewdrag").all()]
    assert len(drawings) == 3
    others = [*drawings, measure_box(canvas.locator(".legend"))]
    assert not [pair for pair in [*combinations(labels, 2), *product(labels, others)] if boxes_overlap(*pair)]


def measure_box(part: Locator) -> Mapping[str, float]:
    box = part.bounding_box()
    assert box is not None
    return box


def test_charts_keep_their_height_in_a_window_of_another_width(site: Site) -> None:
    page = site.page("/regressions/{regression}/", viewport={"width": 1440, "height": 900})
    canvas = page.locator(".canvas[data-drawn]").first
    drawing = canvas.locator("svg.main-svg").first
    height, width = drawing.get_attribute("height"), drawing.get_attribute("width")
    page.set_viewport_size({"width": 1000, "height": 900})
    expect(drawing).not_to_have_attribute("width", width or "")
    assert drawing.get_attribute("height") == height
    assert canvas.evaluate("canvas => canvas.clientHeight") == int(height or 0)


def test_what_was_zoomed_into_stays_in_a_window_of_another_width(site: Site) -> None:
    page = site.page("/experiments/{experiment}/", viewport={"width": 1440, "height": 900})
    canvas = page.locator(".canvas[data-drawn]").first
    area = canvas.locator(".nsewdrag").bounding_box()
    assert area is not None
    whole, width = canvas.evaluate(RANGE), canvas.evaluate(WIDTH)
    page.mouse.move(area["x"] + area["width"] / 4, area["y"] + 20)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + 20, steps=4)
    page.mouse.up()
    expect(canvas.locator(".zoombox")).to_have_count(0)
    zoomed = canvas.evaluate(RANGE)
    assert zoomed != whole
    canvas.evaluate(
        "canvas => canvas.parentElement.addEventListener('chart:drawn', () => { document.title = 'drawn'; })"
    )
    page.set_viewport_size({"width": 1000, "height": 900})
    expect(page).to_have_title("drawn")
    assert canvas.evaluate(WIDTH) != width
    assert canvas.evaluate(RANGE) == zoomed


def test_the_label_of_a_point_is_drawn_within_the_policy(site: Site) -> None:
    page = site.page("/series/{series}/")
    page.locator(".scatterlayer .points path.point").last.hover(force=True)
    bold = page.locator(".hoverlayer .hovertext tspan[style*=bold]").first
    assert bold.evaluate("text => getComputedStyle(text).fontWeight") == "700"


def test_plotly_finds_the_styles_that_it_would_make(browser: Browser) -> None:
    page = browser.new_page()
    page.add_script_tag(path=VENDOR / f"plotly-basic-{get_plotlyjs_version()}.min.js")
    page.add_style_tag(path=VENDOR / f"plotly-basic-{get_plotlyjs_version()}.css")
    made, kept = page.evaluate(
        "[...document.styleSheets].map(sheet => [...sheet.cssRules].map(rule => rule.cssText))"
    )
    assert len(made) > 20
    assert kept == made


def test_colours_of_charts_follow_the_scheme_while_the_page_is_open(site: Site) -> None:
    page = site.page("/series/{series}/", color_scheme="light")
    line = page.locator(".scatterlayer .trace").last.locator("path.js-line")
    light = line.evaluate("line => line.style.stroke")
    page.emulate_media(color_scheme="dark")
    page.locator(".canvas[data-drawn=dark]").wait_for()
    assert line.evaluate("line => line.style.stroke") != light
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 22)"


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_of_markers_neither_overlap_nor_leave_the_chart(site: Site, width: int) -> None:
    upgrades = ({}, {"torch": "3"}, {"torch": "3", "python": "4", "os": "Debian 13"}, {"torch": "5"})
    for position, upgrade in enumerate(upgrades, start=2):
        run = Run.objects.get(
            commit__position=position, state="done", configuration__case__benchmark="snake_dqn"
        )
        set_environment(run, environment_member() | upgrade)
    page = site.page("/series/{series}/", viewport={"width": width, "height": 800})
    labels = page.locator(".annotation-text-g").filter(has_text=re.compile("torch|system"))
    boxes = [box for label in labels.all() if (box := label.bounding_box())]
    chart = page.locator(".canvas").first.bounding_box()
    assert len(boxes) == 3
    assert chart is not None
    end = chart["x"] + chart["width"]
    assert [box for box in boxes if box["x"] < chart["x"] or box["x"] + box["width"] > end] == []
    assert not any(boxes_overlap(first, second) for first, second in combinations(boxes, 2))


def measured_line(series: Series) -> list[Commit]:
    """The commits at which a series has points, which has no changes from now on."""
    Change.objects.filter(series=series).delete()
    measured = Commit.objects.filter(runs__points__series=series, branch="main").distinct()
    return list(measured.order_by("position"))


def test_labels_of_changes_that_lie_close_do_not_overlap(site: Site) -> None:
    series = Series.objects.get(pk=site.ids["series"])
    for good, bad in list(pairwise(measured_line(series)))[-4:]:
        builders.create_change(series, good, bad, 1.001)
    page = site.page("/series/{series}/", viewport=PHONE)
    labels = page.locator(".annotation-text-g").filter(has_text="worse")
    boxes = [box for label in labels.all() if (box := label.bounding_box())]
    assert len(boxes) > 2
    assert not any(boxes_overlap(first, second) for first, second in combinations(boxes, 2))


def test_a_collapse_to_nearly_nothing_keeps_its_label(site: Site) -> None:
    series = Series.objects.get(pk=site.ids["series"])
    first, second, third, fourth = measured_line(series)[:4]
    Point.objects.filter(series=series, position__gte=fourth.position).update(
        value=0.05 * F("value"), low=None, high=None, samples=[]
    )
    builders.create_change(series, first, second, 1.001)
    builders.create_change(series, third, fourth, 0.05)
    page = site.page("/series/{series}/", viewport=PHONE)
    expect(page.locator(".annotation-text-g").filter(has_text="95 %")).to_be_visible()


def test_the_label_of_a_change_covers_no_tainted_run(site: Site) -> None:
    series = Series.objects.get(pk=site.ids["series"])
    third, fourth = measured_line(series)[2:4]
    builders.create_change(series, third, fourth, 1.5)
    first_bad = Point.objects.get(series=series, position=fourth.position)
    Point.objects.filter(series=series, position=fourth.position + 1).update(
        value=1.14 * first_bad.value, low=None, high=None, samples=[], tainted=True
    )
    page = site.page("/series/{series}/", viewport={"width": 320, "height": 900})
    label = page.locator(".annotation-text-g").filter(has_text="worse").first.bounding_box()
    cross = page.locator(".scatterlayer .trace path.point").all()
    assert label is not None
    boxes = [box for mark in cross if (box := mark.bounding_box())]
    assert len(boxes) > 5
    assert not any(boxes_overlap(label, box) for box in boxes)


def boxes_overlap(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
    return all(
        first[start] < second[start] + second[size] and second[start] < first[start] + first[size]
        for start, size in (("x", "width"), ("y", "height"))
    )


def test_a_click_on_a_point_leads_to_its_run(site: Site) -> None:
    page = site.page("/series/{series}/")
    page.locator(".scatterlayer .points path.point").last.scroll_into_view_if_needed()
    box = page.locator(".scatterlayer .points path.point").last.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url("**/runs/*/")


@pytest.mark.parametrize(
    ("device", "is_told"), [({}, False), ({"viewport": PHONE, "has_touch": True, "is_mobile": True}, True)]
)
def test_a_tap_is_told_of_where_there_are_fingers(site: Site, device: dict[str, Any], is_told: bool) -> None:
    status = site.page("/series/{series}/", **device).locator(".point-status:empty").first
    said = status.evaluate("element => getComputedStyle(element, '::before').content")
    assert ("A tap reads a point" in said) == is_told


def test_a_touch_reads_a_point_and_stays(site: Site) -> None:
    page = site.page("/series/{series}/", viewport=PHONE, has_touch=True, is_mobile=True)
    point = page.locator(".scatterlayer .points path.point").last
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    opens = page.get_by_role("status").get_by_role("link", name="open")
    opens.wait_for()
    assert page.url.endswith("/series/{series}/".format(**site.ids))
    opens.click()
    page.wait_for_url("**/runs/*/")


def test_the_keyboard_reads_a_chart_and_a_part_of_it_is_loaded(site: Site) -> None:
    page = site.page("/series/{series}/")
    chart, said = page.locator(".canvas"), page.locator(".point-status")
    # Nothing within the chart stops the keyboard again.
    assert chart.locator("a, [tabindex]").count() == 0
    chart.focus()
    page.keyboard.press("Home")
    expect(said).to_contain_text("(1 of 6)")
    page.keyboard.press("Shift+ArrowRight")
    expect(said).to_contain_text(re.compile(r"^worse \+38 %: .* \(4 of 6\)"))
    for part in ("0-5", "1-4"):
        page.get_by_role("button", name="Closer").press("Enter")
        page.wait_for_url(f"**zoom={part}")
    expect(page.get_by_role("region", name="Points").locator("tbody tr")).to_have_count(4)
    expect(page.get_by_text("positions 1 to 4")).to_be_visible()
    for name, query in (("CSV", "?zoom=1-4"), ("date", "?x=date&zoom=1-4")):
        assert (page.get_by_role("link", name=name).get_attribute("href") or "").endswith(query)
    page.emulate_media(color_scheme="dark")
    page.locator(".canvas[data-drawn=dark]").wait_for()
    page.get_by_role("button", name="All").press("Enter")
    rows = page.get_by_role("region", name="Points").locator("tbody tr")
    expect(rows).to_have_count(6)
    assert "zoom" not in page.url
    expect(page.get_by_text("show all")).to_be_hidden()
    # From part to part there is nothing to go back to.
    for part, number in (("?zoom=1-4", 4), ("", 6)):
        page.go_back()
        expect(rows).to_have_count(number)
        assert page.url.endswith("/series/{series}/{part}".format(**site.ids, part=part))


def test_a_marked_change_leads_to_its_regression(site: Site) -> None:
    page = site.page("/series/{series}/")
    page.locator(".annotation-text-g").filter(has_text="worse").first.click()
    page.wait_for_url("**/regressions/*/")
    assert page.get_by_role("heading", name="The step").is_visible()


def test_a_click_goes_into_a_frame_and_back(site: Site) -> None:
    page = site.page("/runs/{full}/#profile")
    page.locator(".icicle a").nth(2).click()
    page.wait_for_url("**/?frame=*")
    page.get_by_role("region", name="Functions in this part").wait_for()
    assert page.locator(".canvas[data-drawn]").count() >= 5
    page.go_back()
    page.get_by_role("region", name="Functions in this part").wait_for(state="detached")
    assert "frame" not in page.url
