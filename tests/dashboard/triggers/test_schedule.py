"""Schedules of a policy, from their time to the runs that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from dashboard import runs, triggers
from dashboard.models import Project, Run, Schedule, Trigger
from dashboard.policy.newest_manifest import follow_manifest_policy
from dashboard.triggers.schedule import trigger_schedule
from tests.dashboard.conftest import MANIFEST, Repository

pytestmark = pytest.mark.django_db

NIGHTLY = '\n[policy.schedule.nightly]\ncron = "0 3 * * *"\nbenchmarks = ["other"]\n'


@pytest.fixture
def scheduled(tracked: Project, repository: Repository) -> Project:
    repository.commit("Measure nightly", paceline_toml=MANIFEST + NIGHTLY)
    tracked.mirror.fetch()
    follow_manifest_policy(tracked)
    return tracked


def let_time_pass(**span: float) -> None:
    for row in Schedule.objects.all():
        Schedule.objects.filter(pk=row.pk).update(next_at=row.next_at - timedelta(**span))


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let the site's clock stand still at a moment."""
    return lambda text: monkeypatch.setattr(timezone, "now", lambda: datetime.fromisoformat(text))


def resolve_all() -> Trigger:
    for key in Trigger.objects.filter(state="received").values_list("pk", flat=True):
        runs.resolve_trigger(key)
    return Trigger.objects.latest("pk")


def test_it_asks_when_its_time_has_come(scheduled: Project) -> None:
    triggers.send_due_schedules()
    assert not Trigger.objects.exists()
    let_time_pass(days=1)
    triggers.send_due_schedules()
    trigger = resolve_all()
    assert (trigger.source, trigger.schedule, trigger.detail) == ("schedule", "nightly", "1 run at 1 commit.")
    run = Run.objects.get()
    assert (run.case.benchmark, run.priority) == ("other", -10)


def test_it_asks_at_its_minute_each_night(
    tracked: Project, repository: Repository, set_clock: Callable[[str], None]
) -> None:
    night = (
        f'{MANIFEST}\n[policy]\ntime_zone = "Europe/Berlin"\n[policy.schedule.nightly]\ncron = "30 3 * * *"\n'
    )
    repository.commit("Measure nightly", paceline_toml=night)
    tracked.mirror.fetch()
    set_clock("2026-03-27T12:00:00+01:00")
    follow_manifest_policy(tracked)
    asked = {}
    # Summer time begins in the night between.
    for moment in (
        "2026-03-28T03:29:59+01:00",
        "2026-03-28T03:30:00+01:00",
        "2026-03-28T03:30:10+01:00",
        "2026-03-29T03:29:59+02:00",
        "2026-03-29T03:30:00+02:00",
        "2026-03-30T03:29:59+02:00",
    ):
        set_clock(moment)
        triggers.send_due_schedules()
        asked[moment] = Trigger.objects.count()
    assert list(asked.values()) == [0, 1, 1, 1, 2, 2]


def test_what_was_missed_in_an_outage_is_caught_up_once(scheduled: Project) -> None:
    let_time_pass(days=30)
    triggers.send_due_schedules()
    triggers.send_due_schedules()
    assert Trigger.objects.count() == 1
    assert Schedule.objects.get().next_at > timezone.now()


def test_two_sweeps_ask_once(scheduled: Project) -> None:
    let_time_pass(days=1)
    row = Schedule.objects.get()
    assert [trigger_schedule(row) is not None, trigger_schedule(row) is not None] == [True, False]


def test_what_is_measured_already_is_skipped(scheduled: Project) -> None:
    for _ in range(2):
        let_time_pass(days=1)
        triggers.send_due_schedules()
        trigger = resolve_all()
        Run.objects.update(state="done")
    assert trigger.detail == "Nothing to do: every case is measured at these commits already."


def test_always_measures_again(scheduled: Project, repository: Repository) -> None:
    Project.objects.update(policy='[policy.schedule.nightly]\ncron = "0 3 * * *"\nalways = true')
    for _ in range(2):
        let_time_pass(days=1)
        triggers.send_due_schedules()
        resolve_all()
        Run.objects.update(state="done")
    assert Run.objects.count() == 6


def test_a_push_leaves_nightly_cases_alone(scheduled: Project) -> None:
    trigger = scheduled.triggers.create(source="hook", revisions={"commit": "main"})
    runs.resolve_trigger(trigger.pk)
    assert set(Run.objects.values_list("configuration__case__benchmark", flat=True)) == {"tiny"}


def test_a_schedule_follows_the_manifest(scheduled: Project, repository: Repository) -> None:
    before = Schedule.objects.get().next_at
    text = NIGHTLY.replace("0 3", "30 4")
    repository.commit("Later", paceline_toml=MANIFEST + text)
    scheduled.mirror.fetch()
    follow_manifest_policy(scheduled)
    assert Schedule.objects.get().next_at != before
    repository.commit("Never", paceline_toml=MANIFEST)
    scheduled.mirror.fetch()
    follow_manifest_policy(scheduled)
    assert not Schedule.objects.exists()


def test_a_broken_manifest_changes_no_schedule(scheduled: Project, repository: Repository) -> None:
    repository.commit("Break it", paceline_toml="[policy")
    scheduled.mirror.fetch()
    follow_manifest_policy(scheduled)
    assert Schedule.objects.exists()


def test_a_schedule_that_is_gone_asks_for_nothing(scheduled: Project) -> None:
    trigger = scheduled.triggers.create(source="schedule", schedule="weekly")
    runs.resolve_trigger(trigger.pk)
    trigger.refresh_from_db()
    assert (trigger.state, trigger.detail) == ("refused", "The policy has no schedule weekly any more.")
