"""Navigations of one Chromium to the charts of several tools, which take turns."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.series_chart import NAMES

TIMEOUT = 60.0
# The chart is drawn when the first frame with it has been: the one after it begins then.
WATCH = """
window.watched = {drawn: 0, interactive: 0};
const look = () => requestAnimationFrame(() => {
  if (!document.querySelector(SELECTOR)) return look();
  requestAnimationFrame(() => { watched.drawn = performance.now(); });
});
look();
document.addEventListener("chart:drawn", () => requestAnimationFrame(() => {
  watched.interactive ||= performance.now();
}), true);
"""


@dataclass(frozen=True, slots=True)
class ChartPage:
    """A tool's page of a series. `selector`: what is there once the chart is drawn.."""

    tool: str
    commits: int
    address: str
    selector: str
    has_event: bool = False


@dataclass(frozen=True, slots=True)
class Visit:
    """Milliseconds from the start of the navigation to the drawn chart, and to one that can be moved.

    The same where the tool has one moment for both. `received`: bytes with headers, as they were sent.
    """

    drawn: float
    interactive: float
    requests: int
    received: int


@dataclass(frozen=True, slots=True)
class VisitPair:
    """`first` with nothing in the browser's cache, `again` by the same browser."""

    page: ChartPage
    first: Visit
    again: Visit


def take_turns(
    pages: Sequence[ChartPage], rounds: int, before_first: Callable[[], None]
) -> Iterator[VisitPair]:
    """Visit each page in each round, after one round that warms servers and browser.

    Each round begins with another page. `before_first` is called before each first visit.
    """
    from playwright.sync_api import sync_playwright

    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        raise SystemExit("This needs Chromium: apt install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for number in range(rounds + 1):
            shift = number % len(pages)
            for page in (*pages[shift:], *pages[:shift]):
                before_first()
                pair = visit_twice(browser, page)
                if number:
                    yield pair
        browser.close()


def visit_twice(browser: Any, page: ChartPage) -> VisitPair:
    """In a context of its own, whose cache is empty at first."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        tab = context.new_page()
        tab.add_init_script(f"{{ const SELECTOR = {page.selector!r}; {WATCH} }}")
        session = context.new_cdp_session(tab)
        session.send("Network.enable")
        first = visit_page(tab, session, page)
        tab.goto("about:blank")
        return VisitPair(page, first, visit_page(tab, session, page))
    finally:
        context.close()


def visit_page(tab: Any, session: Any, page: ChartPage) -> Visit:
    """SystemExit where no chart is drawn."""
    lengths: list[int] = []

    def note_length(event: dict[str, Any]) -> None:
        lengths.append(round(event["encodedDataLength"]))

    session.on("Network.loadingFinished", note_length)
    tab.goto(page.address, wait_until="load")
    wanted = "watched.drawn && watched.interactive" if page.has_event else "watched.drawn"
    deadline = time.monotonic() + TIMEOUT
    while not tab.evaluate(wanted):
        if time.monotonic() > deadline:
            raise SystemExit(f"{page.tool} has drawn no chart at {page.address}.")
        tab.wait_for_timeout(50)
    watched = tab.evaluate("watched")
    # What is asked for beside the chart belongs to it.
    tab.wait_for_timeout(100)
    session.remove_listener("Network.loadingFinished", note_length)
    sent = [length for length in lengths if length]
    interactive = watched["interactive"] if page.has_event else watched["drawn"]
    return Visit(watched["drawn"], interactive, len(sent), sum(sent))
