"""What needs me now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Heartbeat, Run
from tests.pages import builders

pytestmark = pytest.mark.django_db


def page(client: Client, where: str = "/") -> str:
    return client.get(where).content.decode()


def test_without_a_project_it_says_what_to_type(client: Client) -> None:
    assert "manage.py add_project" in page(client)


def test_it_is_quiet_when_nothing_is_wrong(client: Client) -> None:
    builders.history()
    assert "Nothing. No open regression" in page(client)


def test_it_names_an_open_regression_with_its_size_commit_and_phase(client: Client) -> None:
    line = list(Commit.objects.filter(project=builders.history(count=4, step_at=2)).order_by("position"))
    builders.regression(builders.headline(line[0].runs.get().case), line[1], line[2])
    shown = page(client)
    assert "+38 % [35, 41]" in shown
    assert line[2].short in shown
    assert "explains 92 %" in shown


def test_a_failed_run_stays_until_it_is_measured_again(client: Client) -> None:
    found = builders.project()
    commit, case = builders.commits(found, 1)[0], builders.case(found)
    failed = builders.run(commit, case, Run.State.FAILED, failure="crash")
    assert f"Run #{failed.pk} failed: crash" in page(client)
    builders.run(commit, case)
    assert f"Run #{failed.pk} failed" not in page(client)


def test_it_names_silent_machines_and_parts(client: Client) -> None:
    builders.history()
    builders.machine("bench-2", seen=timedelta(hours=3))
    Heartbeat.objects.create(name="scheduler", seen_at=timezone.now() - timedelta(hours=1))
    shown = page(client)
    assert "Machine bench-2 is silent" in shown
    assert "The scheduler is silent" in shown


def test_it_says_when_runs_wait_for_a_pool_without_machines(client: Client) -> None:
    found = builders.project()
    builders.run(builders.commits(found, 1)[0], builders.case(found), Run.State.REQUESTED)
    assert "1 run waits in pool" in page(client)


def test_each_project_shows_its_newest_commit_and_sparklines(client: Client) -> None:
    found = builders.history(count=5)
    shown = page(client)
    assert Commit.objects.get(project=found, position=4).short in shown
    assert 'class="spark"' in shown


def test_each_project_names_the_commit_that_was_measured(client: Client) -> None:
    found = builders.history(count=2)
    newest = Commit.objects.get(project=found, position=1)
    assert f"<code>{newest.short}</code> measured" in page(client)
    newest.runs.update(state=Run.State.REQUESTED)
    older = Commit.objects.get(project=found, position=0)
    assert f"<code>{older.short}</code> measured" in page(client)
    assert f"<code>{newest.short}</code> <span>" in page(client)


def test_what_is_being_measured_shows_its_progress(client: Client) -> None:
    found = builders.project()
    builders.run(builders.commits(found, 1)[0], builders.case(found), Run.State.MEASURING, progress=0.43)
    assert 'value="0.43"' in page(client)


def test_active_runs_are_asked_for_again_until_their_number_changes(client: Client) -> None:
    found = builders.project()
    run = builders.run(builders.commits(found, 1)[0], builders.case(found), Run.State.MEASURING)
    assert 'hx-get="/work/?seen=1"' in page(client)
    assert f"#{run.pk}" in page(client, "/work/?seen=1")
    assert client.get("/work/?seen=0")["HX-Refresh"] == "true"


def test_a_quiet_overview_asks_for_nothing(client: Client) -> None:
    builders.history()
    assert "hx-get" not in page(client)


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "one", "1\x00", "²"])
def test_a_number_that_is_none_is_refused(client: Client, number: str) -> None:
    assert client.get("/work/", {"seen": number}).status_code == 404


def test_what_is_measured_stands_before_what_waits(client: Client) -> None:
    found = builders.project()
    (commit,), case = builders.commits(found, 1), builders.case(found)
    waiting = builders.run(commit, case, Run.State.REQUESTED)
    measuring = builders.run(commit, case, Run.State.MEASURING, quick=True)
    shown = page(client, "/work/?seen=2")
    assert shown.index(f"#{measuring.pk}<") < shown.index(f"#{waiting.pk}<")
