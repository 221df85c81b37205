"""axe-core finds nothing wrong with any page: light, dark, and on a phone.

`tests/vendor/axe-core-*.min.js` is unchanged from npm, for these tests alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page

from dashboard.ingest.latest import write_latest
from dashboard.models import Project, Regression, Series
from tests.dashboard import factories
from tests.pages import builders
from tests.pages.test_browser import (
    ACCOUNT,
    PAGES,
    PHONE,
    Site,
    _queries_beside_the_browser,
    browser,
    signed_in_page,
    site,
)

__all__ = ["_queries_beside_the_browser", "browser", "site"]

pytestmark = pytest.mark.django_db(transaction=True)

AXE = next((Path(__file__).parents[1] / "vendor").glob("axe-core-*.min.js"))
DESKTOP = {"width": 1440, "height": 1000}
MORE_PAGES = (
    *(f"/projects/snake/{part}/" for part in ("runs", "triggers", "costs", "checks")),
    *(f"/projects/snake/{part}/" for part in ("regressions", "heatmap", "noise")),
    *("/queue/", "/search/?q=walk", "/projects/snake/?group=benchmark"),
    *("/projects/snake/trigger/?which=commit&commit=nope", "/projects/snake/triggers/{trigger}/"),
    *("/projects/snake/compare/", "/projects/paged/commits/"),
    *("/runs/{full}/?frame=2", "/projects/empty/", "/projects/empty/runs/", "/api/v1/docs"),
)
# What the other scheme can change.
COLOURS = ("color-contrast", "link-in-text-block")
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
CHECK = """async ([kind, values]) => {
  const asked = { runOnly: { type: kind, values }, resultTypes: ["violations"] };
  const { violations } = await axe.run(document, asked);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`));
}"""


def create_projects_of_pages() -> None:
    """What `MORE_PAGES` shows beside the site's own project."""
    builders.create_project("empty")
    builders.create_commits(builders.create_project("paged"), 60)


def test_no_page_violates_a_rule_of_axe(site: Site, settings: LazySettings) -> None:
    settings.PACELINE_RATES = {}
    create_projects_of_pages()
    site.ids["trigger"] = builders.create_refused_trigger(Project.objects.get(slug="snake")).pk
    stepped = Regression.objects.select_related("first_bad").latest("pk")
    # A line of the trend says that its environment changed.
    factories.set_environment(stepped.first_bad.runs.earliest("pk"), {"torch": "3"})
    write_latest(stepped.project, list(Series.objects.values_list("pk", flat=True)))
    page = signed_in_page(site, "/account/", viewport=DESKTOP, reduced_motion="reduce")
    pages = dict.fromkeys(
        (*PAGES, *ACCOUNT, *MORE_PAGES, f"/projects/snake/commits/{stepped.first_bad.hash}/")
    )
    found = [violation for where in pages for violation in find_violations(site, page, where)]
    assert found == [], "\n".join(found)


def find_violations(site: Site, page: Page, where: str) -> Iterator[str]:
    """Of a page on the desktop, in dark colours, and on a phone; with everything on it unfolded."""
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    site.go(page, where)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.evaluate(AXE.read_text())
    yield from run_axe(page, f"{where} on the desktop", "tag", TAGS)
    page.emulate_media(color_scheme="dark")
    yield from run_axe(page, f"{where} in dark colours", "rule", COLOURS)
    page.set_viewport_size(PHONE)
    yield from run_axe(page, f"{where} on a phone", "tag", TAGS)


def run_axe(page: Page, told: str, kind: str, values: tuple[str, ...]) -> list[str]:
    violations: list[str] = page.evaluate(CHECK, [kind, values])
    return [f"{told}: {violation}" for violation in violations]
