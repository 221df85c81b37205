"""What a page shows before its scripts have come, and without any."""

from __future__ import annotations

import pytest

from tests.pages.test_browser import Site, _queries_beside_the_browser, browser, site

__all__ = ["_queries_beside_the_browser", "browser", "site"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_without_scripts_a_trend_is_drawn_and_every_number_is_in_a_table(site: Site) -> None:
    page = site.browser.new_context(java_script_enabled=False).new_page()
    page.goto(site.address + "/series/{series}/".format(**site.ids))
    assert page.get_by_role("region", name="Points").locator("tbody tr").count() == 6
    assert page.locator(".canvas > .still path").first.is_visible()
    page.goto(site.address + "/regressions/{regression}/".format(**site.ids))
    assert page.locator(".canvas > .still path").first.is_visible()
    page.goto(site.address + "/runs/{run}/".format(**site.ids))
    assert page.get_by_text("the table has the same numbers").first.is_visible()


@pytest.mark.parametrize("where", ["/series/{series}/", "/regressions/{regression}/"])
def test_the_script_draws_where_the_page_has_drawn(site: Site, where: str) -> None:
    """Nothing on the page moves when Plotly comes."""
    still = site.browser.new_context(java_script_enabled=False).new_page()
    still.goto(site.address + where.format(**site.ids))
    boxes = [page.locator(".chart .canvas").first.bounding_box() for page in (still, site.page(where))]
    assert boxes[0] == boxes[1]
    assert still.locator(".still").count() == 1
