"""From a suspicion to one commit, with real commits and measured values that a test makes up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import takewhile

import pytest
from pytest_django.plugin import DjangoDbBlocker

from dashboard import experiments, repositories, runs
from dashboard.host_protocol import PairMeasured
from dashboard.models import (
    Change,
    Channel,
    Commit,
    Delivery,
    Experiment,
    ExperimentPair,
    Project,
    Regression,
    RegressionExperiment,
    Run,
)
from dashboard.regressions import advance_proof, judge_run
from dashboard.regressions.apply import is_proved_by_means, most_bisection_pairs
from tests.dashboard import factories
from tests.dashboard.conftest import Repository
from tests.dashboard.shared_rows import share_rows

Truth = Callable[[Commit], float]
EVEN = (1.0, 1.004, 0.996, 1.002, 0.998)


@pytest.fixture(scope="module")
def made_line(
    shared_repository: Repository, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """What each test's `line` is read from."""
    with share_rows(django_db_blocker, lambda: create_line(shared_repository)):
        yield


def create_line(repository: Repository) -> None:
    project = Project.objects.create(slug="snakes", repository=str(repository.folder))
    repository.commit_line(*((f"Change number {number}", {"notes_txt": str(number)}) for number in range(13)))
    mirror = project.mirror
    mirror.fetch()
    hashes = repositories.select_commits(mirror, {"last": 15})
    runs.get_or_create_commits(project, repositories.read_commits(mirror, hashes))
    Channel.objects.create(project=project, kind="email", address="a@example.org")


@pytest.fixture
def line(made_line: None, db: None) -> list[Commit]:
    """Fifteen commits of a real repository."""
    return list(Commit.objects.order_by("position"))


def measure_and_judge(commits: list[Commit], truth: Truth, calls_since: Commit | None = None) -> None:
    """Measure and judge some commits. `calls_since`: from there on `sample` calls more, for 3 ms more.

    Of a case's first points, before anything steps, nothing is to be said: they are judged with the next.
    """
    project = commits[0].project
    known = project.cases.first()
    case = known or factories.create_case(project)
    calm = 0 if known else count_calm(commits, truth, calls_since) - 2
    for index, commit in enumerate(commits):
        values = {"step_time": truth(commit) * factories.run_noise(commit.position)}
        phases = {}
        if calls_since:
            slow = commit.position >= calls_since.position
            values["function_calls"] = 900 if slow else 600
            sample = 0.007 if slow else 0.004
            phases["phase_self_time"] = {"sample": sample, "push": values["step_time"] - sample}
        run = factories.store_measured_run(commit, case, values, phases=phases)
        if index >= calm:
            judge_run(run.pk)


def count_calm(commits: list[Commit], truth: Truth, calls_since: Commit | None) -> int:
    """Of the first of them, those that nothing has changed since the very first."""
    calls_at = calls_since.position if calls_since else math.inf
    levels = [(truth(commit), commit.position >= calls_at) for commit in commits]
    return sum(1 for _ in takewhile(lambda level: level == levels[0], levels))


def run_all_requested(truth: Truth, calls_since: Commit | None = None, memory: Truth | None = None) -> None:
    """Play the worker until nothing is left to measure."""
    for _ in range(40):
        if held := experiments.claim_experiment("default", "bench-1"):
            known = memory if memory and held.metric == "peak_memory" else truth
            good, bad = (known(Commit.objects.get(hash=sha)) for sha in (held.base.commit, held.head.commit))
            for index in range(30):
                pair = PairMeasured(index, index % 2 == 0, good, bad * EVEN[index % 5], False, 6.0)
                if experiments.add_pair(held.lease, pair):
                    break
            for key in RegressionExperiment.objects.filter(applied_at=None).values_list(
                "regression", flat=True
            ):
                advance_proof(key)
        elif waiting := Run.objects.filter(state=Run.State.REQUESTED).first():
            commit = waiting.commit
            waiting.delete()
            measure_and_judge([commit], truth, calls_since)
        else:
            return
    raise AssertionError("it doesn't end")


def stepping_truth(line: list[Commit], *steps: tuple[int, float], level: float = 0.010) -> Truth:
    places = {line[index].position: factor for index, factor in steps}

    def truth(commit: Commit) -> float:
        value = level
        for position, factor in places.items():
            value *= factor if commit.position >= position else 1.0
        return value

    return truth


def test_a_step_between_neighbours_is_confirmed_and_told(line: list[Commit]) -> None:
    truth = stepping_truth(line, (8, 1.4))
    measure_and_judge(line, truth)
    assert not Delivery.objects.exists()
    run_all_requested(truth)
    found = Regression.objects.get()
    assert (found.state, found.first_bad, found.proving) == ("confirmed", line[8], False)
    assert Delivery.objects.get().regression == found


@pytest.mark.parametrize("culprit", [7, 8])
def test_unmeasured_commits_are_bisected(line: list[Commit], culprit: int) -> None:
    truth = stepping_truth(line, (culprit, 1.4))
    measure_and_judge(line[::2], truth)
    run_all_requested(truth)
    found = Regression.objects.get(withdrawn_at=None)
    assert (found.state, found.last_good, found.first_bad) == ("confirmed", line[culprit - 1], line[culprit])
    assert Run.objects.filter(commit__in=[line[culprit - 1], line[culprit]], state="done").count() == 2
    # These pairs have no single steps, by which the step could have been proved.
    asked = Experiment.objects.values_list("question", "by_means_alone")
    assert set(asked) == {("test", False), ("place", True)}


@pytest.mark.parametrize(("pairs", "most"), [(4, 24), (20, 80), (200, 400)])
def test_a_bisection_may_take_some_pairs_for_each_of_the_proof(
    line: list[Commit], pairs: int, most: int
) -> None:
    made = factories.create_regression(line, 4, "step_time", 9)
    proof = factories.create_ended_experiment(made, "confirmed", line[3], line[9])
    rows = [{"index": index, "base": 1, "head": 2, "seconds": 6} for index in range(pairs)]
    ExperimentPair.objects.bulk_create(
        ExperimentPair(experiment=proof, base_first=True, **row) for row in rows
    )
    assert most_bisection_pairs(made.project, made) == most


@pytest.mark.parametrize(("by_steps", "alone"), [(False, True), (True, False), (None, False)])
def test_a_bisection_asks_single_steps_unless_means_proved_the_step(
    line: list[Commit], by_steps: bool | None, alone: bool
) -> None:
    made = factories.create_regression(line, 4, "step_time", 9)
    proof = factories.create_ended_experiment(made, "confirmed", line[3], line[9])
    Experiment.objects.filter(pk=proof.pk).update(by_steps=by_steps)
    assert is_proved_by_means(made) is alone


def test_noise_is_refuted_after_one_more_run_and_told_to_nobody(line: list[Commit]) -> None:
    measure_and_judge(line, stepping_truth(line, (8, 1.4)))
    run_all_requested(stepping_truth(line))
    found = Regression.objects.get()
    assert (found.state, found.proving) == ("refuted", False)
    # Once where it was suspected, and once with a measured commit more on both sides.
    assert Experiment.objects.filter(verdict="refuted").count() == 2
    assert not Delivery.objects.exists()
    runs_at = [Run.objects.filter(commit=commit).count() for commit in line]
    assert sum(runs_at) == len(line) + 1
    assert runs_at[8] == 2


def test_a_run_that_seemed_slow_is_measured_again_and_hides_no_step(line: list[Commit]) -> None:
    measure_and_judge(line[:6], stepping_truth(line))
    measure_and_judge([line[6]], stepping_truth(line, (0, 1.8)))
    truth = stepping_truth(line, (9, 1.4))
    measure_and_judge([line[7], *line[9:]], truth)
    run_all_requested(truth)
    found = Regression.objects.get(withdrawn_at=None)
    assert (found.state, found.last_good, found.first_bad) == ("confirmed", line[8], line[9])


def test_what_stays_undecided_is_not_measured_again(line: list[Commit]) -> None:
    measure_and_judge(line, stepping_truth(line, (8, 1.4)))
    held = experiments.claim_experiment("default", "bench-1")
    assert held is not None
    experiments.conclude_experiment(
        held.lease, "untestable", {"code": "side failed", "text": "It doesn't run."}
    )
    advance_proof(Regression.objects.get().pk)
    assert (Regression.objects.get().state, Regression.objects.get().proving) == ("undecided", False)
    assert Run.objects.count() == len(line)


def test_a_step_beside_the_suspected_place_is_found(line: list[Commit]) -> None:
    measure_and_judge(line, stepping_truth(line, (8, 1.4)))
    run_all_requested(stepping_truth(line, (9, 1.4)))
    found = Regression.objects.get(withdrawn_at=None)
    assert (found.state, found.last_good, found.first_bad) == ("confirmed", line[8], line[9])


def test_a_step_that_detection_saw_too_large_makes_no_second_cause(line: list[Commit]) -> None:
    measure_and_judge(line[::2], stepping_truth(line, (7, 1.6)))
    run_all_requested(stepping_truth(line, (7, 1.42)))
    found = Regression.objects.get(withdrawn_at=None)
    assert (found.state, found.last_good, found.first_bad) == ("confirmed", line[6], line[7])
    assert not Experiment.objects.filter(verdict="part").exists()


def test_two_causes_in_one_range_are_two_regressions(line: list[Commit]) -> None:
    truth = stepping_truth(line, (7, 1.3), (9, 1.3))
    measure_and_judge([*line[:7], *line[10:]], truth)
    run_all_requested(truth)
    found = Regression.objects.filter(withdrawn_at=None, state="confirmed").order_by("first_bad__position")
    assert [regression.first_bad for regression in found] == [line[7], line[9]]


@pytest.mark.parametrize(("place", "left_out"), [(7, (8, 9)), (7, ()), (9, (7,))])
def test_the_rest_of_a_step_is_looked_for_beside_the_part_that_pairs_show(
    line: list[Commit], place: int, left_out: tuple[int, ...]
) -> None:
    second = 16 - place if left_out else place + 1
    truth = stepping_truth(line, (place, 1.3), (second, 1.3))
    measure_and_judge([commit for index, commit in enumerate(line) if index not in left_out], truth)
    run_all_requested(truth)
    found = Regression.objects.order_by("first_bad__position")
    assert [(regression.first_bad, regression.state) for regression in found] == [
        (line[index], "confirmed") for index in sorted((place, second))
    ]
    assert [regression.ratio for regression in found] == [pytest.approx(1.3, rel=0.05)] * 2
    assert Delivery.objects.count() == 2


@pytest.mark.parametrize("steps", [(1.3, 1.25, 1.3), (1.5, 1.2, 1.2, 1.2), (1.2, 1.2, 1.2, 1.5)])
def test_each_of_several_causes_in_a_row_is_told(line: list[Commit], steps: tuple[float, ...]) -> None:
    """Detection sees them as one step; pairs of its place show one, and each next one beside these."""
    places = range(6, 6 + len(steps))
    truth = stepping_truth(line, *zip(places, steps, strict=True))
    measure_and_judge(line, truth)
    assert Change.objects.count() == 1
    run_all_requested(truth)
    found = Regression.objects.order_by("first_bad__position")
    assert [(regression.first_bad, regression.state) for regression in found] == [
        (line[index], "confirmed") for index in places
    ]
    assert [regression.ratio for regression in found] == [pytest.approx(step, rel=0.05) for step in steps]


def test_a_second_side_is_asked_where_bisection_led_the_first_away(line: list[Commit]) -> None:
    """The rest behind the step ends with a run of a commit that nobody had measured."""
    truth = stepping_truth(line, (6, 1.05), (7, 1.15), (10, 1.06))
    measure_and_judge([*line[:9], *line[10:]], truth)
    run_all_requested(truth)
    rest = Regression.objects.get(proving=True)
    assert (rest.last_good, rest.first_bad) == (line[9], line[10])
    advance_proof(rest.pk)
    run_all_requested(truth)
    found = Regression.objects.filter(state="confirmed").order_by("first_bad__position")
    assert [regression.first_bad for regression in found] == [line[6], line[7], line[10]]


def test_what_was_withdrawn_at_a_commit_hides_no_second_cause(line: list[Commit]) -> None:
    truth = stepping_truth(line, (7, 1.3), (9, 1.3))
    measure_and_judge([*line[:8], *line[10:]], truth)
    suspected = Regression.objects.get()
    levels = {"series": suspected.series, "before": 0.010, "after": 0.013}
    ends = {"last_good": line[9], "first_bad": line[10], "withdrawn_at": suspected.opened_at}
    Regression.objects.create(project=suspected.project, state="refuted", **levels, **ends)
    run_all_requested(truth)
    found = Regression.objects.filter(withdrawn_at=None).order_by("first_bad__position")
    assert [(regression.first_bad, regression.state) for regression in found] == [
        (line[7], "confirmed"),
        (line[9], "confirmed"),
    ]


def test_a_slow_spell_behind_a_step_makes_no_second_cause(line: list[Commit]) -> None:
    measure_and_judge([*line[:7], *line[8:]], stepping_truth(line, (7, 1.3), (8, 1.3)))
    run_all_requested(stepping_truth(line, (7, 1.3)))
    found = Regression.objects.get()
    assert (found.state, found.first_bad, found.ratio) == ("confirmed", line[7], pytest.approx(1.3, rel=0.05))


@pytest.mark.parametrize(("measured", "second"), [((7, 10), 9), ((7, 8, 10), 9), ((10,), 9), ((7, 10), 8)])
def test_a_counter_that_explains_one_of_two_causes_hides_no_other(
    line: list[Commit], measured: tuple[int, ...], second: int
) -> None:
    truth = stepping_truth(line, (7, 1.3), (second, 1.3))
    measure_and_judge([*line[:7], *(line[index] for index in measured), *line[11:]], truth, line[7])
    run_all_requested(truth, line[7])
    found = Regression.objects.filter(withdrawn_at=None, state="confirmed").order_by("first_bad__position")
    assert [regression.first_bad for regression in found] == [line[7], line[second]]
    assert [regression.ratio for regression in found] == [pytest.approx(1.3, rel=0.05)] * 2
    assert [regression.phase for regression in found] == ["sample", "push"]
    assert Regression.objects.count() == Experiment.objects.filter(purpose="proof").count() == 2


def test_a_counter_that_explains_all_of_it_costs_no_pair_more(
    line: list[Commit],
) -> None:
    truth = stepping_truth(line, (8, 1.4))
    measure_and_judge(line[::2], truth, line[8])
    run_all_requested(truth, line[8])
    found = Regression.objects.get(withdrawn_at=None)
    assert (found.state, found.first_bad) == ("confirmed", line[8])
    assert [row.purpose for row in found.experiments.all()] == ["proof"]


def test_a_commit_that_does_not_run_is_skipped(line: list[Commit]) -> None:
    truth = stepping_truth(line, (8, 1.4))
    measure_and_judge([*line[:6], *line[10:]], truth)
    while held := experiments.claim_experiment("default", "bench-1"):
        bad = Commit.objects.get(hash=held.head.commit)
        if bad == line[7]:
            experiments.conclude_experiment(
                held.lease, "untestable", {"code": "side failed", "text": "It doesn't start."}
            )
        for index in range(0 if bad == line[7] else 30):
            value = truth(bad) * EVEN[index % 5]
            if experiments.add_pair(held.lease, PairMeasured(index, True, 0.010, value, False, 6.0)):
                break
        advance_proof(Regression.objects.get(withdrawn_at=None).pk)
    found = Regression.objects.get(withdrawn_at=None)
    assert (found.last_good, found.first_bad) == (line[6], line[8])


def test_a_time_that_joins_a_counter_is_proved_too(line: list[Commit]) -> None:
    truth = stepping_truth(line, (8, 1.4))
    case = factories.create_case(line[0].project)
    for commit in line:
        calls = 900 if commit.position >= line[8].position else 600
        values = {"function_calls": calls, "step_time": truth(commit) * factories.run_noise(commit.position)}
        judge_run(factories.store_measured_run(commit, case, values).pk)
        if commit == line[8]:
            # The counter is known at its first point, the time not yet.
            assert Regression.objects.get().state == "confirmed"
    assert Regression.objects.get().state == "suspected"
    run_all_requested(truth)
    found = Regression.objects.get()
    assert (found.state, found.series.metric.name, found.proving) == ("confirmed", "step_time", False)


@pytest.mark.parametrize(
    ("slower", "metric", "told"), [(1.4, "step_time", {5, 20}), (1.0, "peak_memory", {5})]
)
def test_a_larger_step_that_joins_a_proved_one_is_primary_once_it_is_proved(
    line: list[Commit], slower: float, metric: str, told: set[int]
) -> None:
    case, time = factories.create_case(line[0].project), stepping_truth(line, (8, slower))
    memory = stepping_truth(line, (8, 1.1), level=1e8)
    Channel.objects.update(minimum_percent=5)
    large = {"kind": "email", "address": "b@example.org", "minimum_percent": 20}
    Channel.objects.create(project=line[0].project, **large)
    for commit in line:
        seen = memory(commit) * factories.run_noise(commit.position)
        judge_run(factories.store_measured_run(commit, case, {"peak_memory": seen}).pk)
    run_all_requested(time, memory=memory)
    assert Delivery.objects.get().channel.minimum_percent == 5
    # While they were measured, something slowed the machine from the same commit on.
    measure_and_judge(line, stepping_truth(line, (8, 1.4)))
    found = Regression.objects.get()
    assert (found.state, found.series.metric.name, found.proving) == ("confirmed", "peak_memory", True)
    run_all_requested(time, memory=memory)
    found = Regression.objects.get()
    assert (found.state, found.series.metric.name, found.proving) == ("confirmed", metric, False)
    assert {delivery.channel.minimum_percent for delivery in Delivery.objects.all()} == told


def test_of_two_series_one_of_which_is_noise_the_other_is_told(line: list[Commit]) -> None:
    case, memory = factories.create_case(line[0].project), stepping_truth(line, (8, 1.1), level=1e8)
    spell = stepping_truth(line, (8, 1.4))
    for commit in line:
        noise = factories.run_noise(commit.position)
        values = {"peak_memory": memory(commit) * noise, "step_time": spell(commit) * noise}
        judge_run(factories.store_measured_run(commit, case, values).pk)
    assert Regression.objects.get().series.metric.name == "step_time"
    run_all_requested(stepping_truth(line), memory=memory)
    found = Regression.objects.get(state="confirmed")
    assert (found.first_bad, found.series.metric.name, found.proving) == (line[8], "peak_memory", False)
    assert Delivery.objects.get().regression == found
    # The commit that seemed slow was measured anew: then the next one seems to be the first.
    assert Regression.objects.exclude(pk=found.pk).get().state == "refuted"
    verdicts = found.experiments.order_by("pk").values_list("metric__name", "verdict")
    assert list(verdicts) == [("step_time", "refuted"), ("peak_memory", "confirmed")]


def test_a_time_that_is_refuted_at_a_counters_commit_is_proved_at_its_own(line: list[Commit]) -> None:
    truth = stepping_truth(line, (9, 1.4))
    measure_and_judge(line[:8], truth, line[8])
    # One disturbed run puts the step of the time where another commit makes more calls.
    measure_and_judge([line[8]], stepping_truth(line, (0, 1.5)), line[8])
    measure_and_judge(line[9:], truth, line[8])
    run_all_requested(truth, line[8])
    found = Regression.objects.filter(withdrawn_at=None).order_by("first_bad__position")
    assert [
        (regression.first_bad, regression.series.metric.name, regression.state) for regression in found
    ] == [
        (line[8], "function_calls", "confirmed"),
        (line[9], "step_time", "confirmed"),
    ]
    assert Delivery.objects.count() == 2


def test_a_throughput_that_was_proved_does_not_turn_the_bisection_of_its_step_time(
    line: list[Commit],
) -> None:
    case, truth = factories.create_case(line[0].project), stepping_truth(line, (8, 1.4))
    measured = [*line[:5], *line[12:]]
    for commit in measured:
        values = {"throughput": 1 / truth(commit) * factories.run_noise(commit.position)}
        judge_run(factories.store_measured_run(commit, case, values).pk)
    held = experiments.claim_experiment("default", "bench-1")
    assert held is not None
    for index in range(30):
        pair = PairMeasured(index, index % 2 == 0, 100, 71 * EVEN[index % 5], False, 6.0)
        if experiments.add_pair(held.lease, pair):
            break
    measure_and_judge(measured, truth)
    advance_proof(Regression.objects.get().pk)
    run_all_requested(truth)
    found = Regression.objects.get()
    assert (found.state, found.series.metric.name, found.first_bad) == ("confirmed", "step_time", line[8])


def test_a_suspicion_that_vanishes_is_no_longer_measured(line: list[Commit]) -> None:
    measure_and_judge(line, stepping_truth(line, (8, 1.4)))
    held = experiments.claim_experiment("default", "bench-1")
    assert held is not None
    found = Regression.objects.get()
    found.changes.all().delete()
    advance_proof(found.pk)
    found.refresh_from_db()
    assert found.withdrawn_at is not None
    assert not experiments.heartbeat_experiment(held.lease)
