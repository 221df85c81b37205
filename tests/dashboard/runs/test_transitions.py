from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from dashboard import runs
from dashboard.host_protocol import RunAssignment
from dashboard.leases import LeaseLost
from dashboard.models import Commit, Run, RunLog
from dashboard.repositories import DETACHED
from dashboard.runs import WrongState
from dashboard.runs.logs import HEAD, TAIL

pytestmark = pytest.mark.django_db


@pytest.fixture
def assignment(run: Run) -> RunAssignment:
    claimed = runs.claim_run("default", "gpu-1")
    assert claimed is not None
    return claimed


def let_the_lease_end(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_run_goes_its_way(run: Run, assignment: RunAssignment) -> None:
    for state in ("preparing", "measuring", "storing"):
        runs.advance_run(assignment.lease, state)
    runs.finish_run(assignment.lease, tainted=True)
    run.refresh_from_db()
    assert (run.state, run.progress, run.tainted, run.lease_until) == ("done", 1, True, None)
    assert None not in (run.claimed_at, run.measuring_at, run.finished_at)


def test_a_host_is_told_that_no_branch_holds_a_commit(run: Run) -> None:
    Commit.objects.update(branch=DETACHED)
    claimed = runs.claim_run("default", "gpu-1")
    assert claimed is not None
    assert not claimed.on_branch


@pytest.mark.parametrize("state", ["measuring", "storing"])
def test_no_state_is_left_out(assignment: RunAssignment, state: str) -> None:
    with pytest.raises(WrongState, match="is claimed and so can't"):
        runs.advance_run(assignment.lease, state)


@pytest.mark.parametrize("state", ["claimed", "done", "requested"])
def test_a_holder_moves_to_three_states_only(assignment: RunAssignment, state: str) -> None:
    with pytest.raises(WrongState):
        runs.advance_run(assignment.lease, state)


def test_another_lease_moves_nothing(run: Run, assignment: RunAssignment) -> None:
    other = replace(assignment, lease=replace(assignment.lease, token=uuid4()))
    with pytest.raises(LeaseLost, match="no longer attempt 1's"):
        runs.advance_run(other.lease, "preparing")
    with pytest.raises(LeaseLost):
        runs.fail_run(other.lease, Run.Failure.CRASH, "It crashed.")
    run.refresh_from_db()
    assert run.state == Run.State.CLAIMED
    assert not runs.heartbeat_run(other.lease)


def test_a_failure_has_a_kind_a_reason_and_a_log(run: Run, assignment: RunAssignment) -> None:
    runs.fail_run(
        assignment.lease, "no document", "It ended\nwithout a\x00 document.", b"last words \xff\x00"
    )
    run.refresh_from_db()
    assert (run.state, run.failure) == ("failed", "no document")
    assert run.reason == "It ended without a� document."
    assert run.log.text == "last words ��"


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_an_end_is_final(run: Run, assignment: RunAssignment, end: str) -> None:
    Run.objects.filter(pk=run.pk).update(state=end)
    with pytest.raises(LeaseLost, match=f"it is {end}"):
        runs.advance_run(assignment.lease, "preparing")
    with pytest.raises(LeaseLost):
        runs.finish_run(assignment.lease, tainted=False)
    run.refresh_from_db()
    assert run.state == end


def test_a_cancelled_run_says_by_whom_and_keeps_nothing_more(run: Run, assignment: RunAssignment) -> None:
    runs.advance_run(assignment.lease, "preparing")
    assert runs.cancel_run(run.pk, "ada")
    assert not runs.heartbeat_run(assignment.lease, 0.5, "goes on", "text")
    run.refresh_from_db()
    assert (run.state, run.reason) == ("cancelled", "Cancelled by ada.")
    assert not RunLog.objects.exists()


def test_a_heartbeat_shows_progress(run: Run, assignment: RunAssignment) -> None:
    let_the_lease_end(run)
    assert runs.heartbeat_run(assignment.lease, 1.4, "repetition 2\nof 5", "one\n")
    assert runs.heartbeat_run(assignment.lease, log="two\n")
    run.refresh_from_db()
    assert (run.progress, run.activity, run.log.text) == (1, "repetition 2 of 5", "one\ntwo\n")
    assert run.lease_until > timezone.now()


@pytest.mark.parametrize("ended_by", ["its lease", "its owner"])
def test_a_run_that_waits_again_has_not_begun(run: Run, assignment: RunAssignment, ended_by: str) -> None:
    runs.advance_run(assignment.lease, "preparing")
    runs.advance_run(assignment.lease, "measuring")
    if ended_by == "its lease":
        let_the_lease_end(run)
        assert runs.requeue_lost_runs() == 1
    else:
        run.refresh_from_db()
        assert runs.release_runs(run.machine.name) == 1
    run.refresh_from_db()
    assert (run.state, run.machine, run.claimed_at, run.measuring_at) == ("requested", None, None, None)


def test_a_later_attempt_adds_to_the_log(run: Run, assignment: RunAssignment) -> None:
    runs.heartbeat_run(assignment.lease, log="before\n")
    let_the_lease_end(run)
    runs.requeue_lost_runs()
    again = runs.claim_run("default", "gpu-2")
    assert again is not None
    assert again.attempt == 2
    assert again.lease != assignment.lease
    assert run.log.text == "before\n\n--- attempt 2 on gpu-2 ---\n"


def test_a_long_log_keeps_its_head_and_its_tail(run: Run, assignment: RunAssignment) -> None:
    runs.heartbeat_run(assignment.lease, log="first line\n")
    for _ in range(5):
        runs.heartbeat_run(assignment.lease, log="x" * 100_000)
    runs.heartbeat_run(assignment.lease, log="last line")
    text = run.log.text
    assert text.startswith("first line\n")
    assert text.endswith("last line")
    assert len(text) < HEAD + TAIL + 100
    assert text.count("characters are left out here") == 1
    missing = 500_000 + len("first line\nlast line") - HEAD - TAIL
    assert f"[... {missing} characters" in text


def test_a_lone_surrogate_is_stored_as_a_replacement(run: Run, assignment: RunAssignment) -> None:
    assert runs.heartbeat_run(assignment.lease, 0.1, "odd \ud800", "\ud800")
    assert "�" in run.log.text
