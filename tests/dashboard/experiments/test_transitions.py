"""An experiment from its request to its end: claims, pairs, lost workers, budgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from statistics import median
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard import dispatch, experiments
from dashboard.host_protocol import ExperimentAssignment, OtherMetric
from dashboard.leases import LeaseLost
from dashboard.management.commands.trigger import describe_wait
from dashboard.models import Experiment, Machine, Run
from tests.dashboard import factories
from tests.dashboard.experiments.conftest import MakeExperiment, claim_held, measured_pair
from tests.dashboard.experiments.test_interleaving import ALONE

EVEN = (1.0, 1.01, 0.99, 1.005, 0.995)


def add_pairs(
    held: ExperimentAssignment, ratio: float, disturbed: bool = False, first: int = 0
) -> Iterator[str]:
    """Add pairs of this ratio until there is a verdict."""
    for index in range(first, first + 30):
        noise = EVEN[index % len(EVEN)]
        verdict = experiments.add_pair(held.lease, measured_pair(index, 1.0, ratio * noise, disturbed))
        yield verdict
        if verdict:
            return


def test_runs_that_wait_say_which_experiment_they_wait_for(held: ExperimentAssignment) -> None:
    experiments.heartbeat_experiment(held.lease, "pair 2, base 0123456789")
    assert describe_wait().endswith(": pair 2, base 0123456789")


def test_a_claim_says_which_commits_are_measured(row: Experiment) -> None:
    held = claim_held()
    assert (held.base.commit, held.head.commit) == (row.base_commit.hash, row.head_commit.hash)


@pytest.mark.parametrize(("messages", "woken"), [(0, ["default"]), (1, []), (None, [])])
def test_a_sweep_wakes_a_worker_where_no_message_waits(
    row: Experiment, monkeypatch: pytest.MonkeyPatch, messages: int | None, woken: list[str]
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(dispatch, "wake_workers", calls.append)
    monkeypatch.setattr(dispatch, "count_waiting_messages", lambda _pool: messages)
    experiments.sweep_experiments()
    assert calls == woken


@pytest.mark.parametrize(("ratio", "verdict"), [(1.4, "confirmed"), (1.0, "refuted")])
def test_pairs_decide(row: Experiment, held: ExperimentAssignment, ratio: float, verdict: str) -> None:
    *_, last = add_pairs(held, ratio)
    row.refresh_from_db()
    assert (last, row.verdict, row.state) == (verdict, verdict, "done")
    assert (row.low or 9) < ratio < (row.high or 0)
    assert row.pairs.count() <= 6


def test_each_pair_keeps_what_was_known_after_it(row: Experiment, held: ExperimentAssignment) -> None:
    list(add_pairs(held, 1.4))
    row.refresh_from_db()
    kept = [(pair.ratio, pair.low, pair.high) for pair in row.pairs.all()]
    assert kept[:3] == [(None, None, None)] * 3
    assert kept[-1] == (row.ratio, row.low, row.high)
    assert row.base_level == median(pair.base for pair in row.pairs.all())
    widths = [high - low for _, low, high in kept[3:] if low is not None and high is not None]
    assert widths == sorted(widths, reverse=True)


def test_single_steps_are_kept_until_the_verdict(row: Experiment, held: ExperimentAssignment) -> None:
    steps = {"base": [1.0, 1.1], "head": [1.4, 1.5]}
    for index in range(30):
        pair = replace(measured_pair(index, 1.0, 1.4 * EVEN[index % len(EVEN)]), steps=steps)
        verdict = experiments.add_pair(held.lease, pair)
        assert list(row.pairs.values_list("steps", flat=True)) == ([{}] if verdict else [steps]) * (index + 1)
        if verdict:
            return
    raise AssertionError("it doesn't end")


def test_what_is_cancelled_keeps_no_steps(row: Experiment, held: ExperimentAssignment) -> None:
    experiments.add_pair(
        held.lease, replace(measured_pair(0, 1.0, 1.4), steps={"base": [1.0], "head": [1.4]})
    )
    assert experiments.cancel_experiments(Experiment.objects.all(), {"code": "cancelled"}) == 1
    assert row.pairs.get().steps == {}


@pytest.mark.parametrize(("memory", "tells"), [(1.5e8, True), (1e8, False)])
def test_who_asked_hears_of_what_is_proved_beside_the_metric(
    make_experiment: MakeExperiment, monkeypatch: pytest.MonkeyPatch, memory: float, tells: bool
) -> None:
    asked = make_experiment(question="bound", purpose="check", floor=0.001, error=0.002)
    held, sent = claim_held(), list[tuple[str, int]]()
    monkeypatch.setattr(dispatch, "send_task", lambda *call: sent.append(call))
    verdicts = []
    for index in range(12):
        other = OtherMetric("B", "lower", "memory", 1e8, memory)
        pair = replace(measured_pair(index, 1.0, EVEN[index % 5]), others={"peak_memory": other})
        verdicts.append(experiments.add_pair(held.lease, pair))
    assert set(verdicts) == {""}
    assert set(sent) == ({(dispatch.PROVED_WORSE, asked.pk)} if tells else set())


def test_a_disturbed_pair_is_kept_and_not_weighed(row: Experiment, held: ExperimentAssignment) -> None:
    *_, last = add_pairs(held, 1.4, disturbed=True)
    row.refresh_from_db()
    assert (last, row.pairs.count()) == ("undecided", 24)
    assert (row.reason["code"], row.reason["calm"], row.reason["pairs"]) == ("too few pairs", 0, 24)


def test_a_pair_is_stored_once(row: Experiment, held: ExperimentAssignment) -> None:
    for _ in range(2):
        experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4))
    row.refresh_from_db()
    assert (row.pairs.count(), row.seconds) == (1, 6.0)


def test_a_lost_worker_costs_no_pair(row: Experiment, held: ExperimentAssignment) -> None:
    experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4))
    Experiment.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert experiments.requeue_lost_experiments() == 1
    again = claim_held()
    assert (again.pairs, again.attempt) == (1, 2)


def test_a_pair_costs_as_many_queries_however_many_there_are(held: ExperimentAssignment) -> None:
    counts = []
    for index in range(6):
        with CaptureQueriesContext(connection) as captured:
            assert not experiments.add_pair(held.lease, measured_pair(index, 1.0, 1.4, disturbed=True))
        counts.append(len(captured))
    assert set(counts) == {12}  # Two of them are savepoints.


def test_a_restart_goes_on_with_the_pairs_it_has(make_experiment: MakeExperiment) -> None:
    row = make_experiment(question="estimate")
    held = claim_held()
    for index in range(3):
        experiments.add_pair(held.lease, measured_pair(index, 1.0, 1.4))
    assert experiments.release_experiments("bench-1") == 1
    again = claim_held()
    assert (again.pairs, again.attempt, again.profiled) == (3, 1, True)
    *_, last = add_pairs(again, 1.4, first=again.pairs)
    row.refresh_from_db()
    assert (last, row.verdict) == ("estimated", "estimated")
    assert list(row.pairs.values_list("index", flat=True)) == list(range(row.pairs.count()))
    assert row.seconds == 6.0 * row.pairs.count()


def test_experiments_leave_three_quarters_to_waiting_runs(row: Experiment, machine: Machine) -> None:
    now = timezone.now()
    other_case = factories.create_case(row.project, benchmark="other")
    began = now - timedelta(hours=1)
    factories.create_run(row.base_commit, other_case, claimed_at=began, finished_at=now)
    other = Experiment.objects.get(pk=row.pk)
    other.pk, other.lease, other.state, other.machine = None, uuid4(), "done", machine
    other.seconds, other.measuring_at = 3600.0, now
    other.save()
    assert experiments.claim_experiment("default", "bench-1") is not None  # No run waits.
    Experiment.objects.filter(pk=row.pk).update(state="requested")
    factories.create_run(row.head_commit, other_case, state=Run.State.REQUESTED, machine=None)
    assert experiments.claim_experiment("default", "bench-1") is None
    Experiment.objects.filter(pk=other.pk).update(seconds=600.0)
    assert experiments.claim_experiment("default", "bench-1") is not None


def test_an_experiment_has_a_budget_of_its_own(row: Experiment, held: ExperimentAssignment) -> None:
    Experiment.objects.update(most_pairs=5)
    *verdicts, last = add_pairs(held, 1.4, disturbed=True)
    assert (len(verdicts), last) == (4, "undecided")


def test_what_looks_whole_is_told_halfway(row: Experiment, held: ExperimentAssignment) -> None:
    Experiment.objects.update(question="place", most_pairs=24)
    shares = (1.0 + 0.6 * (-1) ** (index // 2) for index in range(24))
    found = (
        experiments.add_pair(held.lease, measured_pair(index, 1.0, 1.4**share))
        for index, share in enumerate(shares)
    )
    assert next(verdict for verdict in found if verdict) == "whole"
    row.refresh_from_db()
    assert row.pairs.count() == 12
    assert row.reason == {"code": "budget spent", "sure": "whole", "pairs": 12, "seconds": 72.0}


@pytest.mark.parametrize(("wobble", "verdict"), [(0.45, "whole"), (3.0, "undecided")])
def test_a_place_ends_with_what_is_sure(
    row: Experiment, held: ExperimentAssignment, wobble: float, verdict: str
) -> None:
    Experiment.objects.update(question="place", most_pairs=16)
    found = [
        experiments.add_pair(
            held.lease, measured_pair(index, 1.0, 1.4 ** (0.6 + wobble * (-1) ** (index // 2)))
        )
        for index in range(16)
    ]
    row.refresh_from_db()
    assert (found, row.verdict) == ([""] * 15 + [verdict], verdict)
    assert (row.reason["pairs"], row.reason["seconds"]) == (16, 96.0)


def test_minutes_end_it_too(row: Experiment, held: ExperimentAssignment) -> None:
    Experiment.objects.update(most_seconds=30)
    *verdicts, last = add_pairs(held, 1.4, disturbed=True)
    assert (len(verdicts), last) == (4, "undecided")


def test_too_few_pairs_within_the_budget_are_no_disturbed_ones(
    row: Experiment, held: ExperimentAssignment
) -> None:
    Experiment.objects.update(most_seconds=18)
    assert list(add_pairs(held, 1.4))[-1] == "undecided"
    row.refresh_from_db()
    assert (row.reason["code"], row.reason["calm"], row.reason["pairs"]) == ("too few pairs", 3, 3)


PROFILE = {"steps": 10, "functions": [{"function": "push"}], "stacks": [{"stack": ["push"]}]}
COUNTED = {**ALONE, "profile": PROFILE}


def test_the_functions_of_both_sides_are_kept_without_their_stacks(make_experiment: MakeExperiment) -> None:
    row = make_experiment(question="estimate")
    held = claim_held()
    assert held.profiled
    experiments.keep_profiles(held.lease, {"base": COUNTED, "head": {}}, seconds=7.5)
    row.refresh_from_db()
    assert row.profiles == {"base": {"functions": [{"function": "push"}]}, "head": {}}
    assert row.seconds == 7.5
    experiments.release_experiments("bench-1")
    assert not claim_held().profiled


@pytest.mark.parametrize(("path", "in_turns"), [("cpu", True), ("cuda", False)])
def test_the_first_documents_tell_whether_sides_take_turns(
    make_experiment: MakeExperiment, path: str, in_turns: bool
) -> None:
    make_experiment(question="estimate")
    head = {**COUNTED, "environment": {**ALONE["environment"], "path": path}}
    held = claim_held()
    assert not held.in_turns  # Nothing was measured yet.
    answer = experiments.keep_profiles(held.lease, {"base": COUNTED, "head": head}, 1)
    assert (answer.in_turns, answer.again) == (in_turns, False)
    experiments.release_experiments("bench-1")
    assert claim_held().in_turns is in_turns


def test_a_counter_that_differs_is_counted_again_whoever_holds_it(make_experiment: MakeExperiment) -> None:
    row = make_experiment(question="bound", purpose="check", floor=0.03)
    reads = {"name": "scalar_reads", "unit": "reads/step", "better": "lower", "headline": False}
    documents = {
        side: {**COUNTED, "counters": [{**reads, "samples": [count, count]}]}
        for side, count in (("base", 1.0), ("head", 2.0))
    }
    asked = []
    for _ in range(3):
        held = claim_held()
        asked.append((held.profiled, experiments.keep_profiles(held.lease, documents, 1).again))
        experiments.release_experiments("bench-1")
    assert asked == [(True, True), (True, True), (True, False)]
    assert not claim_held().profiled
    row.refresh_from_db()
    assert row.profiles["head"]["counters"]["scalar_reads"]["samples"] == [2.0] * 6
    assert row.profiles["head"]["functions"] == [{"function": "push"}]
    assert row.seconds == 3


def test_what_is_handed_in_twice_was_counted_once(make_experiment: MakeExperiment) -> None:
    row = make_experiment(question="bound", purpose="check", floor=0.03)
    breaks = {"name": "graph_breaks", "unit": "breaks/step", "better": "lower", "headline": False}
    documents = {
        side: {**COUNTED, "counters": [{**breaks, "samples": [count]}]}
        for side, count in (("base", 0.0), ("head", 1.0))
    }
    held = claim_held()
    for repetition in ("first", "first", "second"):
        assert experiments.keep_profiles(held.lease, documents, 2, repetition).again
    row.refresh_from_db()
    assert row.profiles["head"]["counters"]["graph_breaks"]["samples"] == [1.0, 1.0]
    assert row.seconds == 4


def test_the_functions_of_an_experiment_that_was_taken_away_are_not_kept(
    make_experiment: MakeExperiment,
) -> None:
    row = make_experiment(question="estimate")
    held = claim_held()
    experiments.cancel_experiments(Experiment.objects.all(), {"code": "withdrawn"})
    with pytest.raises(LeaseLost):
        experiments.keep_profiles(held.lease, {"base": COUNTED, "head": COUNTED}, seconds=7.5)
    row.refresh_from_db()
    assert row.profiles == {}
