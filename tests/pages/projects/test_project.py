"""One project."""

from __future__ import annotations

import html

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Configuration, Metric, Run, Series, Trigger
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.conftest import get_page

pytestmark = pytest.mark.django_db


def test_an_empty_project_says_what_to_type(client: Client) -> None:
    builders.create_project("empty")
    shown = get_page(client, "/projects/empty/")
    assert "manage.py trigger empty --last 5" in shown
    assert "manage.py install_hook empty" in shown


def test_the_first_runs_are_on_their_way(client: Client) -> None:
    run = builders.create_only_run(Run.State.REQUESTED)
    shown = get_page(client, "/projects/snake/")
    assert "The first runs are on their way." in shown
    assert "Nothing is measured yet" not in shown
    Run.objects.filter(pk=run.pk).update(state=Run.State.FAILED)
    failed = get_page(client, "/projects/snake/")
    assert "None of the runs below has a value of throughput." in failed
    assert "on their way" not in failed
    assert "Nothing is measured yet" not in failed


@pytest.mark.parametrize(("source", "hinted"), [("web", True), ("hook", False), ("forge", False)])
def test_where_commits_come_by_themselves_no_hook_is_advised(
    client: Client, source: str, hinted: bool
) -> None:
    Trigger.objects.create(project=builders.create_project(), source=source, state="refused")
    assert ("To measure every new commit by itself" in get_page(client, "/projects/snake/")) is hinted


@pytest.mark.parametrize("tab", ["runs", "commits", "triggers"])
def test_an_empty_list_says_what_to_type(client: Client, tab: str) -> None:
    builders.create_project("empty")
    assert "manage.py trigger empty" in get_page(client, f"/projects/empty/{tab}/")


def test_cases_stand_beside_their_headline_metrics(client: Client) -> None:
    builders.create_history(cases=2)
    shown = get_page(client, "/projects/snake/")
    assert shown.count('scope="row"') == 2
    assert shown.index("Throughput") < shown.index("Step time") < shown.index("Peak memory")


def test_only_the_newest_version_of_a_case_is_shown(client: Client) -> None:
    builders.create_history(count=1)
    Configuration.objects.update(version=3)
    builders.create_measured_run(Commit.objects.get(), Series.objects.all()[0].case, 0.002)
    shown = get_page(client, "/projects/snake/")
    assert "version 3" in shown
    assert "version 1" not in shown


def test_a_cell_names_the_change_of_an_open_regression(client: Client) -> None:
    regression = builders.create_stepped_regression()
    assert f'href="/regressions/{regression.pk}/">worse +38 %' in get_page(client, "/projects/snake/")


def test_who_is_not_signed_in_sees_no_button(client: Client) -> None:
    builders.create_history()
    assert "<button>Measure</button>" not in get_page(client, "/projects/snake/")


def test_who_may_only_look_is_told_how_to_measure(client: Client) -> None:
    builders.create_project("empty")
    assert "to measure commits from here" in get_page(client, "/projects/empty/")
    client.force_login(User.objects.create_user("viewer"))
    shown = get_page(client, "/projects/empty/")
    assert "can make you an operator" in shown
    assert "Press <em>Measure" not in shown


def test_who_is_signed_in_can_ask_for_commits_and_benchmarks(signed_in: Client) -> None:
    builders.create_history()
    shown = get_page(signed_in, "/projects/snake/")
    assert 'action="/projects/snake/trigger/"' in shown
    assert 'name="benchmarks" value="snake_dqn"' in shown


@pytest.mark.parametrize("origin", ["", "posted", "imported"])
def test_only_what_a_trigger_asks_for_is_expected(signed_in: Client, origin: str) -> None:
    """A case of an experiment alone has no run at all."""
    run = builders.create_only_run(Run.State.DONE)
    other = builders.create_case(run.case.project, "elsewhere")
    if origin:
        builders.create_run(run.commit, other, origin=origin)
    assert [name for name, _, _ in signed_in.get("/projects/snake/").context["benchmarks"]] == ["snake_dqn"]


def test_the_form_is_understood_by_the_trigger(signed_in: Client) -> None:
    builders.create_history()
    asked = {"which": "last", "last": "3", "commit": "", "benchmarks": ["snake_dqn"]}
    signed_in.post("/projects/snake/trigger/", asked)
    trigger = Trigger.objects.get()
    assert (trigger.revisions, trigger.benchmarks) == ({"last": 3}, ["snake_dqn"])


def test_a_refused_trigger_shows_its_reason(client: Client) -> None:
    Trigger.objects.create(
        project=builders.create_project(),
        source="web",
        state="refused",
        revisions={"commit": "abc"},
        detail="No such commit.",
    )
    shown = get_page(client, "/projects/snake/triggers/")
    assert "commit abc" in shown
    assert "No such commit." in shown


def test_a_benchmark_that_fails_is_not_watched_also_while_more_is_coming(client: Client) -> None:
    run = builders.create_only_run(Run.State.FAILED)
    Run.objects.filter(pk=run.pk).update(failure="crash", reason="It fell over.", finished_at=timezone.now())
    line = run.commit
    builders.create_run(line, run.case, Run.State.REQUESTED, quick=True)
    shown = get_page(client, "/projects/snake/")
    assert "What isn't watched" in html.unescape(shown)
    assert "crash: It fell over." in shown
    assert "on their way" not in shown


def test_cases_that_lack_the_metric_are_counted(client: Client) -> None:
    project = builders.create_history(count=3).cases.get().project
    assert "no throughput" not in get_page(client, "/projects/snake/")
    other = builders.create_case(project, "imported")
    builders.create_measured_run(Commit.objects.earliest("position"), other, 0.002)
    series = Series.objects.filter(configuration__case=other)
    series.filter(metric__name="throughput").delete()
    shown = get_page(client, "/projects/snake/")
    assert '1 more case has no throughput: see it by <a href="?metric=step_time">step time</a>.' in shown
    # One of its own is offered among the others.
    series.exclude(metric__name="peak_memory").delete()
    Metric.objects.filter(name="peak_memory").update(name="gauge.ops")
    shown = get_page(client, "/projects/snake/")
    assert 'see it by <a href="?metric=gauge.ops">ops (gauge)</a>.' in shown
    assert '<option value="gauge.ops">ops (gauge)</option>' in shown


def test_runs_refresh_themselves_while_one_is_active(client: Client) -> None:
    run = builders.create_only_run(Run.State.MEASURING)
    assert 'hx-get="/projects/snake/live-runs/"' in get_page(client, "/projects/snake/")
    Run.objects.filter(pk=run.pk).update(state=Run.State.DONE)
    assert client.get("/projects/snake/live-runs/")["HX-Refresh"] == "true"


def test_an_idle_page_wakes_when_a_run_is_requested(client: Client) -> None:
    project = builders.create_history(count=3).cases.get().project
    newest = Run.objects.latest("pk")
    where = f"/projects/snake/live-runs/?seen={newest.pk}"
    assert f'hx-get="{where}"' in get_page(client, "/projects/snake/")
    assert client.get(where).status_code == 204
    run = builders.create_run(newest.commit, project.cases.get(), Run.State.REQUESTED, quick=True)
    assert client.get(where)["HX-Refresh"] == "true"
    # It ended between two looks.
    Run.objects.filter(pk=run.pk).update(state=Run.State.DONE)
    assert client.get(where)["HX-Refresh"] == "true"


def test_a_request_that_waits_behind_many_has_no_page_loaded_again_and_again(client: Client) -> None:
    project = builders.create_history(count=3).cases.get().project
    for state in ("received", *21 * ["resolved"]):
        Trigger.objects.create(project=project, source="web", state=state)
    where = f"/projects/snake/live-runs/?seen={Run.objects.latest('pk').pk}"
    assert f'hx-get="{where}"' in get_page(client, "/projects/snake/")
    assert client.get(where).status_code == 204


def test_what_is_left_of_a_request_is_cancelled_where_it_is_listed(client: Client) -> None:
    project = builders.create_history(count=3).cases.get().project
    trigger = Trigger.objects.create(project=project, source="web", state="resolved", detail="2 runs.")
    Run.objects.update(trigger=trigger)
    pages = ("/projects/snake/", "/projects/snake/triggers/")
    client.force_login(create_member("ada", "operator", project))
    assert not any("Cancel the" in get_page(client, where) for where in pages)
    Run.objects.filter(pk=Run.objects.latest("pk").pk).update(state=Run.State.REQUESTED)
    address = f'action="/projects/snake/triggers/{trigger.pk}/cancel/"'
    assert all("Cancel the 1 left" in get_page(client, where) for where in pages)
    assert all(address in get_page(client, where) for where in pages)
    client.logout()
    assert not any(address in get_page(client, where) for where in pages)


def test_what_is_measured_stands_before_what_waits_and_what_has_ended(client: Client) -> None:
    project = builders.create_history(count=12)
    case = project.cases.get()
    line = list(Commit.objects.order_by("position"))
    waiting = [builders.create_run(commit, case, Run.State.REQUESTED, quick=True) for commit in line[:6]]
    measuring = builders.create_run(line[7], case, Run.State.MEASURING, quick=True)
    shown = client.get("/projects/snake/").context
    assert [run.pk for run in shown["runs"][:3]] == [measuring.pk, waiting[0].pk, waiting[1].pk]
    assert (len(shown["runs"]), shown["more_active"]) == (9, 4)


def test_a_project_waits_for_the_runs_of_a_trigger(client: Client) -> None:
    project = builders.create_project()
    trigger = Trigger.objects.create(project=project, source="web")
    shown = get_page(client, "/projects/snake/")
    assert "Asked for: the repository is being read" in shown
    assert "Nothing is measured yet" not in shown
    assert client.get("/projects/snake/live-runs/").status_code == 200
    Trigger.objects.filter(pk=trigger.pk).update(state="refused")
    assert client.get("/projects/snake/live-runs/")["HX-Refresh"] == "true"


def test_long_lists_have_pages_and_keep_the_newest_first(client: Client) -> None:
    builders.create_commits(builders.create_project(), 50)
    newest = Commit.objects.get(position=49).short
    assert newest in get_page(client, "/projects/snake/commits/")
    older = get_page(client, "/projects/snake/commits/?page=2")
    assert newest not in older
    assert "Page 2 of 2" in older


def test_a_commit_that_began_a_regression_is_marked(client: Client) -> None:
    regression = builders.create_stepped_regression()
    shown = get_page(client, "/projects/snake/commits/")
    assert f'href="/regressions/{regression.pk}/">regression</a>' in shown


def test_a_password_in_the_repository_address_is_not_shown(client: Client) -> None:
    project = builders.create_project()
    project.repository = "https://bot:hunter2@git.example.org/snake.git"
    project.save()
    shown = get_page(client, "/projects/snake/")
    assert "https://git.example.org/snake.git" in shown
    assert "hunter2" not in shown


def test_there_is_no_page_of_an_unknown_project(client: Client) -> None:
    answer = client.get("/projects/nowhere/")
    assert answer.status_code == 404
    assert "nothing at this address" in answer.content.decode()
