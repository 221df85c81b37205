"""A job that fails for a reason nobody foresaw pauses longer each time, is shown, and is set aside."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from dashboard import dispatch, failed_jobs, regressions, retention, runs
from dashboard.models import FailedJob, Run
from dashboard.postgresql import lost_connections
from dashboard.sentences.administration.failed_jobs import describe_job
from tests.workers.conftest import Requested
from workers.site import tasks

pytestmark = pytest.mark.django_db
Sent = list[tuple[Any, ...]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    messages: Sent = []
    monkeypatch.setattr(dispatch, "send_task", lambda *task: messages.append(task))
    return messages


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception | None], list[int]]:
    """Has judgement fail with this error, or go well; the runs that it was asked for."""

    def replace(error: Exception | None) -> list[int]:
        asked: list[int] = []

        def judge_run(run: int) -> None:
            asked.append(run)
            if error:
                raise error

        monkeypatch.setattr(regressions, "judge_run", judge_run)
        return asked

    return replace


def end_pause() -> None:
    FailedJob.objects.exclude(next_try_at=None).update(next_try_at=timezone.now())


def test_pauses_grow_until_the_job_is_set_aside(judge: Any, sent: Sent) -> None:
    asked = judge(KeyError("x"))
    pauses = []
    for _ in range(6):
        with pytest.raises(KeyError):
            tasks.judge_run.run(7)
        tasks.judge_run.run(7)  # A message that comes in the pause does nothing.
        job = FailedJob.objects.get()
        pauses.append(job.next_try_at and round((job.next_try_at - timezone.now()).total_seconds(), -1))
        end_pause()
    assert pauses == [30, 120, 600, 3600, 21600, None]
    assert asked == [7] * 6
    failed_jobs.send_due_jobs()
    assert sent == []
    assert describe_job(job) == "Judging run 7 failed 6 times and is set aside"
    assert job.errors == ["KeyError: 'x'"] * 6


def test_what_the_schedule_asks_for_is_never_set_aside() -> None:
    for _ in range(9):
        job = failed_jobs.note_failure(dispatch.REMIND, (), KeyError("x"))
    assert job.next_try_at is not None


def test_a_part_of_pruning_that_fails_keeps_the_others_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(retention, "prune_runs", lambda **_: [].pop())
    monkeypatch.setattr(retention, "drop_expired_sessions", lambda: done.append("sessions"))
    with pytest.raises(IndexError):
        tasks.prune_runs.run()
    assert (done, FailedJob.objects.get().task) == (["sessions"], dispatch.PRUNE)


def test_what_is_due_is_sent_again_and_forgotten_once_it_went_well(judge: Any, sent: Sent) -> None:
    judge(KeyError("x"))
    with pytest.raises(KeyError):
        tasks.judge_run.run(7)
    failed_jobs.send_due_jobs()
    assert sent == []
    end_pause()
    failed_jobs.send_due_jobs()
    assert sent == [(dispatch.JUDGE, 7)]
    judge(None)
    tasks.judge_run.run(7)
    assert not FailedJob.objects.exists()


def test_a_passing_trouble_counts_as_no_failure(judge: Any) -> None:
    judge(OperationalError("the database is away"))
    with pytest.raises(OperationalError):
        tasks.judge_run.__wrapped__(7)
    assert not FailedJob.objects.exists()


@pytest.mark.parametrize(("is_lost", "failures"), [(False, [1]), (True, [])])
def test_what_the_driver_refuses_counts_as_a_failure(judge: Any, is_lost: bool, failures: list[int]) -> None:
    error = OperationalError("said by the driver")
    error.__cause__ = psycopg.OperationalError("number of parameters must be between 0 and 65535")
    error.__cause__.__dict__[lost_connections.MARK] = is_lost
    judge(error)
    with pytest.raises(OperationalError):
        tasks.judge_run.__wrapped__(7)
    assert list(FailedJob.objects.values_list("failures", flat=True)) == failures


def test_one_job_does_not_hold_up_another(judge: Any) -> None:
    failed_jobs.note_failure(dispatch.JUDGE, (7,), KeyError("x"))
    asked = judge(None)
    tasks.judge_run.run(8)
    assert asked == [8]


def test_no_sweep_sends_what_fails(sent: Sent, requested: Requested) -> None:
    run = requested()
    sent.clear()
    Run.objects.update(state="done", finished_at=timezone.now() - timedelta(hours=1))
    runs.sweep_runs()
    assert sent == [(dispatch.JUDGE, run.pk)]
    failed_jobs.note_failure(dispatch.JUDGE, (run.pk,), KeyError("x"))
    runs.sweep_runs()
    assert len(sent) == 1


def test_they_are_listed_tried_and_dropped_by_command(sent: Sent) -> None:
    for run in (7, 8):
        failed_jobs.note_failure(dispatch.JUDGE, (run,), ValueError("no\0 text"))

    def call_for_output(*arguments: str) -> str:
        output = StringIO()
        call_command("failed_jobs", *arguments, stdout=output)
        return output.getvalue()

    first, second = FailedJob.objects.order_by("pk")
    assert f"{first.pk}: Judging run 7 failed once, next try at" in call_for_output()
    assert "2 jobs are failing." in call_for_output()
    assert call_for_output(str(second.pk), "--retry") == "1 job is tried again.\n"
    assert sent == [(dispatch.JUDGE, 8)]
    assert call_for_output("--drop") == "2 jobs are forgotten.\n"
    with pytest.raises(CommandError, match=f"There is no failed job {first.pk}"):
        call_for_output(str(first.pk))
