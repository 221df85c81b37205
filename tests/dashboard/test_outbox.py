"""What no row speaks of is sent again until it was done, whatever becomes of its message."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard import dispatch, failed_jobs, outbox, pull_requests, regressions, runs
from dashboard.models import OutboxMessage
from workers.site import tasks

pytestmark = pytest.mark.django_db
Sent = list[tuple[Any, ...]]
CALL = (dispatch.PUBLISH_CHECK, 7)


def grow_old() -> None:
    OutboxMessage.objects.update(send_again_at=timezone.now() - timedelta(seconds=1))


def test_what_was_lost_is_sent_again_once_in_a_while(sent: Sent) -> None:
    outbox.enqueue_message(*CALL)
    outbox.send_forgotten_messages()
    assert sent == [CALL]
    grow_old()
    outbox.send_forgotten_messages()
    outbox.send_forgotten_messages()
    assert sent == [CALL] * 2


def test_what_was_asked_for_twice_is_sent_again_once(sent: Sent) -> None:
    outbox.enqueue_message(*CALL)
    outbox.enqueue_message(*CALL)
    grow_old()
    sent.clear()
    outbox.send_forgotten_messages()
    assert sent == [CALL]


def test_it_is_dropped_once_it_was_done(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox.enqueue_message(*CALL)
    outbox.enqueue_message(dispatch.PUBLISH_CHECK, 8)
    # Meanwhile there is more to tell of the same check.
    monkeypatch.setattr(pull_requests, "publish_check", lambda _: outbox.enqueue_message(*CALL))
    tasks.publish_check.run(7)
    assert sorted(OutboxMessage.objects.values_list("arguments__0", flat=True)) == [7, 8]
    monkeypatch.setattr(pull_requests, "publish_check", lambda _: None)
    tasks.publish_check.run(7)
    assert OutboxMessage.objects.get().arguments == [8]


def test_what_fails_is_sent_again_after_its_pauses_alone(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox.enqueue_message(*CALL)
    monkeypatch.setattr(pull_requests, "publish_check", lambda _: {}["x"])
    with pytest.raises(KeyError):
        tasks.publish_check.run(7)
    grow_old()
    sent.clear()
    outbox.send_forgotten_messages()
    assert (sent, OutboxMessage.objects.count()) == ([], 1)


def test_a_job_that_somebody_gives_up_is_sent_by_nobody(sent: Sent) -> None:
    outbox.enqueue_message(*CALL)
    job = failed_jobs.note_failure(*CALL[:1], CALL[1:], KeyError("x"))
    assert failed_jobs.drop_jobs(type(job).objects.all()) == 1
    assert not OutboxMessage.objects.exists()


def test_a_job_may_have_any_number_of_arguments() -> None:
    commits = list(range(100_000, 105_000))
    job = failed_jobs.note_failure(dispatch.HISTORY_REWRITTEN, (1, commits, ["main"]), KeyError("x"))
    assert failed_jobs.note_failure(dispatch.HISTORY_REWRITTEN, (1, commits, ["main"]), KeyError("x")) == job


def test_a_message_that_comes_late_does_nothing_again(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[Any, ...]] = []

    def judge_rewritten(*arguments: Any) -> None:
        done.append(arguments)
        # While it is under way nobody sends it once more.
        OutboxMessage.objects.exclude(send_again_at__gt=timezone.now() + outbox.SEND_AGAIN_AFTER).update(
            task="other"
        )

    monkeypatch.setattr(regressions, "history_rewritten", judge_rewritten)
    outbox.enqueue_message(dispatch.HISTORY_REWRITTEN, 1, [2], ["main"])
    for _ in range(2):
        tasks.history_rewritten.run(1, [2], ["main"])
    assert (done, OutboxMessage.objects.count()) == ([(1, [2], ["main"])], 0)


def test_what_a_passing_trouble_kept_is_sent_again_soon(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_busy(_: int) -> None:
        raise runs.Busy("Another process tells of it.")

    outbox.enqueue_message(*CALL)
    monkeypatch.setattr(pull_requests, "publish_check", find_busy)
    with pytest.raises(runs.Busy):
        tasks.publish_check.__wrapped__(7)
    soon = timezone.now() + outbox.SEND_AGAIN_AFTER + timedelta(seconds=1)
    assert OutboxMessage.objects.filter(send_again_at__lt=soon).count() == 1
