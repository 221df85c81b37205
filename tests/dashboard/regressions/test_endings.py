"""Whatever ends of what a proof waits for, and however it ends, moves the proof on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard import dispatch, experiments, runs
from dashboard.models import Channel, Delivery, Experiment, Regression, Run
from dashboard.regressions import advance_proof, judge_run, sweep_proofs
from dashboard.regressions.judging import STALLED_PROOF_AFTER
from dashboard.sentences.regressions.bisections import bisection_sentence
from tests.dashboard import factories
from tests.dashboard.regressions.planted import History, linear_history
from tests.dashboard.shared_rows import share_rows
from workers.site.app import app

pytestmark = pytest.mark.django_db

UNMEASURED = "m7"
Message = tuple[Any, ...]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The messages of the queue, which a test hands to their tasks or loses."""
    messages: list[Message] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *message: messages.append(message))
    return messages


STEPS = {"counted": ("function_calls", 600, 900), "suspected": ("step_time", 0.010, 0.014)}


@dataclass(frozen=True)
class Judged:
    """A regression that was found, and the messages that were sent on the way."""

    regression: int
    messages: tuple[Message, ...]


@pytest.fixture(scope="module")
def judged(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Judged]:
    """The judged line of one of STEPS, made once for all tests that begin with it."""

    def make() -> Judged:
        messages: list[Message] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dispatch, "send_task", lambda *message: messages.append(message))
            return Judged(measure_around(*STEPS[request.param]).pk, tuple(messages))

    with share_rows(django_db_blocker, make) as made:
        yield made


def handle_messages(sent: list[Message]) -> None:
    """Play the service worker until no message is left; deliveries aren't sent out."""
    while sent:
        name, *arguments = sent.pop(0)
        if name != dispatch.DELIVER:
            app.tasks[name].run(*arguments)


def measure_around(metric: str, before: float, after: float) -> Regression:
    """A line whose m7 is not measured, and a step on one of the two commits m7 and m8."""
    history = History(linear_history(12), {}).make()
    Channel.objects.create(project=history.project, kind="email", address="a@example.org")
    case = factories.create_case(history.project)
    for position, (name, commit) in enumerate(history.rows.items()):
        if name != UNMEASURED:
            noise = 1.0 if metric in factories.EXACT else factories.run_noise(position)
            value = (before if position < 7 else after) * noise
            judge_run(factories.store_measured_run(commit, case, {metric: value}).pk)
    return Regression.objects.get(withdrawn_at=None)


@pytest.fixture
def found(judged: Judged, db: None, sent: list[Message]) -> Regression:
    sent += judged.messages
    return Regression.objects.get(pk=judged.regression)


# A counter has confirmed it; which commit it is a run of m7 is to tell.
counted = pytest.mark.parametrize("judged", ["counted"], indirect=True)
# A time that is to be proved by pairs.
suspected = pytest.mark.parametrize("judged", ["suspected"], indirect=True)


# How a run or an experiment ends without a result


def fail_as(kind: str) -> Callable[[Run], None]:
    def fail(run: Run) -> None:
        assignment = runs.claim_run("default", "bench-1")
        assert assignment
        assert assignment.run_id == run.pk
        runs.fail_run(assignment.lease, kind, "It can't be measured.")

    return fail


def cancel_run(run: Run) -> None:
    assert runs.cancel_run(run.pk, by="ada")


def lose_run(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(attempt=Run.MOST_ATTEMPTS - 1)
    assert runs.claim_run("default", "bench-1")
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert runs.requeue_lost_runs() == 1


RUN_ENDINGS = {
    **{kind: fail_as(kind) for kind in Run.Failure.values if kind != Run.Failure.LOST},
    "cancelled": cancel_run,
    "lost": lose_run,
}


def conclude_as(verdict: str) -> Callable[[Experiment], None]:
    def conclude(experiment: Experiment) -> None:
        assignment = experiments.claim_experiment("default", "bench-1")
        assert assignment
        assert assignment.lease.key == experiment.pk
        experiments.conclude_experiment(assignment.lease, verdict)

    return conclude


def lose_experiment(experiment: Experiment) -> None:
    Experiment.objects.filter(pk=experiment.pk).update(attempt=Experiment.MOST_ATTEMPTS - 1)
    assert experiments.claim_experiment("default", "bench-1")
    past = timezone.now() - timedelta(seconds=1)
    Experiment.objects.filter(pk=experiment.pk).update(lease_until=past)
    assert experiments.requeue_lost_experiments() == 1


EXPERIMENT_ENDINGS = {
    "untestable": conclude_as("untestable"),
    "undecided": conclude_as("undecided"),
    "lost": lose_experiment,
}


def end_all(regression: Regression, sent: list[Message], endings: dict[str, Callable[[Any], None]]) -> int:
    """Let all that the proof asks for end alike, each time as it is told; how many that were."""
    ended = 0
    for _ in range(20):
        handle_messages(sent)
        waiting = [
            *Run.objects.filter(state=Run.State.REQUESTED),
            *regression.experiments.filter(state=Experiment.State.REQUESTED),
        ]
        if not waiting:
            return ended
        for row in waiting:
            endings[type(row).__name__](row)
            ended += 1
    raise AssertionError("it doesn't end")


@pytest.mark.parametrize("ending", RUN_ENDINGS)
@counted
def test_a_run_that_ends_without_a_result_moves_the_proof_on(
    found: Regression, sent: list[Message], ending: str
) -> None:
    assert found.proving
    assert [run.commit.subject for run in found.awaited_runs.all()] == [UNMEASURED]
    assert not Delivery.objects.exists()
    assert end_all(found, sent, {"Run": RUN_ENDINGS[ending]}) > 0
    found.refresh_from_db()
    assert (found.state, found.proving, found.commits_left) == ("confirmed", False, 2)
    assert bisection_sentence(found).startswith("It is one of these 2 commits")
    assert Delivery.objects.get().regression == found


@pytest.mark.parametrize("ending", EXPERIMENT_ENDINGS)
@suspected
def test_a_proof_that_ends_without_a_verdict_is_over(
    found: Regression, sent: list[Message], ending: str
) -> None:
    assert found.proving
    endings = {"Run": cancel_run, "Experiment": EXPERIMENT_ENDINGS[ending]}
    assert end_all(found, sent, endings) > 0
    found.refresh_from_db()
    assert (found.state, found.proving) == ("undecided", False)


@pytest.mark.parametrize("ending", EXPERIMENT_ENDINGS)
@suspected
def test_a_bisection_that_ends_without_a_verdict_is_told_with_its_range(
    found: Regression, sent: list[Message], ending: str
) -> None:
    handle_messages(sent)
    conclude_as("confirmed")(found.experiments.get())
    endings = {"Run": cancel_run, "Experiment": EXPERIMENT_ENDINGS[ending]}
    assert end_all(found, sent, endings) > 0
    assert found.experiments.filter(purpose="bisection").exists()
    found.refresh_from_db()
    assert (found.state, found.proving, found.commits_left) == ("confirmed", False, 2)
    assert Delivery.objects.get().regression == found


# What a lost message left behind


def age_regression(regression: Regression) -> None:
    Regression.objects.filter(pk=regression.pk).update(updated_at=timezone.now() - 2 * STALLED_PROOF_AFTER)


@pytest.mark.parametrize("ending", RUN_ENDINGS)
@counted
def test_the_sweep_finds_a_run_whose_end_nobody_was_told(
    found: Regression, sent: list[Message], ending: str
) -> None:
    RUN_ENDINGS[ending](found.awaited_runs.get())
    sent.clear()
    age_regression(found)
    sweep_proofs()
    assert sent == [(dispatch.PROVE, found.pk)]


@pytest.mark.parametrize("ending", EXPERIMENT_ENDINGS)
@suspected
def test_the_sweep_finds_an_experiment_whose_end_nobody_was_told(
    found: Regression, sent: list[Message], ending: str
) -> None:
    handle_messages(sent)
    EXPERIMENT_ENDINGS[ending](found.experiments.get())
    sent.clear()
    sweep_proofs()
    assert sent == [(dispatch.PROVE, found.pk)]


@suspected
def test_the_sweep_asks_again_for_an_experiment_that_vanished(found: Regression, sent: list[Message]) -> None:
    reason = {"code": "text", "text": "It was a mistake."}
    assert experiments.cancel_experiments(found.experiments.all(), reason) == 1
    sent.clear()
    sweep_proofs()
    assert sent == [(dispatch.PROVE, found.pk)]
    handle_messages(sent)
    assert found.experiments.filter(state="requested").count() == 1


@pytest.mark.parametrize("judged", ["counted", "suspected"], indirect=True)
def test_the_sweep_leaves_alone_what_waits(found: Regression, sent: list[Message]) -> None:
    handle_messages(sent)
    age_regression(found)
    sweep_proofs()
    assert sent == []


@counted
def test_the_sweep_leaves_alone_what_has_just_moved(found: Regression, sent: list[Message]) -> None:
    cancel_run(found.awaited_runs.get())
    sent.clear()
    sweep_proofs()
    assert sent == []


@counted
def test_a_proof_that_has_ended_is_swept_no_more(found: Regression, sent: list[Message]) -> None:
    end_all(found, sent, {"Run": cancel_run})
    advance_proof(found.pk)
    age_regression(found)
    sent.clear()
    sweep_proofs()
    assert sent == []
