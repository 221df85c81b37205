"""Whose turn it is on a machine: what the site asks for by itself goes on between what people wait for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard import experiments, hosts
from dashboard.experiments.transitions import YIELDED
from dashboard.host_protocol import ExperimentAssignment, RunAssignment
from dashboard.leases import LeaseLost
from dashboard.models import Experiment, Machine, Project, Run, Trigger
from dashboard.querysets.experiments import active_experiments
from dashboard.querysets.queue import waiting_experiments
from tests.dashboard import factories
from tests.dashboard.experiments.conftest import MakeExperiment, claim_held, measured_pair


@pytest.fixture
def other_row(row: Experiment) -> Experiment:
    """Of another project: nothing of the one whose proof is measured."""
    project = factories.create_project("boats")
    case = factories.create_case(project, "boat")
    for commit in factories.create_commits(project, 2):
        trigger = Trigger.objects.create(project=project, source=Trigger.Source.WEB)
        factories.create_run(commit, case, state=Run.State.REQUESTED, machine=None, trigger=trigger)
    return row


def spend_share(row: Experiment, machine: Machine) -> None:
    """Let experiments have had the machine for all of the last hours."""
    spent = Experiment.objects.get(pk=row.pk)
    spent.pk, spent.state = None, Experiment.State.DONE
    spent.machine, spent.measuring_at, spent.seconds = machine, timezone.now(), 7200
    spent.save()


def claim_next(machine: Machine) -> RunAssignment | ExperimentAssignment | None:
    assignment = hosts.claim_next(machine)
    if isinstance(assignment, RunAssignment):
        Run.objects.filter(pk=assignment.run_id).update(state="done", finished_at=timezone.now())
    return assignment


def test_a_proof_and_what_a_person_waits_for_take_turns(other_row: Experiment, machine: Machine) -> None:
    taken = []
    for index in range(3):
        held = claim_next(machine)
        if isinstance(held, ExperimentAssignment):
            taken.append(f"pair {held.pairs}")
            assert experiments.add_pair(held.lease, measured_pair(held.pairs, 1.0, 1.4)) == YIELDED
            other_row.refresh_from_db()
            assert (other_row.state, other_row.attempt) == ("requested", 0), index
        else:
            taken.append("run")
    assert taken == ["pair 0", "run", "pair 1"]


def test_whoever_gave_an_experiment_back_no_longer_holds_it(other_row: Experiment, machine: Machine) -> None:
    held = claim_next(machine)
    assert isinstance(held, ExperimentAssignment)
    experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4))
    with pytest.raises(LeaseLost):
        experiments.add_pair(held.lease, measured_pair(1, 1.0, 1.4))
    assert not experiments.heartbeat_experiment(held.lease)


@pytest.mark.parametrize("source", ["hook", "schedule", "forge", "poll"])
def test_nobody_waits_for_what_a_push_or_a_schedule_asked_for(
    other_row: Experiment, machine: Machine, source: str
) -> None:
    Trigger.objects.update(source=source)
    held = claim_held()
    assert experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4)) == ""


def test_nobody_waits_for_what_is_measured_again(other_row: Experiment, machine: Machine) -> None:
    Run.objects.filter(state="requested").update(not_before=timezone.now())
    held = claim_held()
    assert experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4)) == ""


@pytest.mark.parametrize("wait", [timedelta(0), timedelta(hours=1)])
@pytest.mark.parametrize("purpose", ["person", "check", "proof"])
def test_a_spent_share_holds_up_nothing_for_what_is_measured_again(
    other_row: Experiment, machine: Machine, purpose: str, wait: timedelta
) -> None:
    Experiment.objects.update(purpose=purpose)
    spend_share(other_row, machine)
    assert experiments.claim_experiment("default", "bench-1") is None
    Run.objects.filter(state="requested").update(not_before=timezone.now() + wait)
    assert experiments.claim_experiment("default", "bench-1") is not None


def test_what_is_measured_again_has_its_turn_after_an_hour(other_row: Experiment, machine: Machine) -> None:
    Experiment.objects.update(purpose="person")
    spend_share(other_row, machine)
    Run.objects.filter(state="requested").update(not_before=timezone.now() - timedelta(minutes=61))
    assert experiments.claim_experiment("default", "bench-1") is None


@pytest.mark.parametrize("purpose", ["person", "script", "check"])
def test_what_people_ask_for_does_not_yield(other_row: Experiment, purpose: str) -> None:
    Experiment.objects.update(purpose=purpose)
    held = claim_held()
    assert experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4)) == ""


def test_a_proof_yields_to_a_persons_experiment(make_experiment: MakeExperiment, row: Experiment) -> None:
    held = claim_held()
    asked = make_experiment(question="estimate")
    assert experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4)) == YIELDED
    assert claim_held().lease.key == asked.pk


def test_a_verdict_is_no_reason_to_go_on_later(other_row: Experiment) -> None:
    Experiment.objects.update(most_pairs=1)
    held = claim_held()
    assert experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4)) == "undecided"


def test_what_a_whole_history_asks_for_holds_up_no_proof_of_a_new_commit(
    make_experiment: MakeExperiment, project: Project
) -> None:
    line = factories.create_commits(project, 52, first=100)
    old = [make_experiment(base_commit=line[at], head_commit=line[at + 1]) for at in range(50)]
    new = make_experiment(base_commit=line[50], head_commit=line[51])
    expected = [new.pk, *(row.pk for row in reversed(old))]
    assert [row.pk for row in waiting_experiments()] == expected
    assert [row.pk for row in active_experiments(Project.objects.all())] == expected
    assert [claim_held().lease.key for _ in range(2)] == [new.pk, old[-1].pk]


def test_what_people_wait_for_is_measured_in_the_order_in_which_they_asked(
    make_experiment: MakeExperiment, project: Project
) -> None:
    line = factories.create_commits(project, 3, first=100)
    first, then = (
        make_experiment(question="estimate", base_commit=line[0], head_commit=line[at]) for at in (1, 2)
    )
    make_experiment(base_commit=line[1], head_commit=line[2])
    assert [claim_held().lease.key for _ in range(2)] == [first.pk, then.pk]
