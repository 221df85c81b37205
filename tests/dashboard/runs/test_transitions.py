from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from dashboard import runs
from dashboard.models import Run, RunLog
from dashboard.runs import Assignment, LeaseLost, WrongState
from dashboard.runs.logs import HEAD, TAIL

pytestmark = pytest.mark.django_db


@pytest.fixture
def assignment(run: Run) -> Assignment:
    claimed = runs.claim("default", "gpu-1")
    assert claimed is not None
    return claimed


def let_the_lease_end(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_run_goes_its_way(run: Run, assignment: Assignment) -> None:
    for state in ("preparing", "measuring", "storing"):
        runs.advance(assignment, state)
    runs.finish(assignment, tainted=True)
    run.refresh_from_db()
    assert (run.state, run.progress, run.tainted, run.lease_until) == ("done", 1, True, None)
    assert None not in (run.claimed_at, run.measuring_at, run.finished_at)


def test_what_a_stopped_site_held_is_requested_at_once(run: Run, assignment: Assignment) -> None:
    runs.advance(assignment, "preparing")
    assert (runs.release("gpu-2"), runs.release("gpu-1")) == (0, 1)
    run.refresh_from_db()
    assert (run.state, run.attempt, run.machine) == ("requested", 0, None)
    assert not runs.heartbeat(assignment)


@pytest.mark.parametrize("state", ["measuring", "storing"])
def test_no_state_is_left_out(assignment: Assignment, state: str) -> None:
    with pytest.raises(WrongState, match="is claimed and so can't"):
        runs.advance(assignment, state)


@pytest.mark.parametrize("state", ["claimed", "done", "requested"])
def test_a_holder_moves_to_three_states_only(assignment: Assignment, state: str) -> None:
    with pytest.raises(WrongState):
        runs.advance(assignment, state)


def test_another_lease_moves_nothing(run: Run, assignment: Assignment) -> None:
    other = replace(assignment, lease=uuid4())
    with pytest.raises(LeaseLost, match="no longer attempt 1's"):
        runs.advance(other, "preparing")
    with pytest.raises(LeaseLost):
        runs.fail(other, Run.Failure.CRASH, "It crashed.")
    run.refresh_from_db()
    assert run.state == Run.State.CLAIMED
    assert not runs.heartbeat(other)


def test_a_failure_has_a_kind_a_reason_and_a_log(run: Run, assignment: Assignment) -> None:
    runs.fail(assignment, "no document", "It ended\nwithout a\x00 document.", b"last words \xff\x00")
    run.refresh_from_db()
    assert (run.state, run.failure) == ("failed", "no document")
    assert run.reason == "It ended without a� document."
    assert run.log.text == "last words ��"


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_an_end_is_final(run: Run, assignment: Assignment, end: str) -> None:
    Run.objects.filter(pk=run.pk).update(state=end, lease_until=timezone.now() - timedelta(days=1))
    assert not runs.heartbeat(assignment)
    assert not runs.cancel(run.pk, "ada")
    assert runs.requeue_lost() == 0
    with pytest.raises(LeaseLost):
        runs.fail(assignment, Run.Failure.CRASH, "Late.")
    with pytest.raises(LeaseLost):
        runs.advance(assignment, "preparing")
    run.refresh_from_db()
    assert run.state == end


def test_a_cancelled_run_stops_its_holder(run: Run, assignment: Assignment) -> None:
    runs.advance(assignment, "preparing")
    assert runs.heartbeat(assignment)
    assert runs.cancel(run.pk, "ada")
    assert not runs.heartbeat(assignment, 0.5, "goes on", "text")
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "Cancelled by ada.")
    assert not RunLog.objects.exists()


def test_a_heartbeat_shows_progress(run: Run, assignment: Assignment) -> None:
    let_the_lease_end(run)
    assert runs.heartbeat(assignment, 1.4, "repetition 2\nof 5", "one\n")
    assert runs.heartbeat(assignment, log="two\n")
    run.refresh_from_db()
    assert (run.progress, run.activity, run.log.text) == (1, "repetition 2 of 5", "one\ntwo\n")
    assert run.lease_until > timezone.now()


def test_a_lost_run_is_requested_again(run: Run, assignment: Assignment) -> None:
    runs.advance(assignment, "preparing")
    let_the_lease_end(run)
    assert runs.requeue_lost() == 1
    run.refresh_from_db()
    assert (run.state, run.machine, run.attempt) == ("requested", None, 1)
    assert not runs.heartbeat(assignment)


def test_a_run_is_held_while_its_lease_lasts(run: Run, assignment: Assignment) -> None:
    assert runs.requeue_lost() == 0


def test_a_later_attempt_adds_to_the_log(run: Run, assignment: Assignment) -> None:
    runs.heartbeat(assignment, log="before\n")
    let_the_lease_end(run)
    runs.requeue_lost()
    again = runs.claim("default", "gpu-2")
    assert again is not None
    assert again.attempt == 2
    assert again.lease != assignment.lease
    assert run.log.text == "before\n\n--- attempt 2 on gpu-2 ---\n"


def test_a_run_that_is_lost_too_often_fails(run: Run) -> None:
    for _ in range(Run.MOST_ATTEMPTS):
        assert runs.claim("default", "gpu-1")
        let_the_lease_end(run)
        runs.requeue_lost()
    run.refresh_from_db()
    assert (run.state, run.failure, run.attempt) == ("failed", "lost", 3)
    assert "lost 3 times" in run.reason


def test_a_long_log_keeps_its_head_and_its_tail(run: Run, assignment: Assignment) -> None:
    runs.heartbeat(assignment, log="first line\n")
    for _ in range(5):
        runs.heartbeat(assignment, log="x" * 100_000)
    runs.heartbeat(assignment, log="last line")
    text = run.log.text
    assert text.startswith("first line\n")
    assert text.endswith("last line")
    assert len(text) < HEAD + TAIL + 100
    assert text.count("characters are left out here") == 1
    missing = 500_000 + len("first line\nlast line") - HEAD - TAIL
    assert f"[... {missing} characters" in text


def test_a_lone_surrogate_is_stored_as_a_replacement(run: Run, assignment: Assignment) -> None:
    assert runs.heartbeat(assignment, 0.1, "odd \ud800", "\ud800")
    assert "�" in run.log.text
