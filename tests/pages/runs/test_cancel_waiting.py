"""Cancelling what of a project waits: by the queue, by a filter of its runs, and by the API."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import AuditEntry, Backlog, Project, Run
from dashboard.sentences.administration.audit import describe_entry
from tests.pages import builders

pytestmark = pytest.mark.django_db
ADDRESS = "/projects/snakes/runs/waiting/cancel/"


@pytest.fixture
def project() -> Project:
    return builders.create_project("snakes")


@pytest.fixture
def waiting(project: Project) -> list[Run]:
    """Three runs that no machine has begun, beside one that is measured, one that is done and another's."""
    line = builders.create_commits(project, 5)
    case = builders.create_case(project)
    builders.create_run(line[3], case, Run.State.MEASURING)
    builders.create_run(line[4], case)
    other = builders.create_project("other")
    builders.create_run(
        builders.create_commits(other, 1)[0], builders.create_case(other), Run.State.REQUESTED
    )
    return [builders.create_run(commit, case, Run.State.REQUESTED) for commit in line[:3]]


def cancel_shown(client: Client, address: str = ADDRESS) -> str:
    """Press the page's button; what the queue says then."""
    page = client.get(address).content.decode()
    shown = dict(re.findall(r'name="(newest\w*)" value="(\d+)"', page))
    assert set(shown) == {"newest", "newest_request"}
    answer = client.post(address, shown, follow=True)
    return answer.content.decode()


def run_states() -> list[str]:
    return sorted(Run.objects.filter(project__slug="snakes").values_list("state", flat=True))


def test_the_queue_leads_to_what_waits_of_a_project(signed_in: Client, waiting: list[Run]) -> None:
    page = signed_in.get("/queue/").content.decode()
    assert f'<a href="{ADDRESS}">Cancel what waits of snakes (3 runs)</a>' in page
    assert "This cancels <strong>3 runs</strong> that no machine" in signed_in.get(ADDRESS).content.decode()
    assert "3 runs cancelled." in cancel_shown(signed_in)
    assert run_states() == ["cancelled", "cancelled", "cancelled", "done", "measuring"]
    assert Run.objects.filter(project__slug="other", state="requested").count() == 1
    entry = AuditEntry.objects.get(action="waiting runs cancelled")
    assert entry.details == {"runs": 3}
    assert "cancelled 3 runs that waited" in describe_entry(entry)
    assert "No run waits" in signed_in.get(ADDRESS).content.decode()


def test_a_visitor_isnt_offered_what_they_may_not(client: Client, waiting: list[Run]) -> None:
    assert "Cancel what waits" not in client.get("/queue/").content.decode()
    client.force_login(User.objects.create_user("ada"))
    assert client.post(ADDRESS, {"newest": waiting[-1].pk}).status_code == 403
    assert "cancelled" not in run_states()


def test_only_what_is_filtered_is_cancelled(signed_in: Client, waiting: list[Run], project: Project) -> None:
    Backlog.objects.create(trigger=project.triggers.create(source="web"), branch="main", hashes=["a" * 40])
    query = f"commit={waiting[1].commit.hash[:12]}"
    listed = signed_in.get(f"/projects/snakes/runs/?state=requested&{query}").content.decode()
    assert f'href="{ADDRESS}?state=requested&amp;{query}">Cancel the one that waits</a>' in listed
    assert "1 run cancelled." in cancel_shown(signed_in, f"{ADDRESS}?{query}")
    waiting[1].refresh_from_db()
    assert (waiting[1].state, run_states().count("requested")) == ("cancelled", 2)
    assert Backlog.objects.exists()
    assert "that waited, of commit" in describe_entry(AuditEntry.objects.get(action="waiting runs cancelled"))


def test_what_is_asked_for_after_the_look_stays(signed_in: Client, waiting: list[Run]) -> None:
    signed_in.post(ADDRESS, {"newest": waiting[1].pk})
    assert list(Run.objects.filter(project__slug="snakes", state="requested")) == [waiting[2]]


def test_commits_whose_runs_are_still_to_be_asked_for_are_left_out(
    signed_in: Client, waiting: list[Run], project: Project
) -> None:
    trigger = project.triggers.create(source="web")
    Backlog.objects.create(trigger=trigger, branch="main", hashes=["a" * 40, "b" * 40])
    assert "drops 2 more commits whose runs would be asked for" in signed_in.get(ADDRESS).content.decode()
    assert "3 runs cancelled, 2 commits dropped." in cancel_shown(signed_in)
    assert not Backlog.objects.exists()
    entry = AuditEntry.objects.get(action="waiting runs cancelled")
    assert "cancelled 3 runs that waited, dropped 2 commits" in describe_entry(entry)


def test_commits_that_were_pushed_after_the_look_are_not_dropped(
    signed_in: Client, waiting: list[Run], project: Project
) -> None:
    page = signed_in.get(ADDRESS).content.decode()
    assert 'name="newest_request" value="0"' in page
    Backlog.objects.create(trigger=project.triggers.create(source="hook"), branch="main", hashes=["a" * 40])
    signed_in.post(ADDRESS, {"newest": waiting[-1].pk, "newest_request": "0"})
    assert "requested" not in run_states()
    assert Backlog.objects.exists()


def test_a_filter_that_is_none_is_said_in_the_list(signed_in: Client, waiting: list[Run]) -> None:
    answer = signed_in.get(f"{ADDRESS}?since=soon", follow=True)
    assert "since must be a date" in answer.content.decode()
    assert "cancelled" not in run_states()
