"""Every page that shows data links to the call of the API that gives it."""

from __future__ import annotations

from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.access.rules import is_allowed, rule_of
from dashboard.access.system_checks import named_routes
from dashboard.access.visitors import Visitor
from dashboard.models import Project, Run
from dashboard.pages.data_calls import DATA_CALLS
from dashboard.pages.urls import urlpatterns
from tests.dashboard.access.test_walk import EXAMPLES, Site

pytestmark = pytest.mark.django_db

# What isn't looked at by itself, forms that hold nothing yet, and what is no HTML.
WITHOUT_DATA = {
    *("work", "project-live-runs", "run-status", "run-frames", "run-log", "experiment-status"),
    *("machine-status", "check-status", "project-channel-test"),
    *("experiment-new", "project-channel-new", "project-feed", "step-picture"),
    *("project-new", "project-new-tested", "project-new-status", "project-repository-test"),
    *("project-repository-status", "project-manifest-difference"),
    # A form, until two sides are named: then the page has its own link.
    *("project-compare", "project-compare-markdown", "project-compare-csv"),
    *("project-compare-flame", "run-flame", "run-telemetry", "experiment-picture", "claim-picture"),
    *("project-compare-metrics", "run-scaling", "run-step-times", "machine-calibration", "machine-sentinels"),
    # What they hold is secret, or at the forge.
    *("project-forge", "project-hook"),
    # Files of what a page shows, parts of it, and what is shown elsewhere.
    *("run-document", "series-csv", "series-json", "series-part", "project-trigger-status"),
    *("run-picture", "series-picture", "regression-picture", "series-badge", "series-embed"),
    *("shared-page", "shared-badge", "shared-picture", "project-export"),
    # They lead to pages that have calls; what is shared has its secret in its address.
    *("search", "queue", "project-sharing"),
    # What goes with age, and what was dropped: `manage.py prune --dry-run` says it too.
    "project-retention",
    # What administrators of the site keep: no token does anything there.
    *("site-accounts", "site-account", "site-jobs"),
}
# What takes forms alone.
FORMS = {
    *("project-channel-change", "project-channel-rules", "project-member", "project-token-revoke"),
    *(
        "experiment-cancel",
        "check-change",
        "run-cancel",
        "project-trigger-cancel",
        "regression-triage",
        "regression-snooze",
    ),
    *("machine-code", "machine-state", "project-new-manifest", "project-repository", "project-forge-test"),
    *("project-removal", "delivery-resend", "trigger", "measure-missing", "claims-measure"),
    *("read-commits", "remeasuring-cancel", "waiting-cancel"),
    *("run-share", "series-share", "regression-share"),
}


def test_every_page_has_a_call_or_no_data() -> None:
    pages = {route.name for route in named_routes(urlpatterns)}
    assert pages - DATA_CALLS.keys() == WITHOUT_DATA | FORMS


@pytest.fixture
def site(db: None) -> Site:
    return Site("private")


def linked_call(page: str) -> str:
    return unescape(page.partition('<footer class="data-call"><a href="')[2].partition('"')[0])


def test_each_link_gives_data_to_who_sees_the_page(site: Site) -> None:
    for name, call in DATA_CALLS.items():
        page = site.clients["superuser"].get(site.address_of(name))
        address = linked_call(page.content.decode())
        places = {key: of for key, of in EXAMPLES.get(name, {}).items() if key not in call.asked}
        assert address.partition("?")[0] == reverse(
            call.view_name, kwargs={key: site.keys[of] for key, of in places.items()}
        )
        answer = site.clients["superuser"].get(address)
        assert (answer.status_code, answer.json() is not None) == (200, True), name


def test_a_call_is_for_whom_its_page_is(site: Site) -> None:
    project = Project.objects.get(slug=site.keys["slug"])
    people = [Visitor(), *(Visitor(member.user) for member in project.memberships.select_related("user"))]
    for name, call in DATA_CALLS.items():
        page, data = rule_of(name), rule_of(call.view_name)
        assert page is not None
        assert data is not None
        for visitor in people:
            if is_allowed(visitor, page, project):
                assert is_allowed(visitor, data, project), (name, visitor)


def test_a_filter_of_the_page_is_kept(client: Client) -> None:
    page = client.get("/regressions/?state=all&page=1").content.decode()
    assert linked_call(page) == "/api/v1/regressions?state=all"


def test_what_is_not_there_has_no_data(client: Client) -> None:
    missing = Run.objects.count() + 1000
    assert linked_call(client.get(f"/runs/{missing}/").content.decode()) == ""
