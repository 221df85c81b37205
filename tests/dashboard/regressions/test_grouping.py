from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from dashboard.models import Case, Change, Channel, Commit, Delivery, Experiment, Project, Regression
from dashboard.regressions import judge_run
from dashboard.regressions.decision.requested_facts import Explanation
from dashboard.regressions.explanation.explain import change_at_proof
from dashboard.regressions.explanation.phase_shares import sides_of_step
from dashboard.regressions.row_facts import change_fact, commit_fact
from dashboard.regressions.series.history import load_history
from dashboard.regressions.snapshot import AffectedChanges, reached_keys
from dashboard.sentences.regressions.causes import cause_sentence
from dashboard.sentences.series.doubts import describe_doubts, doubt_sentence
from tests.dashboard import factories

Levels = Mapping[str, Sequence[float]]


@pytest.fixture
def line(project: Project) -> list[Commit]:
    return factories.create_commits(project, 14)


def judge_levels(
    line: list[Commit], case: Case, levels: Levels, environments: Mapping[int, str] | None = None
) -> None:
    """Measure and judge commit by commit, as they come. `environments`: the driver from a commit on.

    Of the first points nothing is to be said: they are judged with those behind them.
    """
    driver = "535.1"
    for place in range(len(next(iter(levels.values())))):
        driver = (environments or {}).get(place, driver)
        values = {name: of_metric[place] for name, of_metric in levels.items()}
        run = factories.store_measured_run(line[place], case, values, environment={"driver": driver})
        if place >= 3:
            judge_run(run.pk)


def slower_times(at: int, by: float = 1.4, count: int = 14) -> list[float]:
    return factories.noisy_levels((at, 0.010), (count - at, 0.010 * by))


def rates_of(values: Sequence[float]) -> list[float]:
    return [1 / value for value in values]


def counted_levels(at: int, before: float, after: float) -> list[float]:
    return [before if place < at else after for place in range(14)]


def live_regressions() -> list[Regression]:
    return list(Regression.objects.filter(withdrawn_at=None).order_by("first_bad__position"))


def test_a_step_time_and_its_throughput_are_one(line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"step_time": slower_times(6), "throughput": rates_of(slower_times(6))})
    regression = Regression.objects.get()
    assert (regression.series.metric.name, regression.changes.count()) == ("step_time", 2)


def test_a_throughput_found_one_commit_later_is_the_same(line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"step_time": slower_times(6), "throughput": rates_of(slower_times(7))})
    assert Regression.objects.get().first_bad == line[6]


@pytest.mark.parametrize("found", [5, 6, 7])
def test_an_exact_counter_knows_the_place(line: list[Commit], case: Case, found: int) -> None:
    calls = counted_levels(6, 600.0, 700.0)
    judge_levels(line, case, {"step_time": slower_times(found), "function_calls": calls})
    regression = Regression.objects.get(withdrawn_at=None)
    assert (regression.first_bad, regression.series.metric.name) == (line[6], "step_time")


@pytest.mark.parametrize(
    ("found", "left_out", "joins"), [(10, (7, 8, 9), True), (8, (), False), (10, (), False)]
)
def test_a_change_of_its_commits_joins_the_cause_that_only_pairs_saw(
    project: Project, line: list[Commit], case: Case, found: int, left_out: tuple[int, ...], joins: bool
) -> None:
    series = factories.get_series(factories.create_run(line[0], case), "step_time")
    ends = {"first_bad": line[9], "last_good": line[8], "before": 0.010, "after": 0.014}
    proved = Regression.objects.create(project=project, series=series, state="confirmed", **ends)
    factories.create_ended_experiment(proved, "confirmed", line[8], line[9], ratio=1.4)
    for place, value in enumerate(slower_times(found)):
        if place not in left_out:
            judge_run(factories.store_measured_run(line[place], case, {"step_time": value}).pk)
    assert (Change.objects.get().regression == proved) == joins
    assert {regression.first_bad for regression in live_regressions()} == {
        line[9],
        *([] if joins else [line[found]]),
    }
    assert Experiment.objects.filter(state="requested").count() == (not joins)


def test_a_change_beside_its_proved_commit_is_explained_by_the_runs_around_that(
    project: Project, line: list[Commit], case: Case
) -> None:
    judge_levels(line, case, {"step_time": slower_times(6)})
    Regression.objects.update(state="confirmed")
    beside = Change.objects.select_related("series__metric", "series__configuration").get()
    beside.last_good, beside.first_bad, beside.position = line[6], line[7], 7
    good, bad = commit_fact(line[5]), commit_fact(line[6])
    moved = change_at_proof(Explanation(change_fact(beside), good, bad, (good.hash, bad.hash), None))
    sides = sides_of_step(moved, load_history(beside.series, "main"))
    runs = [commit.runs.get().pk for commit in line]
    assert (sides.good[-1], sides.bad[0]) == (runs[5], runs[6])
    assert moved.first_bad == bad


def test_a_counter_two_commits_away_is_another_cause(line: list[Commit], case: Case) -> None:
    judge_levels(
        line, case, {"step_time": slower_times(9), "function_calls": counted_levels(6, 600.0, 700.0)}
    )
    assert [regression.first_bad for regression in live_regressions()] == [line[6], line[9]]


def test_two_causes_are_two_regressions(line: list[Commit], case: Case) -> None:
    times = factories.noisy_levels((5, 0.010), (4, 0.014), (5, 0.021))
    judge_levels(line, case, {"step_time": times, "throughput": rates_of(times)})
    assert [regression.first_bad for regression in live_regressions()] == [line[5], line[9]]
    assert all(regression.changes.count() == 2 for regression in live_regressions())


def test_memory_and_time_of_different_commits_are_apart(line: list[Commit], case: Case) -> None:
    memory = factories.noisy_levels((9, 1e8), (5, 1.25e8))
    judge_levels(line, case, {"step_time": slower_times(5), "peak_memory": memory})
    assert [(regression.first_bad, regression.series.metric.name) for regression in live_regressions()] == [
        (line[5], "step_time"),
        (line[9], "peak_memory"),
    ]


@pytest.mark.parametrize(("memory", "primary"), [(1.2, "step_time"), (1.8, "peak_memory")])
def test_what_moved_most_is_primary(line: list[Commit], case: Case, memory: float, primary: str) -> None:
    levels = factories.noisy_levels((6, 1e8), (8, memory * 1e8))
    judge_levels(line, case, {"step_time": slower_times(6), "peak_memory": levels})
    assert Regression.objects.get().series.metric.name == primary


def test_cases_of_one_cause_are_one_regression(project: Project, line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"step_time": slower_times(6)})
    judge_levels(line, factories.create_case(project, variant="other"), {"step_time": slower_times(6, 1.7)})
    regression = Regression.objects.get()
    assert regression.changes.count() == 2
    assert regression.series.case.key == "variant=other"


def test_a_case_measured_rarely_joins_and_is_placed_by_the_other(
    project: Project, line: list[Commit], case: Case
) -> None:
    times, rare = slower_times(6), factories.create_case(project, variant="rare")
    for place in (0, 1, 2, 9, 10, 11):
        judge_run(factories.store_measured_run(line[place], rare, {"step_time": times[place]}).pk)
    assert Regression.objects.get().first_bad == line[9]
    judge_levels(line, case, {"step_time": times})
    regression = Regression.objects.get()
    assert (regression.first_bad, regression.last_good) == (line[6], line[5])


def test_many_more_calls_are_known_at_once(line: list[Commit], case: Case) -> None:
    judge_levels(line[:7], case, {"function_calls": counted_levels(6, 600, 640)[:7]})
    regression = Regression.objects.get()
    assert (regression.first_bad, regression.state) == (line[6], "confirmed")


def test_a_few_more_calls_are_only_evidence(line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"function_calls": counted_levels(6, 600, 612)})
    assert not Regression.objects.exists()
    assert Change.objects.get().regression is None


def test_evidence_is_kept_with_what_it_explains(line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"function_calls": counted_levels(6, 600, 612), "step_time": slower_times(6)})
    regression = Regression.objects.get()
    assert {change.series.metric.name for change in regression.changes.all()} == {
        "step_time",
        "function_calls",
    }
    assert (regression.series.metric.name, regression.state) == ("step_time", "suspected")


@pytest.mark.parametrize(
    "name", ["synchronisations", "host_device_copies", "copied_bytes", "graph_breaks", "recompilations"]
)
def test_any_more_waiting_for_the_device_is_told(line: list[Commit], case: Case, name: str) -> None:
    judge_levels(line, case, {name: counted_levels(6, 100, 101)})
    assert Regression.objects.get().first_bad == line[6]


@pytest.mark.parametrize(("reads", "told"), [(101.0, True), (100.5, False)])
def test_a_read_more_at_every_step_is_told(line: list[Commit], case: Case, reads: float, told: bool) -> None:
    """What an optimizer reads for each parameter hides no `item()` in the loop."""
    judge_levels(line, case, {"scalar_reads": counted_levels(6, 100, reads)})
    assert Regression.objects.exists() is told


def test_from_nothing_to_something_has_no_ratio(line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"synchronisations": counted_levels(6, 0, 2)})
    regression = Regression.objects.get()
    assert (regression.ratio, regression.before, regression.after) == (None, 0, 2)


def test_calls_that_bought_a_faster_step_are_no_regression(line: list[Commit], case: Case) -> None:
    judge_levels(
        line, case, {"function_calls": counted_levels(6, 600, 700), "step_time": slower_times(6, 0.7)}
    )
    assert live_regressions() == []


def test_a_driver_that_was_there_before_excuses_no_commit(line: list[Commit], case: Case) -> None:
    drivers = {place: f"53{place % 2}.1" for place in range(7)}
    judge_levels(line, case, {"function_calls": [600, 600, 600, 600, 700, 600, 800]}, drivers)
    assert [found.first_bad.position for found in live_regressions()] == [4, 6]
    assert not Change.objects.filter(environment_only=True)


def test_a_new_driver_is_blamed_on_no_commit(line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"step_time": slower_times(6)}, {6: "550.2"})
    change = Change.objects.get()
    assert "driver 535.1 → 550.2" in " ".join(describe_doubts(change))
    few = doubt_sentence({"code": "few points after", "count": 1})
    assert few == "The new level has only 1 point so far."
    told = Regression.objects.get()
    assert (told.cause, told.proving, told.names_commit) == ("driver or system", False, False)
    assert cause_sentence(told.cause_evidence[0]) == "Changed between the two runs: driver 535.1 → 550.2."


def test_a_new_driver_at_another_commit_excuses_nothing(line: list[Commit], case: Case) -> None:
    judge_levels(line, case, {"step_time": slower_times(6)}, {9: "550.2"})
    assert Regression.objects.get().first_bad == line[6]


def test_one_cause_is_told_once(project: Project, line: list[Commit], case: Case) -> None:
    Channel.objects.create(project=project, kind="email", address="a@example.org", suspicions=True)
    judge_levels(
        line,
        case,
        {
            "function_calls": counted_levels(6, 600, 700),
            "step_time": slower_times(6),
            "throughput": rates_of(slower_times(7)),
            "peak_memory": factories.noisy_levels((6, 1e8), (8, 1.3e8)),
        },
    )
    assert Delivery.objects.get().regression == Regression.objects.get()


def test_a_decision_on_a_rest_knows_the_proved_step_right_before_it(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 12)
    proved = factories.create_regression(line, 5, "step_time", 5)
    rest, far = (
        Regression.objects.create(
            project=project,
            last_good=line[at - 1],
            first_bad=line[at],
            series=proved.series,
            before=1,
            after=2,
        )
        for at in (7, 10)
    )
    _, regressions = reached_keys(project, "main", AffectedChanges(regressions={rest.pk}))
    assert regressions == {proved.pk, rest.pk}
    _, regressions = reached_keys(project, "main", AffectedChanges(regressions={far.pk}))
    assert regressions == {far.pk}
