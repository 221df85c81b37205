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
    """What the sweep sends and rings: its own transaction never commits in a test."""
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(dispatch, "wake_workers", lambda pool, times=1: found.append(("ring", pool, times)))
    monkeypatch.setattr(dispatch, "send_task", lambda name, *args: found.append((name, *args)))
    return found


def bells(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    monkeypatch.setattr(dispatch, "count_waiting_messages", lambda _pool: count)


@pytest.mark.parametrize(("heard", "rung"), [(0, [("ring", "default", 1)]), (1, []), (None, [])])
def test_a_waiting_run_has_one_bell(
    run: Run, sent: list[Any], monkeypatch: pytest.MonkeyPatch, heard: int | None, rung: list[Any]
) -> None:
    bells(monkeypatch, heard)
    runs.ring_waiting()
    assert sent == rung


def test_a_lost_run_is_rung_for_in_the_same_sweep(
    run: Run, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bells(monkeypatch, 0)
    runs.claim("default", "gpu-1")
    runs.sweep()
    assert sent == []
    Run.objects.update(lease_until=LONG_AGO)
    runs.sweep()
    assert sent == [("ring", "default", 1)]


def test_a_trigger_whose_message_was_lost_is_sent_again(project: Project, sent: list[Any]) -> None:
    lost, fresh, typed = (project.triggers.create(source=source) for source in ("hook", "web", "command"))
    Trigger.objects.exclude(pk=fresh.pk).update(received_at=timezone.now() - timedelta(minutes=1))
    runs.send_unresolved()
    assert sent == [(dispatch.RESOLVE, lost.pk)]
    Trigger.objects.filter(pk=typed.pk).update(received_at=LONG_AGO)
    runs.send_unresolved()
    assert (dispatch.RESOLVE, typed.pk) in sent


def test_a_done_run_that_nobody_judged_is_sent_again(run: Run, sent: list[Any]) -> None:
    Run.objects.update(state=Run.State.DONE, finished_at=timezone.now())
    runs.send_unjudged()
    assert sent == []
    Run.objects.update(finished_at=LONG_AGO)
    runs.send_unjudged()
    assert sent == [(dispatch.JUDGE, run.pk)]
    Run.objects.update(judged_at=timezone.now())
    runs.send_unjudged()
    assert len(sent) == 1
