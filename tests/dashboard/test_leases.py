"""The lease of all work that one process at a time does, run on each kind: runs, experiments, deliveries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event
from typing import Any, TypeVar

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from dashboard import alerts, dispatch, experiments, leases, runs
from dashboard.alerts import delivering
from dashboard.experiments import ExperimentDesign, Side
from dashboard.host_protocol import PairMeasured
from dashboard.leases import Lease, LeaseLost
from dashboard.models import Channel, Delivery, Experiment, Machine, Metric, Project, Regression, Run
from dashboard.models.leases import Leased
from dashboard.sentences.comparisons.experiments import reason_sentence
from tests.dashboard import factories

T = TypeVar("T")
POOL = "default"


class Work(ABC):
    """One kind of leased work: how it is asked for, held and swept."""

    model: type[Any]
    most_attempts: int
    # The states of what waits, and of what was given up.
    waiting: str
    given_up: str

    def __init__(self, project: Project) -> None:
        self.project = project
        self.commits = factories.create_commits(project, 8)
        self.case = factories.create_case(project)
        self.configuration = factories.get_configuration(self.case)
        for number in range(8):
            runs.record_machine(f"gpu-{number}", POOL)

    @abstractmethod
    def create(self, number: int = 0) -> Any:
        """Ask for work; another number is other work."""

    @abstractmethod
    def claim(self, row: Any, machine: str = "gpu-0") -> Any:
        """What the holder is given, or None. A machine asks its pool, not for a row."""

    @abstractmethod
    def lease(self, held: Any) -> Lease: ...

    @abstractmethod
    def write(self, held: Any) -> bool:
        """Write as a holder does. False: it is no longer the caller's."""

    @abstractmethod
    def sweep(self) -> None:
        """What is done by itself about a holder that was lost."""

    def let_the_lease_end(self, row: Any) -> None:
        self.model.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))

    def read(self, row: Any) -> Any:
        return self.model.objects.get(pk=row.pk)


class Job(Work):
    """What a machine does: it renews its lease, and can be cancelled."""

    @abstractmethod
    def heartbeat(self, held: Any) -> bool: ...

    @abstractmethod
    def cancel(self, row: Any) -> bool: ...

    @abstractmethod
    def release(self, machine: str) -> int: ...

    def lease(self, held: Any) -> Lease:
        lease: Lease = held.lease
        return lease


class RunWork(Job):
    model, most_attempts = Run, Run.MOST_ATTEMPTS
    waiting, given_up = Run.State.REQUESTED, Run.State.FAILED

    def create(self, number: int = 0) -> Run:
        fields = {"repetitions": 3, "time_limit": 60, "state": Run.State.REQUESTED}
        return Run.objects.create(commit=self.commits[number], configuration=self.configuration, **fields)

    def claim(self, _row: Any, machine: str = "gpu-0") -> Any:
        return runs.claim_run(POOL, machine)

    def write(self, held: Any) -> bool:
        try:
            runs.fail_run(held.lease, Run.Failure.CRASH, "It crashed.", "last words")
        except LeaseLost:
            return False
        return True

    def sweep(self) -> None:
        runs.requeue_lost_runs()

    def heartbeat(self, held: Any) -> bool:
        return runs.heartbeat_run(held.lease, 0.5, "goes on", "text")

    def cancel(self, row: Any) -> bool:
        return runs.cancel_run(row.pk, "ada")

    def release(self, machine: str) -> int:
        return runs.release_runs(machine)


class ExperimentWork(Job):
    model, most_attempts = Experiment, Experiment.MOST_ATTEMPTS
    waiting, given_up = Experiment.State.REQUESTED, Experiment.State.DONE

    def create(self, number: int = 0) -> Experiment:
        base, head = (Side(commit, self.configuration) for commit in (self.commits[number], self.commits[7]))
        described = {"unit": "s", "kind": "time", "better": "lower"}
        metric, _ = Metric.objects.get_or_create(name="step_time", defaults=described)
        design = ExperimentDesign(purpose="person", question="estimate", base=base, head=head, metric=metric)
        return experiments.request_experiment(self.project, design)

    def claim(self, _row: Any, machine: str = "gpu-0") -> Any:
        return experiments.claim_experiment(POOL, machine)

    def write(self, held: Any) -> bool:
        try:
            experiments.add_pair(held.lease, PairMeasured(0, True, 1.0, 1.4, False, 6.0))
        except LeaseLost:
            return False
        return True

    def sweep(self) -> None:
        experiments.requeue_lost_experiments()

    def heartbeat(self, held: Any) -> bool:
        return experiments.heartbeat_experiment(held.lease, "goes on")

    def cancel(self, row: Any) -> bool:
        return bool(experiments.cancel_experiments(Experiment.objects.filter(pk=row.pk), {"code": "stale"}))

    def release(self, machine: str) -> int:
        return experiments.release_experiments(machine)


class DeliveryWork(Work):
    """It isn't renewed: its lease lasts longer than any attempt. Nor is it requested again: it stays due."""

    model, most_attempts = Delivery, Delivery.MOST_ATTEMPTS
    waiting, given_up = Delivery.State.PENDING, Delivery.State.FAILED

    def create(self, number: int = 0) -> Delivery:
        run = factories.store_measured_run(self.commits[number + 1], self.case, {"step_time": 1.4})
        regression = Regression.objects.create(
            project=self.project,
            first_bad=self.commits[number + 1],
            last_good=self.commits[number],
            series=factories.get_series(run, "step_time"),
            state=Regression.State.CONFIRMED,
            before=1.0,
            after=1.4,
            ratio=1.4,
        )
        address = "https://127.0.0.1:1/"
        Channel.objects.get_or_create(project=self.project, kind="webhook", address=address)
        (delivery,) = alerts.announce_regression(regression)
        return delivery

    def claim(self, row: Any, _machine: str = "") -> Any:
        return delivering.claim_delivery(row.pk)

    def lease(self, held: Any) -> Lease:
        return leases.lease_of(held)

    def write(self, held: Any) -> bool:
        before = Delivery.objects.get(pk=held.pk)
        delivering.record_failure(held, "It could not be reached.", final=False)
        return Delivery.objects.get(pk=held.pk).errors != before.errors

    def sweep(self) -> None:
        """Where the last attempt was lost, the next one says so and gives up; else it is due again."""
        for key in alerts.due_deliveries():
            if Delivery.objects.get(pk=key).attempt >= self.most_attempts:
                alerts.attempt_delivery(key)


JOBS = (RunWork, ExperimentWork)
WORK = (*JOBS, DeliveryWork)
every_kind = pytest.mark.parametrize("kind", WORK, ids=lambda kind: kind.model.__name__.lower())
every_job = pytest.mark.parametrize("kind", JOBS, ids=lambda kind: kind.model.__name__.lower())
pytestmark = pytest.mark.django_db


def at_once(count: int, act: Callable[[int], T]) -> list[T]:
    """What so many threads return that begin at the same moment, each with a connection of its own."""
    together = Barrier(count)

    def begin(number: int) -> T:
        try:
            together.wait()
            return act(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def test_every_kind_of_leased_work_is_here() -> None:
    def concrete(model: type[Leased]) -> set[type[Leased]]:
        inherited = {kind for child in model.__subclasses__() for kind in concrete(child)}
        return inherited if model._meta.abstract else inherited | {model}

    assert {kind.model for kind in WORK} == concrete(Leased)


@every_kind
@pytest.mark.django_db(transaction=True)
def test_two_claims_at_the_same_moment_have_one_winner(kind: type[Work], project: Project) -> None:
    work = kind(project)
    row = work.create()
    won = [held for held in at_once(8, lambda number: work.claim(row, f"gpu-{number}")) if held]
    stored = work.read(row)
    assert [work.lease(held) for held in won] == [leases.lease_of(stored)]
    assert stored.attempt == 1


@every_kind
@pytest.mark.django_db(transaction=True)
def test_claims_at_once_of_different_rows_wait_for_nothing(kind: type[Work], project: Project) -> None:
    work = kind(project)
    rows = [work.create(number) for number in range(6)]
    held = at_once(6, lambda number: work.claim(rows[number], f"gpu-{number}"))
    assert {work.lease(each).key for each in held} == {row.pk for row in rows}
    assert len({work.lease(each).token for each in held}) == 6


@every_kind
def test_a_claim_holds_it_by_a_new_lease(kind: type[Work], project: Project) -> None:
    work = kind(project)
    row = work.create()
    lease = work.lease(work.claim(row))
    stored = work.read(row)
    assert (lease.key, lease.token, lease.attempt) == (row.pk, stored.lease, 1)
    assert stored.lease != row.lease
    assert stored.lease_until > timezone.now()
    assert work.claim(row, "gpu-1") is None


@every_kind
def test_it_is_held_while_its_lease_lasts(kind: type[Work], project: Project) -> None:
    work = kind(project)
    row = work.create()
    held = work.claim(row)
    work.sweep()
    assert work.claim(row, "gpu-1") is None
    assert work.lease(held) == leases.lease_of(work.read(row))
    assert work.write(held)


@every_kind
def test_a_lost_worker_costs_an_attempt_and_another_one_goes_on(kind: type[Work], project: Project) -> None:
    work = kind(project)
    row = work.create()
    lost = work.claim(row)
    work.let_the_lease_end(row)
    work.sweep()
    assert work.read(row).state == work.waiting
    again = work.lease(work.claim(row, "gpu-1"))
    assert (again.attempt, again.token == work.lease(lost).token) == (2, False)


@every_kind
def test_what_is_lost_too_often_is_given_up(
    kind: type[Work], project: Project, sent: list[tuple[Any, ...]]
) -> None:
    work = kind(project)
    row = work.create()
    for number in range(work.most_attempts):
        assert work.lease(work.claim(row)).attempt == number + 1
        work.let_the_lease_end(row)
        work.sweep()
    stored = work.read(row)
    assert (stored.state, stored.lease_until) == (work.given_up, None)
    assert work.claim(row) is None
    assert WHAT_IS_SAID[kind](stored)


@every_job
def test_heartbeats_hold_it_no_longer_than_it_may_take(kind: type[Job], project: Project) -> None:
    work = kind(project)
    row = work.create()
    column = "claimed_at" if kind is RunWork else "measuring_at"
    for number in range(work.most_attempts):
        held = work.claim(row)
        assert work.heartbeat(held)
        work.model.objects.filter(pk=row.pk).update(**{column: timezone.now() - timedelta(days=2)})
        assert not work.heartbeat(held)
        work.sweep()
        assert work.read(row).state == (work.waiting if number < 2 else work.given_up)
    stored = work.read(row)
    said = stored.reason if kind is RunWork else reason_sentence(stored.reason)
    assert ("its time_limit and 26 hours" if kind is RunWork else "longer than it may take") in said


WHAT_IS_SAID: dict[type[Work], Callable[[Any], bool]] = {
    RunWork: lambda run: (run.failure, "lost 3 times" in run.reason) == ("lost", True),
    ExperimentWork: lambda row: (row.verdict, row.reason) == ("undecided", {"code": "lost", "attempts": 3}),
    DeliveryWork: lambda delivery: delivery.errors == ["The last attempt was cut off before its end."],
}


@every_job
def test_whoever_waits_for_what_was_given_up_is_told(
    kind: type[Job], project: Project, sent: list[tuple[Any, ...]]
) -> None:
    work = kind(project)
    row = work.create()
    work.model.objects.update(attempt=work.most_attempts - 1)
    work.claim(row)
    work.let_the_lease_end(row)
    work.sweep()
    ended = {Run: dispatch.RUN_ENDED, Experiment: dispatch.EXPERIMENT_ENDED}[work.model]
    assert sent == [(ended, row.pk)]


@every_kind
def test_a_late_worker_can_not_write(kind: type[Work], project: Project) -> None:
    work = kind(project)
    row = work.create()
    late = work.claim(row)
    work.let_the_lease_end(row)
    work.sweep()
    newer = work.lease(work.claim(row, "gpu-1"))
    before = work.read(row)
    assert not work.write(late)
    after = work.read(row)
    assert [getattr(after, name) for name in COLUMNS] == [getattr(before, name) for name in COLUMNS]
    assert leases.lease_of(after) == newer


COLUMNS = ("state", "attempt", "lease", "lease_until")


@every_job
def test_a_late_worker_can_not_write_before_another_has_claimed(kind: type[Job], project: Project) -> None:
    work = kind(project)
    row = work.create()
    late = work.claim(row)
    work.let_the_lease_end(row)
    work.sweep()
    assert not work.heartbeat(late)
    assert not work.write(late)
    stored = work.read(row)
    assert (stored.state, stored.machine, stored.activity) == (work.waiting, None, "")


@every_job
def test_a_heartbeat_renews_the_lease(kind: type[Job], project: Project) -> None:
    work = kind(project)
    row = work.create()
    held = work.claim(row)
    work.let_the_lease_end(row)
    assert work.heartbeat(held)
    work.sweep()
    stored = work.read(row)
    assert (leases.lease_of(stored), stored.activity) == (work.lease(held), "goes on")
    left = stored.lease_until - timezone.now()
    assert 0 < left.total_seconds() <= settings.PACELINE_LEASE_SECONDS


@every_job
def test_a_heartbeat_of_a_cancelled_one_says_stop(kind: type[Job], project: Project) -> None:
    work = kind(project)
    row = work.create()
    held = work.claim(row)
    assert work.heartbeat(held)
    assert work.cancel(row)
    assert not work.heartbeat(held)
    assert not work.write(held)
    stored = work.read(row)
    assert (stored.state, stored.lease_until, stored.activity) == ("cancelled", None, "")
    assert stored.finished_at is not None


@every_job
def test_what_has_ended_stays_as_it_is(kind: type[Job], project: Project) -> None:
    work = kind(project)
    row = work.create()
    held = work.claim(row)
    for state in work.model.TERMINAL:
        past = timezone.now() - timedelta(days=1)
        work.model.objects.filter(pk=row.pk).update(state=state, lease_until=past)
        assert not work.heartbeat(held)
        assert not work.cancel(row)
        assert not work.write(held)
        work.sweep()
        assert (work.read(row).state, work.claim(row)) == (state, None)


@every_job
def test_what_a_stopped_site_held_is_requested_at_once(kind: type[Job], project: Project) -> None:
    """And costs no attempt; what another machine holds stays."""
    work = kind(project)
    rows = [work.create(number) for number in range(2)]
    mine, other = (work.claim(row, f"gpu-{number}") for number, row in enumerate(rows))
    assert work.release("gpu-0") == 1
    stored = {row.pk: work.read(row) for row in rows}
    released, kept = stored[work.lease(mine).key], stored[work.lease(other).key]
    assert (released.state, released.attempt, released.machine) == (work.waiting, 0, None)
    assert kept.machine == Machine.objects.get(name="gpu-1")
    assert (work.heartbeat(mine), work.heartbeat(other)) == (False, True)


@every_job
@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_the_same_moment_give_up_once(
    kind: type[Job], project: Project, sent: list[tuple[Any, ...]]
) -> None:
    work = kind(project)
    row = work.create()
    work.model.objects.update(attempt=work.most_attempts - 1)
    work.claim(row)
    work.let_the_lease_end(row)
    at_once(4, lambda _: work.sweep())
    assert len(sent) == 1
    assert work.read(row).state == work.given_up


@every_job
@pytest.mark.django_db(transaction=True)
def test_a_sweep_leaves_alone_what_is_renewed_at_that_moment(kind: type[Job], project: Project) -> None:
    work = kind(project)
    row = work.create()
    held = work.claim(row)
    work.let_the_lease_end(row)
    renewed, swept = Event(), Event()

    def act(number: int) -> None:
        if number == 0:
            with transaction.atomic():
                assert work.heartbeat(held)
                renewed.set()
                assert swept.wait(20)
        else:
            assert renewed.wait(20)
            work.sweep()
            swept.set()

    at_once(2, act)
    assert leases.lease_of(work.read(row)) == work.lease(held)


@every_job
@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_during_a_sweep_waits_and_says_stop(kind: type[Job], project: Project) -> None:
    work = kind(project)
    row = work.create()
    held = work.claim(row)
    work.let_the_lease_end(row)
    swept = Event()

    def act(number: int) -> bool | None:
        if number == 0:
            with transaction.atomic():
                work.sweep()
                swept.set()
                wait_until_another_waits()
            return None
        assert swept.wait(20)
        return work.heartbeat(held)

    assert at_once(2, act) == [None, False]
    assert work.read(row).state == work.waiting


def wait_until_another_waits() -> None:
    """Until another session waits for what this transaction has locked."""
    with connection.cursor() as cursor:
        for _ in range(2000):
            cursor.execute("SELECT count(*), pg_sleep(0.01) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
    raise AssertionError("nobody waited")
