from __future__ import annotations

from collections.abc import Callable

import pytest
from paceline.manifest import Benchmark

from dashboard import runs
from dashboard.models import Case, Commit, Machine, Run

pytestmark = pytest.mark.django_db


def test_a_claim_carries_what_its_holder_needs(run: Run) -> None:
    assignment = runs.claim_run("default", "gpu-1")
    assert assignment is not None
    assert (assignment.run_id, assignment.attempt, assignment.project) == (run.pk, 1, "snakes")
    assert (assignment.benchmark, assignment.params, assignment.case_key) == ("tiny", {"size": 1}, "size=1")
    assert (assignment.repetitions, assignment.time_limit, assignment.manifest) == (3, 60, None)
    assert assignment.name == "tiny[size=1] at 0000000000"


def test_a_claim_holds_the_run(run: Run) -> None:
    assignment = runs.claim_run("default", "gpu-1")
    run.refresh_from_db()
    assert assignment is not None
    assert (run.state, run.lease, run.attempt) == (Run.State.CLAIMED, assignment.lease.token, 1)
    assert run.machine == Machine.objects.get(name="gpu-1", pool__name="default")
    assert run.lease_until is not None


def test_nothing_waits(run: Run) -> None:
    assert runs.claim_run("another", "gpu-1") is None
    runs.claim_run("default", "gpu-1")
    assert runs.claim_run("default", "gpu-1") is None


def test_the_most_urgent_then_the_oldest_is_taken(
    make_commit: Callable[[int], Commit], case: Case, benchmark: Benchmark
) -> None:
    late, urgent, early = (
        runs.request_run(make_commit(position), case, benchmark, priority=priority)
        for position, priority in ((1, 0), (2, 10), (3, 0))
    )
    Run.objects.filter(pk=early.pk).update(requested_at="2020-01-01T00:00:00Z")
    taken = [assignment.run_id for _ in range(3) if (assignment := runs.claim_run("default", "gpu-1"))]
    assert taken == [urgent.pk, early.pk, late.pk]


def test_a_run_keeps_the_machine_as_it_was(run: Run) -> None:
    runs.record_machine("gpu-1", "default", {"gpu": "H200"})
    runs.claim_run("default", "gpu-1")
    runs.record_machine("gpu-1", "default", {"gpu": "none"})
    run.refresh_from_db()
    assert run.fingerprint == {"gpu": "H200"}
