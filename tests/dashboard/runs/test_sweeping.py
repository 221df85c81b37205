from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard import dispatch, runs
from dashboard.models import Project, Run, Trigger

pytestmark = pytest.mark.django_db
LONG_AGO = timezone.now() - timedelta(hours=1)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the sweep sends, and whom it wakes: its own transaction never commits in a test."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(dispatch, "wake_workers", lambda pool, times=1: calls.append(("wake", pool, times)))
    monkeypatch.setattr(dispatch, "send_task", lambda name, *args: calls.append((name, *args)))
    return calls


def set_waiting_messages(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    monkeypatch.setattr(dispatch, "count_waiting_messages", lambda _pool: count)


@pytest.mark.parametrize(("waiting", "woken"), [(0, [("wake", "default", 1)]), (1, []), (None, [])])
def test_a_waiting_run_has_one_message(
    run: Run, sent: list[Any], monkeypatch: pytest.MonkeyPatch, waiting: int | None, woken: list[Any]
) -> None:
    set_waiting_messages(monkeypatch, waiting)
    runs.wake_for_waiting_runs()
    assert sent == woken


def test_workers_are_woken_for_a_lost_run_in_the_same_sweep(
    run: Run, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_waiting_messages(monkeypatch, 0)
    runs.claim_run("default", "gpu-1")
    runs.sweep_runs()
    assert sent == []
    Run.objects.update(lease_until=LONG_AGO)
    runs.sweep_runs()
    assert sent == [("wake", "default", 1)]


def test_a_trigger_whose_message_was_lost_is_sent_again(project: Project, sent: list[Any]) -> None:
    lost, fresh, typed = (project.triggers.create(source=source) for source in ("hook", "web", "command"))
    Trigger.objects.exclude(pk=fresh.pk).update(received_at=timezone.now() - timedelta(minutes=1))
    runs.send_unresolved_triggers()
    assert sent == [(dispatch.RESOLVE, lost.pk)]
    Trigger.objects.filter(pk=typed.pk).update(received_at=LONG_AGO)
    runs.send_unresolved_triggers()
    assert (dispatch.RESOLVE, typed.pk) in sent


def test_a_done_run_that_nobody_judged_is_sent_again(run: Run, sent: list[Any]) -> None:
    Run.objects.update(state=Run.State.DONE, finished_at=timezone.now())
    runs.send_unjudged_runs()
    assert sent == []
    Run.objects.update(finished_at=LONG_AGO)
    runs.send_unjudged_runs()
    assert sent == [(dispatch.JUDGE, run.pk)]
    Run.objects.update(judged_at=timezone.now())
    runs.send_unjudged_runs()
    assert len(sent) == 1
