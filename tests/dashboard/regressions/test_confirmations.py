from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from dashboard.regressions.confirmations import ConfirmationAssignment, PairMeasured
from django.db.models.functions import Now
from django.utils import timezone

from dashboard.management.commands.trigger import describe_wait
from dashboard.models import Case, Confirmation, Machine, Project, Run
from dashboard.regressions import confirmations
from dashboard.runs import LeaseLost
from tests.dashboard import factories
from tests.dashboard.regressions.test_settling import regression

EVEN = (1.0, 1.01, 0.99, 1.005, 0.995)


@pytest.fixture
def row(project: Project) -> Confirmation:
    line = factories.create_commits(project, 8)
    made = regression(line, 5, "step_time", 5)
    return Confirmation.objects.create(
        regression=made,
        purpose="confirm",
        good=line[4],
        bad=line[5],
        series=made.series,
        pool=made.series.pool,
        before=1.0,
        after=1.4,
    )


@pytest.fixture
def held(row: Confirmation) -> ConfirmationAssignment:
    taken = confirmations.claim("default", "bench-1")
    assert taken is not None
    return taken


def pair(index: int, good: float, bad: float, disturbed: bool = False) -> PairMeasured:
    return PairMeasured(index, index % 2 == 0, good, bad, disturbed, 6.0)


def measured(held: ConfirmationAssignment, ratio: float, disturbed: bool = False) -> Iterator[str]:
    """Add pairs of this ratio until there is a verdict."""
    for index in range(30):
        noise = EVEN[index % len(EVEN)]
        verdict = confirmations.add_pair(held, pair(index, 1.0, ratio * noise, disturbed))
        yield verdict
        if verdict:
            return


def test_runs_that_wait_say_which_proof_they_wait_for(held: ConfirmationAssignment) -> None:
    confirmations.heartbeat(held, "pair 2, good commit 0123456789")
    assert describe_wait().endswith(": pair 2, good commit 0123456789")


def test_one_of_two_claims_wins(row: Confirmation) -> None:
    first, second = (confirmations.claim("default", "bench-1") for _ in range(2))
    assert first is not None
    assert (first.good, first.bad, second) == (row.good.hash, row.bad.hash, None)


@pytest.mark.parametrize(("ratio", "verdict"), [(1.4, "confirmed"), (1.0, "refuted")])
def test_pairs_decide(row: Confirmation, held: ConfirmationAssignment, ratio: float, verdict: str) -> None:
    *_, last = measured(held, ratio)
    row.refresh_from_db()
    assert (last, row.verdict, row.state) == (verdict, verdict, "done")
    assert (row.low or 9) < ratio < (row.high or 0)
    assert row.pairs.count() <= 6


def test_a_disturbed_pair_is_kept_and_not_weighed(row: Confirmation, held: ConfirmationAssignment) -> None:
    *_, last = measured(held, 1.4, disturbed=True)
    row.refresh_from_db()
    assert (last, row.pairs.count()) == ("undecided", 24)
    assert row.reason == "only 0 of 24 pairs were undisturbed"


def test_a_pair_is_stored_once(row: Confirmation, held: ConfirmationAssignment) -> None:
    for _ in range(2):
        confirmations.add_pair(held, pair(0, 1.0, 1.4))
    row.refresh_from_db()
    assert (row.pairs.count(), row.seconds) == (1, 6.0)


def test_a_lost_worker_costs_no_pair(row: Confirmation, held: ConfirmationAssignment) -> None:
    confirmations.add_pair(held, pair(0, 1.0, 1.4))
    Confirmation.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert confirmations.requeue_lost() == 1
    with pytest.raises(LeaseLost):
        confirmations.add_pair(held, pair(1, 1.0, 1.4))
    again = confirmations.claim("default", "bench-1")
    assert again is not None
    assert (again.pairs, again.attempt) == (1, 2)


def test_what_is_lost_too_often_is_undecided(row: Confirmation) -> None:
    Confirmation.objects.update(state="measuring", attempt=3, lease=uuid4(), lease_until=Now() - timedelta(1))
    confirmations.requeue_lost()
    row.refresh_from_db()
    assert (row.state, row.verdict) == ("done", "undecided")
    assert "lost 3 times" in row.reason


def test_a_cancelled_one_is_no_longer_its_holders(row: Confirmation, held: ConfirmationAssignment) -> None:
    assert confirmations.cancel(Confirmation.objects.all(), "No longer wanted.") == 1
    assert not confirmations.heartbeat(held, "pair 2")


def test_confirmations_leave_three_quarters_to_waiting_runs(row: Confirmation, of_case: Case) -> None:
    machine = Machine.objects.get(name="bench-1")
    now = timezone.now()
    done = factories.create_run(row.good, of_case, claimed_at=now - timedelta(hours=1), finished_at=now)
    other = Confirmation.objects.get(pk=row.pk)
    other.pk, other.lease, other.state, other.machine = None, uuid4(), "done", machine
    other.seconds, other.measuring_at = 3600.0, now
    other.save()
    assert confirmations.claim("default", "bench-1") is not None  # No run waits.
    Confirmation.objects.filter(pk=row.pk).update(state="requested")
    factories.create_run(row.bad, of_case, state=Run.State.REQUESTED, machine=None)
    assert confirmations.claim("default", "bench-1") is None
    Confirmation.objects.filter(pk=other.pk).update(seconds=600.0)
    assert confirmations.claim("default", "bench-1") is not None
    assert done.machine == machine


@pytest.fixture
def of_case(project: Project) -> Case:
    return factories.create_case(project, benchmark="other")


def test_a_project_has_a_budget_of_its_own(row: Confirmation, held: ConfirmationAssignment) -> None:
    Project.objects.update(confirmation_pairs=5)
    *verdicts, last = measured(held, 1.4, disturbed=True)
    assert (len(verdicts), last) == (4, "undecided")


def test_what_looks_whole_is_told_halfway(row: Confirmation, held: ConfirmationAssignment) -> None:
    Confirmation.objects.update(purpose="bisect")
    shares = (1.0 + 0.6 * (-1) ** (index // 2) for index in range(24))
    found = (confirmations.add_pair(held, pair(index, 1.0, 1.4**share)) for index, share in enumerate(shares))
    assert next(verdict for verdict in found if verdict) == "bad"
    row.refresh_from_db()
    assert (row.pairs.count(), row.reason) == (
        12,
        "after 12 pairs in 72 s it surely has a part of the step at least",
    )


@pytest.mark.parametrize(("wobble", "verdict"), [(0.45, "bad"), (3.0, "undecided")])
def test_a_bisection_step_ends_with_what_is_sure(
    row: Confirmation, held: ConfirmationAssignment, wobble: float, verdict: str
) -> None:
    Confirmation.objects.update(purpose="bisect")
    Project.objects.update(confirmation_pairs=16)
    found = [
        confirmations.add_pair(held, pair(index, 1.0, 1.4 ** (0.6 + wobble * (-1) ** (index // 2))))
        for index in range(16)
    ]
    row.refresh_from_db()
    assert (found, row.verdict) == ([""] * 15 + [verdict], verdict)
    assert row.reason.startswith("after 16 pairs in 96 s ")


def test_minutes_end_it_too(row: Confirmation, held: ConfirmationAssignment) -> None:
    Project.objects.update(confirmation_minutes=0.5)
    *verdicts, last = measured(held, 1.4, disturbed=True)
    assert (len(verdicts), last) == (4, "undecided")


def test_too_few_pairs_within_the_budget_are_no_disturbed_ones(
    row: Confirmation, held: ConfirmationAssignment
) -> None:
    Project.objects.update(confirmation_minutes=0.3)
    assert list(measured(held, 1.4))[-1] == "undecided"
    row.refresh_from_db()
    assert row.reason == "3 pairs spent the budget, and 4 are needed"
