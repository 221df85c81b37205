"""The lists of runs, commits and regressions: what their addresses filter by, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Regression, Run, Trigger
from dashboard.pages import paging
from dashboard.querysets import runs
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

LISTS = ("/projects/snake/runs/", "/regressions/")


@pytest.fixture
def project_runs(db: None) -> dict[str, Run]:
    """Of two cases on two machines, in three states, one of them of a branch and one of last month."""
    line = builders.create_measured_commits(2)
    snake, walker = line[0].runs.get().case, builders.create_case(line[0].project, "walker", n=4)
    own = Commit.objects.create(
        project=line[0].project, hash="f" * 40, branch="faster", position=2, committed_at=timezone.now()
    )
    old = timezone.now() - timedelta(days=40)
    second = builders.create_machine("bench-2")
    return {
        "failed": builders.create_run(line[1], walker, Run.State.FAILED, failure="crash"),
        "active": builders.create_run(line[0], walker, Run.State.MEASURING, machine=second),
        "tainted": builders.create_run(line[1], snake, tainted=True, quick=True),
        "branch": builders.create_run(own, snake),
        "old": builders.create_run(line[0], walker, requested_at=old, version=2),
    }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=failed", {"failed"}),
        ("state=active", {"active"}),
        ("state=tainted", {"tainted"}),
        ("case=WALK n=4&state=failed", {"failed"}),
        ("machine=bench-2", {"active"}),
        ("branch=faster", {"branch"}),
        ("commit=ffffffff", {"branch"}),
        ("until={before}", {"old"}),
        ("state=failed&branch=faster", set()),
    ],
)
def test_runs_are_filtered_by_what_the_address_says(
    client: Client, project_runs: dict[str, Run], query: str, names: set[str]
) -> None:
    before = (timezone.now() - timedelta(days=30)).date()
    answer = client.get(f"{LISTS[0]}?{query.format(before=before)}")
    assert {run.pk for run in answer.context["runs"]} == {project_runs[name].pk for name in names}
    assert ("No run matches" in shown_text(answer)) == (not names)


@pytest.mark.parametrize("where", LISTS)
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("state=lost", "state must be one of"),
        ("machine=nowhere", "machine must be the name of a machine, not “nowhere”."),
        ("since=monday", "since must be a date such as 2026-11-01, not “monday”."),
        ("since=2026-11-02&until=2026-11-01", "since, 2026-11-02, must not be after until"),
        ("until=9999-12-31", "until must be a date before the year 9000."),
    ],
)
def test_what_is_not_known_gets_a_sentence(client: Client, where: str, query: str, sentence: str) -> None:
    builders.create_stepped_regression()
    answer = client.get(f"{where}?{query}")
    assert answer.status_code == 400
    assert sentence in shown_text(answer)
    assert 'role="alert"' in answer.content.decode()
    # A refused filter is none: it hides no row.
    assert "Step time" in shown_text(answer) or answer.context["runs"]


def test_an_unknown_branch_is_told_where_the_project_is_known(client: Client) -> None:
    builders.create_stepped_regression()
    for where in LISTS:
        assert "No commit of the branch “nope” is known." in shown_text(client.get(f"{where}?branch=nope"))


def test_regressions_are_filtered_by_case_machine_branch_and_period(client: Client) -> None:
    regression = builders.create_stepped_regression()
    builders.create_machine("idle")
    Regression.objects.update(opened_at=timezone.now() - timedelta(days=3))
    today, before = timezone.now().date(), timezone.now().date() - timedelta(days=5)
    for query in ("case=snake", "machine=bench-1", "branch=main", f"since={before}&until={today}"):
        assert list(client.get(f"/regressions/?{query}").context["regressions"]) == [regression]
    for query in ("case=walker", "machine=idle", f"since={today}"):
        answer = client.get(f"/regressions/?{query}")
        assert not answer.context["regressions"]
        assert "No regression of these filters" in shown_text(answer)


def test_columns_that_say_the_same_in_each_row_are_left_out(client: Client) -> None:
    regression = builders.create_stepped_regression()
    project = regression.project
    for where in LISTS:
        shown = client.get(where).content.decode()
        assert not {"<th>Case</th>", "<th>Project</th>"} & set(
            shown.replace("th><th", "th>\n<th").split("\n")
        )
    builders.create_case(project, "walker")
    builders.create_project("other")
    assert "<th>Case</th>" in client.get(LISTS[0]).content.decode()
    assert "<th>Project</th>" in client.get(LISTS[1]).content.decode()


def test_commits_are_found_by_words(client: Client) -> None:
    builders.create_commits(builders.create_project(), 8)
    (found,) = client.get("/projects/snake/commits/?q=ADA target").context["commits"]
    assert found["commit"].subject == "Move the target update out of the loop"
    assert "No commit of main has these words" in shown_text(client.get("/projects/snake/commits/?q=nothing"))


def test_a_commit_with_a_broken_manifest_says_so_in_its_row(client: Client) -> None:
    project = builders.create_history(count=3)
    newest = Commit.objects.order_by("-position")[0]
    newest.runs.all().delete()
    Commit.objects.filter(pk=newest.pk).update(manifest_problem="Commit abc: paceline.toml: benchmarks is 1")
    where = f"/projects/{project.slug}/commits/"
    listed = shown_text(client.get(where))
    assert "Commit abc: paceline.toml: benchmarks is 1 not measured manifest" in listed
    # Asking again would measure nothing of it.
    assert "has no result" not in listed
    assert "Nothing of it is measured: Commit abc:" in shown_text(client.get(f"{where}{newest.hash}/"))


def test_no_more_is_counted_than_can_be_paged_through(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    builders.create_commits(builders.create_project(), 50)
    monkeypatch.setattr(paging, "MOST_ROWS", 45)
    answer = client.get("/projects/snake/commits/?page=2")
    assert len(answer.context["commits"]) == 5
    assert "Too many to page through" in shown_text(answer)


def test_a_first_page_is_of_as_many_as_were_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    page = paging.first_page(["a", "b", "c"], 5, 2)
    assert (list(page), page.paginator.num_pages, page.has_next()) == (["a", "b"], 3, True)
    assert paging.first_page(["a"], 1, 2).paginator.num_pages == 1
    monkeypatch.setattr(paging, "MOST_ROWS", 4)
    cut = paging.first_page(["a", "b", "c"], 5, 2).paginator
    assert (cut.count, cut.is_cut, paging.first_page(["a"], 1, 2).paginator.is_cut) == (4, True, False)


def test_newest_runs_are_found_without_a_look_at_those_of_other_projects(
    project_runs: dict[str, Run],
) -> None:
    stored = project_runs["old"]
    assert stored.project_id == stored.case.project_id, "the database says it at once"
    other = builders.create_commits(builders.create_project("other"), 1)[0]
    Run.objects.filter(pk=stored.pk).update(
        configuration=builders.get_configuration(builders.create_case(other.project, "walker"))
    )
    assert Run.objects.get(pk=stored.pk).project == other.project
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    newest = runs.project_runs(project_runs["active"].case.project)[:5]
    plan = newest.explain()
    assert "run_of_project" in plan
    assert "Sort" not in plan
    assert stored.pk not in {run.pk for run in newest}


def test_what_a_hook_asked_for_is_named_by_short_hashes(client: Client) -> None:
    project = builders.create_project()
    first, last = "0123456789" + 30 * "a", "abcdef0123" + 30 * "b"
    Trigger.objects.create(project=project, source="hook", revisions={"commit": first})
    Trigger.objects.create(project=project, source="hook", revisions={"range": f"{first}..{last}"})
    shown = shown_text(client.get("/projects/snake/triggers/"))
    assert "commit 0123456789 " in shown
    assert "range 0123456789..abcdef0123" in shown
    assert first not in shown


@pytest.mark.parametrize(
    ("state", "revisions", "told"),
    [
        ("resolved", {}, "Runs of its commit so far"),
        ("resolved", {"last": 1}, "It has no runs of its own: what was requested before is among all runs"),
        ("refused", {}, ""),
    ],
)
def test_a_request_without_runs_of_its_own_says_where_they_are(
    client: Client, state: str, revisions: dict[str, int], told: str
) -> None:
    project = builders.create_only_run(Run.State.MEASURING).commit.project
    trigger = Trigger.objects.create(project=project, source="web", state=state, revisions=revisions)
    shown = shown_text(client.get(f"/projects/snake/triggers/{trigger.pk}/"))
    assert told in shown
    assert ("measuring" in shown) is ("Runs of its commit" in told)


def test_what_is_left_of_a_request_is_cancelled_by_operators(client: Client) -> None:
    project = builders.create_project()
    line = builders.create_commits(project, 2)
    trigger = Trigger.objects.create(project=project, source="web", revisions={"last": 2}, state="resolved")
    case = builders.create_case(project)
    for commit in line:
        builders.create_run(commit, case, Run.State.REQUESTED, trigger=trigger)
    where = f"/projects/snake/triggers/{trigger.pk}/"
    assert "Cancel what is left" not in shown_text(client.get(where))
    client.force_login(create_member("operator", "operator", project))
    assert "Cancel what is left" in shown_text(client.get(where))
    assert "2 runs cancelled." in shown_text(client.post(f"{where}cancel/", follow=True))
    assert set(trigger.runs.values_list("state", flat=True)) == {"cancelled"}
    assert "Cancel what is left" not in shown_text(client.get(where))
    assert "is left to cancel" in shown_text(client.post(f"{where}cancel/", follow=True))


@pytest.mark.parametrize("number", ["0", "-1", "abc", "1.5", "²", "1 2", "00"])
def test_what_is_no_page_number_is_refused(client: Client, project_runs: dict[str, Run], number: str) -> None:
    for where in ("/projects/snake/runs/", "/projects/snake/commits/", "/regressions/", "/machines/"):
        answer = client.get(where, {"page": number})
        assert answer.status_code == 400
        assert f"page must be a whole number from 1 on, not “{number}”." in answer.content.decode()


@pytest.mark.parametrize("number", ["2", "999999", "9" * 17, "9" * 5000])
def test_a_page_beyond_the_last_one_says_so(
    client: Client, project_runs: dict[str, Run], number: str
) -> None:
    shown = client.get("/projects/snake/runs/", {"page": number})
    told = number if len(number) < 18 else "1" + "0" * 18
    assert shown.status_code == 200
    assert f"This list has no page {told}: this is its last one." in shown.content.decode()
    assert "This list has no page" not in client.get("/projects/snake/runs/?page=1").content.decode()
