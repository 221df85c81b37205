"""The number of queries of each page: written down, and the same for three rows and for thirty."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard import dispatch, failed_jobs
from dashboard.access import Visitor, make_token
from dashboard.models import Project, Regression, Run, Series, Trigger
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.experiment_builders import create_ended

pytestmark = pytest.mark.django_db

Assert = Callable[[int], Any]

# For who is not signed in; a session adds two, counting visits to a costly page adds one. What is of a
# project asks whether that is public, and for its revision with it; a cached page of several projects asks
# for that by itself.
PAGES = {
    "/": 13,
    "/work/?seen={shown}": 2,
    "/projects/snake/": 12,
    "/projects/snake/regressions/": 3,
    "/projects/snake/heatmap/": 3,
    "/projects/snake/noise/": 3,
    "/projects/snake/trust/": 3,
    "/queue/": 10,
    "/search/?q=sna": 7,
    "/projects/snake/runs/": 3,
    "/projects/snake/live-runs/": 3,
    "/projects/snake/commits/": 5,
    "/projects/snake/commits/{commit}/": 12,
    "/projects/snake/compare/": 3,
    "/projects/snake/compare/?base={first}&head={last}": 9,
    "/projects/snake/compare/?base={first}&head=main": 10,
    "/projects/snake/triggers/": 2,
    "/projects/snake/triggers/{trigger}/": 4,
    "/projects/snake/costs/": 2,
    "/projects/snake/experiments/": 3,
    "/experiments/{experiment}/": 3,
    "/experiments/{measuring}/": 3,
    "/experiments/{measuring}/status/?pairs={pairs}&profiled=no": 2,
    "/series/{series}/": 8,
    "/runs/{run}/": 9,
    "/runs/{run}/frames/": 3,
    "/runs/{active}/": 4,
    "/runs/{active}/status/": 4,
    "/runs/{run}/log/": 2,
    "/runs/{run}/document/": 3,
    "/regressions/": 7,
    "/regressions/{regression}/": 10,
    "/deliveries/": 2,
    "/machines/": 9,
    "/machines/{machine}/": 11,
    "/machines/{machine}/status/?seen=measuring": 3,
    "/sign-in/": 0,
}

# Their longest list fits on a page with three rows and not with thirty: how many there are is counted then.
COUNTED = {"/", "/projects/snake/runs/", "/projects/snake/triggers/", "/deliveries/"}

# For who is signed in, with a role in the project. Beside the session they ask for roles and permissions.
MEMBERS_PAGES = {
    "/": 18,
    "/deliveries/": 7,
    "/regressions/": 11,
    "/machines/": 13,
    "/projects/snake/": 16,
    "/projects/snake/settings/": 8,
    "/projects/snake/settings/policy/": 6,
    "/projects/snake/settings/retention/": 6,
    "/projects/snake/settings/measuring/": 5,
    "/projects/snake/settings/manifest/": 6,
    "/projects/snake/settings/manifest/file/": 6,
    "/projects/snake/settings/forge/": 6,
    "/projects/snake/settings/hook/": 6,
    "/projects/snake/settings/remove/": 10,
    "/projects/snake/settings/members/": 6,
    "/projects/snake/settings/tokens/": 6,
    "/projects/snake/settings/audit/": 6,
}

# For an administrator of the site.
SITE_PAGES = {"/site/accounts/": 5, "/site/accounts/{account}/": 6, "/site/jobs/": 3, "/audit/": 3}


def fill_site(count: int) -> dict[str, Any]:
    """`count` of everything that a page lists; as many as its first page can hold."""
    line = builders.create_measured_commits(count)
    case = line[0].runs.get().case
    series = builders.headline_series(case)
    for number, (good, bad) in enumerate(pairwise(line)):
        regression = builders.create_regression(series, good, bad)
        builders.create_delivery(regression, address=f"{number}@example.org")
        builders.create_delivery(regression, "failed", address=f"failed-{number}@example.org")
        builders.create_project(f"other-{number}")
        builders.create_machine(f"bench-{number + 2}")
        builders.create_machine(f"old-{number}", state="retired")
        Trigger.objects.create(project=bad.project, source="web", revisions={"last": 1})
        builders.create_run(bad, case, Run.State.FAILED, failure="crash", quick=True)
        walker = builders.create_case(bad.project, "walker", n=number)
        active = builders.create_run(bad, walker, Run.State.MEASURING)
        for _ in range(3):
            builders.create_tainted_run(good, walker, "co_tenant")
        builders.create_refused_trigger(bad.project)
        experiment = create_ended([good, bad])
    measuring = create_ended([line[1], line[0]], state="measuring", verdict="", profiles={})
    for pair in range(6, count):
        measuring.pairs.create(index=pair, base_first=True, base=1, head=2, seconds=1)
    done = Run.objects.filter(state="done", tainted=False).latest("pk")
    return {
        "series": series.pk,
        "run": done.pk,
        "commit": line[1].hash,
        "machine": done.machine_id or 0,
        "active": active.pk,
        "regression": regression.pk,
        "experiment": experiment.pk,
        "measuring": measuring.pk,
        "pairs": measuring.pairs.count(),
        "trigger": Trigger.objects.filter(state="received").latest("pk").pk,
        "shown": min(count - 1, 7) + 1,
        "first": line[0].hash,
        "last": line[-1].hash,
    }


@pytest.mark.parametrize("count", [3, 30])
def test_every_page_asks_the_same_number_of_questions(
    client: Client, django_assert_num_queries: Assert, settings: LazySettings, count: int
) -> None:
    settings.PACELINE_RATES = {}
    ids = fill_site(count)
    assert Regression.objects.count() == count - 1
    assert Series.objects.count() > 30
    for where, queries in PAGES.items():
        with django_assert_num_queries(queries + (count == 30 and where in COUNTED)):
            assert client.get(where.format(**ids)).status_code == 200
    # And who asks is looked up once.
    project = Project.objects.get(slug="snake")
    admins = [create_member(f"admin-{number}", "admin", project) for number in range(count)]
    for number in range(count):
        make_token(Visitor(admins[0]), project, f"token-{number}", ())
    known = Client()
    known.force_login(admins[0])
    for where, queries in MEMBERS_PAGES.items():
        with django_assert_num_queries(queries + (count == 30 and where in COUNTED)):
            assert known.get(where).status_code == 200


@pytest.mark.parametrize("count", [3, 30])
def test_what_administrators_keep_is_asked_for_at_once(
    client: Client, django_assert_num_queries: Assert, count: int
) -> None:
    project = builders.create_project("snake")
    accounts = [create_member(f"person-{number}", "viewer", project) for number in range(count)]
    for number, account in enumerate(accounts):
        account.user_permissions.add(Permission.objects.get(codename="add_trigger"))
        failed_jobs.note_failure(dispatch.JUDGE, (number,), KeyError("x"))
    client.force_login(User.objects.create_superuser("root"))
    for where, queries in SITE_PAGES.items():
        with django_assert_num_queries(queries):
            assert client.get(where.format(account=accounts[0].pk)).status_code == 200
