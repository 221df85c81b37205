"""Nothing on a page is wider than its place: not the page itself, and no box that cuts off what it holds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.utils import timezone
from playwright.sync_api import Page

from dashboard.models import Case, Commit, Configuration, Metric, Project, Run, Series
from tests.pages.test_accessibility import MORE_PAGES, create_projects_of_pages
from tests.pages.test_browser import PAGES, Site, _queries_beside_the_browser, browser, signed_in_page, site

__all__ = ["_queries_beside_the_browser", "browser", "site"]

pytestmark = pytest.mark.django_db(transaction=True)

# Below this width a table may have to be scrolled sideways, or turns into blocks.
DESKTOP = 1024
WIDTHS = (1300, DESKTOP, 768, 390)
LISTS_OF_CASES = (
    *("/", "/queue/", "/regressions/", "/projects/snake/", "/projects/snake/runs/"),
    *(
        "/projects/snake/regressions/?since=2000-01-01",
        "/projects/snake/experiments/",
        "/projects/snake/trust/",
    ),
)
LOOKS, LOOK_MILLISECONDS = 50, 100
# What a person can't scroll to: its content is wider than its visible box, or than the window.
FIND_CLIPPED = """() => [...document.querySelectorAll("main, main *:not(svg, svg *)")].filter((part) => {
  const { overflowX, clipPath, textOverflow, display } = getComputedStyle(part);
  if (display === "inline" || clipPath !== "none" || part.closest(".canvas, .hidden, select")) return false;
  const cut = part.scrollWidth > part.clientWidth + 1;
  if (part.matches("main")) return cut || document.documentElement.scrollWidth > innerWidth;
  return cut && ["hidden", "clip"].includes(overflowX) && textOverflow !== "ellipsis";
}).map((part) => `${part.tagName}.${part.className}: ${part.scrollWidth} > ${part.clientWidth}`)"""
# A table on the desktop whose last columns are hidden until somebody scrolls.
FIND_SCROLLED = """() => [...document.querySelectorAll("main section > .scroll, main article > .scroll")]
  .filter((part) => part.scrollWidth > part.clientWidth + 1)
  .map((part) => `${part.getAttribute("aria-label")}: ${part.scrollWidth} > ${part.clientWidth}`)"""


def test_nothing_is_cut_off_at_any_width(site: Site, settings: LazySettings) -> None:
    settings.PACELINE_RATES = {}
    create_projects_of_pages()
    page = signed_in_page(site, "/account/", viewport={"width": WIDTHS[0], "height": 900})
    found = []
    for where in dict.fromkeys((*PAGES, *MORE_PAGES)):
        if "{trigger}" in where:
            continue
        site.go(page, where)
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            found += [f"{where} at {width}: {part}" for part in find_parts(page, width)]
    assert found == [], "\n".join(found)


def test_long_names_of_cases_hide_no_column(site: Site) -> None:
    key = "batch_size=4096,compile=true,environments=128,learning_rate=0.00025"
    Case.objects.update(benchmark=Concat(F("benchmark"), Value("_vectorized")), key=key)
    Project.objects.update(training_hours_per_week=70)
    # Waits for its time, and takes short windows: its state is as long as any.
    shortly = Configuration.objects.filter(case__project__slug="snake", quick=True)[:1].get()
    Run.objects.create(
        commit=Commit.objects.filter(project__slug="snake")[:1].get(),
        configuration=shortly,
        not_before=timezone.now() + timedelta(minutes=10),
        repetitions=5,
        time_limit=60,
    )
    Commit.objects.update(committed_at=timezone.now(), subject="Keep the replay buffer in one pinned tensor")
    Metric.objects.filter(name="step_time").update(unit="bytes/1000 steps")
    page = signed_in_page(site, "/", viewport={"width": 1440, "height": 900})
    found = []
    series = Series.objects.get(pk=site.ids["series"])
    others = Series.objects.filter(metric=series.metric, phase="").exclude(pk=series.pk)
    beside = "&".join(f"beside={other.pk}@feature" for other in (series, *others[:2]))
    overlaid = f"/series/{series.pk}/?relative=first&{beside}"
    for where in (*LISTS_OF_CASES, "/series/{series}/", overlaid):
        site.go(page, where)
        found += [f"{where}: {part}" for part in page.evaluate(FIND_SCROLLED)]
    assert found == [], "\n".join(found)


def find_parts(page: Page, width: int) -> list[str]:
    """What is cut off once charts have taken their new width, which they do a moment later."""
    scripts = (FIND_CLIPPED, FIND_SCROLLED) if width >= DESKTOP else (FIND_CLIPPED,)
    for _ in range(LOOKS):
        parts = [part for script in scripts for part in page.evaluate(script)]
        if not parts:
            break
        page.wait_for_timeout(LOOK_MILLISECONDS)
    return parts
