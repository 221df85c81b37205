"""What needs me now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard import dispatch, failed_jobs
from dashboard.models import Case, Commit, Configuration, Delivery, Heartbeat, Run
from dashboard.repositories import DETACHED
from tests.pages import builders
from tests.pages.conftest import get_page

pytestmark = pytest.mark.django_db


def test_without_a_project_it_says_what_to_type(client: Client) -> None:
    assert "manage.py add_project" in get_page(client)


def test_it_is_quiet_when_nothing_is_wrong(client: Client) -> None:
    builders.create_history()
    assert "Nothing. No open regression" in get_page(client)


def test_it_names_an_open_regression_with_its_size_commit_and_phase(client: Client) -> None:
    regression = builders.create_stepped_regression()
    shown = get_page(client)
    assert "+38 % [35, 41]" in shown
    assert regression.first_bad.short in shown
    assert "explains 92 %" in shown


def test_a_failed_run_stays_until_it_is_measured_again(client: Client) -> None:
    project = builders.create_project()
    commit, case = builders.create_commits(project, 1)[0], builders.create_case(project)
    failed = builders.create_run(commit, case, Run.State.FAILED, failure="crash")
    assert f"Run #{failed.pk} failed: crash" in get_page(client)
    Commit.objects.update(branch=DETACHED)
    assert f"Run #{failed.pk} failed" not in get_page(client), "a force-push took it off its branch"
    Commit.objects.update(branch="main")
    builders.create_run(commit, case)
    assert f"Run #{failed.pk} failed" not in get_page(client)


def test_of_commits_that_fail_one_after_the_other_the_newest_is_named(client: Client) -> None:
    project = builders.create_project()
    case = builders.create_case(project)
    first, second = (
        builders.create_run(commit, case, Run.State.FAILED, failure="crash")
        for commit in builders.create_commits(project, 2)
    )
    shown = get_page(client)
    assert f"Run #{second.pk} failed: crash" in shown
    assert f"Run #{first.pk} failed" not in shown
    # What failed long ago is no reason to keep still about what fails now.
    Run.objects.filter(pk=second.pk).update(finished_at=timezone.now() - timedelta(days=30))
    assert f"Run #{first.pk} failed: crash" in get_page(client)


def test_it_names_silent_machines_and_parts(client: Client) -> None:
    builders.create_history()
    builders.create_machine("bench-2", seen=timedelta(hours=3))
    builders.create_machine("bench-3", too_few_bytes=12 * 2**20)
    Heartbeat.objects.create(name="scheduler", seen_at=timezone.now() - timedelta(hours=1))
    shown = get_page(client)
    assert "Machine bench-2 is silent" in shown
    assert "The scheduler is silent" in shown
    assert "The disk of machine bench-3 is full" in shown


def test_it_says_that_an_alert_was_given_up(client: Client) -> None:
    regression = builders.create_stepped_regression()
    delivery = builders.create_delivery(regression, Delivery.State.FAILED)
    shown = get_page(client)
    assert "An alert never arrived" in shown
    assert "t…@example.org" in shown
    assert "team@example.org" not in shown
    assert "The receiver did not answer in 10 s." in shown
    Delivery.objects.update(next_attempt_at=timezone.now() - timedelta(days=8))
    assert "An alert never arrived" not in get_page(client)
    Delivery.objects.update(next_attempt_at=timezone.now())
    delivery.channel.enabled = False
    delivery.channel.save()
    assert "An alert never arrived" not in get_page(client)


def test_it_says_which_of_its_own_jobs_fail(client: Client) -> None:
    builders.create_history()
    failed_jobs.note_failure(dispatch.JUDGE, (12,), KeyError("x"))
    shown = get_page(client)
    assert "Judging run 12 failed once, next try at" in shown
    assert "KeyError: &#x27;x&#x27;" in shown


def test_it_says_when_runs_wait_for_a_pool_without_machines(client: Client) -> None:
    builders.create_only_run(Run.State.REQUESTED)
    assert "1 run waits in pool" in get_page(client)


def test_each_project_shows_its_newest_commit_and_sparklines(client: Client) -> None:
    project = builders.create_history(count=5)
    shown = get_page(client)
    assert Commit.objects.get(project=project, position=4).short in shown
    assert 'class="spark"' in shown
    assert "(quick)" not in shown
    Configuration.objects.update(quick=True)
    assert f"{Case.objects.get()} (quick)</span>" in get_page(client)


def test_each_project_names_the_commit_that_was_measured(client: Client) -> None:
    project = builders.create_history(count=2)
    newest = Commit.objects.get(project=project, position=1)
    assert f"<code>{newest.short}</code></a> measured" in get_page(client)
    newest.runs.update(state=Run.State.REQUESTED)
    older = Commit.objects.get(project=project, position=0)
    assert f"<code>{older.short}</code></a> measured" in get_page(client)
    assert f"<code>{newest.short}</code></a> <span>" in get_page(client)


def test_a_project_whose_first_runs_wait_is_not_told_to_measure(client: Client) -> None:
    run = builders.create_only_run(Run.State.REQUESTED)
    assert "its first runs are on their way" in get_page(client)
    Run.objects.filter(pk=run.pk).update(state=Run.State.FAILED)
    assert "never measured" in get_page(client)


def test_what_is_being_measured_shows_its_progress(client: Client) -> None:
    builders.create_only_run(Run.State.MEASURING, progress=0.43)
    assert 'value="0.43"' in get_page(client)


def test_active_runs_are_asked_for_again_until_their_number_changes(client: Client) -> None:
    run = builders.create_only_run(Run.State.MEASURING)
    assert 'hx-get="/work/?seen=1"' in get_page(client)
    assert f"#{run.pk}" in get_page(client, "/work/?seen=1")
    assert client.get("/work/?seen=0")["HX-Refresh"] == "true"


def test_a_quiet_overview_asks_less_often_and_wakes_when_something_starts(client: Client) -> None:
    project = builders.create_history()
    assert 'hx-get="/work/?seen=0" hx-trigger="every 15s"' in get_page(client)
    assert client.get("/work/?seen=0").status_code == 200
    builders.create_run(project.commits.all()[0], project.cases.get(), Run.State.MEASURING)
    assert client.get("/work/?seen=0")["HX-Refresh"] == "true"


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "one", "²"])
def test_a_number_that_is_none_is_refused(client: Client, number: str) -> None:
    assert client.get("/work/", {"seen": number}).status_code == 400


def test_what_is_measured_stands_before_what_waits(client: Client) -> None:
    project = builders.create_project()
    (commit,), case = builders.create_commits(project, 1), builders.create_case(project)
    waiting = builders.create_run(commit, case, Run.State.REQUESTED)
    measuring = builders.create_run(commit, case, Run.State.MEASURING, quick=True)
    shown = get_page(client, "/work/?seen=2")
    assert shown.index(f"#{measuring.pk}<") < shown.index(f"#{waiting.pk}<")
