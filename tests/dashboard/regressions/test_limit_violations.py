from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

from dashboard.models import (
    Case,
    Change,
    Channel,
    Commit,
    Delivery,
    Limit,
    Project,
    Regression,
    Run,
    SeriesLatest,
)
from dashboard.postgresql.compiled_queries import CompiledQuery
from dashboard.querysets import limits
from dashboard.regressions import judge_run, limit_violations
from dashboard.regressions.series import limit_episodes
from dashboard.repositories import DETACHED
from dashboard.sentences.regressions.regressions import regression_title
from dashboard.sentences.series.limits import violation_text
from tests.dashboard import factories
from tests.dashboard.fuzzing import effects_taken_back
from tests.dashboard.regressions.judged_again import judge_again


@pytest.fixture
def case(project: Project) -> Case:
    Channel.objects.create(project=project, kind="email", address="a@example.org")
    return factories.create_case(project)


def measure_and_judge(line: list[Commit], case: Case, values: list[float], tainted: int = -1) -> list[Run]:
    """Measure and judge commits whose utilization must be at least 80 %."""
    made = []
    for index, (commit, value) in enumerate(zip(line, values, strict=True)):
        run = factories.store_measured_run(commit, case, {"gpu_utilization": value})
        store_limit(run, "gpu_utilization", value, minimum=80, tainted=index == tainted)
        judge_run(run.pk)
        made.append(run)
    return made


def store_limit(run: Run, metric: str, value: float, *, minimum: float, tainted: bool = False) -> Limit:
    return Limit.objects.create(
        series=factories.get_series(run, metric),
        run=run,
        position=run.commit.position,
        minimum=minimum,
        value=value,
        crossed=value < minimum,
        tainted=tainted,
    )


def found_by_order(
    line: list[Commit], case: Case, values: list[float], measured: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], list[tuple[Any, ...]]]]:
    """Each order that goes on from what is measured, with what it ends with; what it did is taken back."""
    if len(measured) == len(line):
        yield measured, stored_regressions(case.project)
    for at in sorted(set(range(len(line))) - set(measured)):
        with effects_taken_back():
            measure_and_judge([line[at]], case, [values[at]])
            yield from found_by_order(line, case, values, (*measured, at))


def stored_regressions(project: Project) -> list[tuple[Any, ...]]:
    """What stands of a project's regressions, by the places of their commits."""
    rows = Regression.objects.filter(project=project, withdrawn_at=None)
    return sorted(
        (
            row.first_bad.position,
            row.last_good.position,
            row.recovered_by and row.recovered_by.position,
            row.state,
            row.before,
            row.after,
            row.ratio,
            tuple(violation_texts(row)),
        )
        for row in rows
    )


def violation_texts(found: Regression) -> list[str]:
    return [violation_text(limit) for limit in found.limits.order_by("pk")]


def test_a_crossed_limit_is_told_once(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, case, [90, 91, 71, 70])
    found = Regression.objects.get()
    assert (found.first_bad, found.last_good, found.state) == (line[2], line[1], "confirmed")
    assert violation_texts(found) == ["GPU utilization is 71 %, its limit is at least 80 %"]
    assert Delivery.objects.get().regression == found
    assert regression_title(found).startswith("GPU utilization 71 % (limit 80 %) since")


def test_a_limit_kept_again_names_the_commit(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 3)
    measure_and_judge(line, case, [90, 71, 92])
    assert Regression.objects.get().recovered_by == line[2]


@pytest.mark.parametrize("values", [[90, 71, 92, 71], [70, 71, 92, 93], [90, 71, 72, 93]])
def test_the_order_of_measuring_makes_no_difference(
    project: Project, case: Case, values: list[float]
) -> None:
    found = dict(found_by_order(factories.create_commits(project, 4), case, values))
    assert found.keys() == set(permutations(range(4)))
    in_order = found[(0, 1, 2, 3)]
    assert {order: rows for order, rows in found.items() if rows != in_order} == {}


def test_each_crossing_of_a_limit_is_told_with_its_end(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, case, [90, 71, 92, 71])
    first, second = Regression.objects.order_by("first_bad__position")
    assert (first.first_bad, first.last_good, first.recovered_by) == (line[1], line[0], line[2])
    assert (second.first_bad, second.last_good, second.recovered_by) == (line[3], line[2], None)


def test_a_history_measured_backwards_tells_a_limit_once(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 6)
    measure_and_judge(line[::-1], case, [70, 70, 70, 71, 91, 90])
    found = Regression.objects.get()
    assert (found.last_good, found.first_bad, found.recovered_by) == (line[1], line[2], None)
    assert Delivery.objects.filter(event="opened").count() == 1


def opened_alerts() -> int:
    return Delivery.objects.filter(event="opened").count()


def test_values_that_hover_at_a_limit_are_one_open_regression(project: Project, case: Case) -> None:
    hovering = [79.9 if at % 2 else 80.1 for at in range(20)]
    line = factories.create_commits(project, 26)
    measure_and_judge(line, case, [80.1, 80.0, 80.1, 80.0, 80.1, 80.0, *hovering])
    found = Regression.objects.get()
    assert (found.first_bad, found.recovered_by, opened_alerts()) == (line[7], None, 1)


@pytest.fixture
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the commits before a run far fewer are read than a crossing is long."""
    monkeypatch.setattr(limit_violations, "WINDOW_COMMITS", 8)
    query = CompiledQuery[Any](limit_violations._build_limits_along_line)
    monkeypatch.setattr(limit_violations, "_LIMITS_ALONG_LINE", query)


@pytest.mark.usefixtures("short_window")
def test_a_long_crossing_keeps_where_it_began(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 22)
    measure_and_judge(line, case, [90, 90, *[71] * 20])
    found = Regression.objects.get()
    assert (found.last_good, found.first_bad, found.before) == (line[1], line[2], 90)


@pytest.mark.usefixtures("short_window")
def test_values_that_hover_for_long_are_one_regression(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 36)
    measure_and_judge(line, case, [80.1, 80.0] * 3 + [80.1, 79.9] * 15)
    found = Regression.objects.get()
    assert (found.first_bad, found.recovered_by, opened_alerts()) == (line[7], None, 1)


def test_another_case_that_keeps_its_limit_again_leaves_the_rest_of_a_commit_open(
    project: Project, case: Case
) -> None:
    line = factories.create_commits(project, 3)
    measure_and_judge(line, case, [90, 71, 71])
    measure_and_judge([line[2], line[1]], factories.create_case(project, "other"), [92, 73])
    found = Regression.objects.get()
    assert (found.recovered_by, len(violation_texts(found))) == (None, 2)
    assert not Delivery.objects.filter(event="recovered").exists()


@pytest.fixture
def soon_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_episodes, "GONE_AFTER", 6)


def cross_together(line: list[Commit], case: Case, other: Case, rarely: int = 1) -> Regression:
    """Two cases of which both cross their limit at 4; the other one is measured at each `rarely`th commit."""
    for commit in line[:5]:
        measure_and_judge([commit], case, [70 if commit.position >= 4 else 90])
        if commit.position % rarely == 0:
            measure_and_judge([commit], other, [60 if commit.position >= 4 else 90])
    return Regression.objects.get()


@pytest.mark.usefixtures("soon_gone")
@pytest.mark.parametrize(("rarely", "gone_after"), [(1, 6), (4, 12)])
def test_a_series_that_is_measured_no_more_holds_a_regression_open_no_longer(
    project: Project, case: Case, rarely: int, gone_after: int
) -> None:
    line = factories.create_commits(project, 20)
    other = factories.create_case(project, "other")
    found = cross_together(line, case, other, rarely)
    measure_and_judge(line[5 : 4 + gone_after], case, [90] * (gone_after - 1))
    found.refresh_from_db()
    assert (len(violation_texts(found)), found.recovered_by) == (2, None)
    measure_and_judge(line[4 + gone_after :][:1], case, [90])
    found.refresh_from_db()
    assert found.recovered_by == line[5]
    measure_and_judge(line[18:19], other, [60])
    found.refresh_from_db()
    assert (found.recovered_by, Regression.objects.count()) == (None, 1)


@pytest.mark.usefixtures("soon_gone")
def test_a_series_whose_runs_are_all_disturbed_is_measured_still(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 30)
    other = factories.create_case(project, "other")
    found = cross_together(line, case, other)
    for commit in line[5:15]:
        measure_and_judge([commit], case, [90])
        measure_and_judge([commit], other, [60], tainted=0)
    found.refresh_from_db()
    assert found.recovered_by is None
    measure_and_judge(line[15:21], case, [90] * 6)
    found.refresh_from_db()
    assert found.recovered_by == line[15]


@pytest.mark.usefixtures("soon_gone")
def test_a_disturbed_run_of_what_was_gone_opens_nothing_again(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 20)
    other = factories.create_case(project, "other")
    found = cross_together(line, case, other)
    measure_and_judge(line[5:12], case, [90] * 7)
    measure_and_judge(line[12:13], other, [60], tainted=0)
    measure_and_judge(line[12:14], case, [90] * 2)
    found.refresh_from_db()
    assert found.recovered_by == line[5]


@pytest.mark.usefixtures("soon_gone", "short_window")
def test_what_was_crossed_long_until_it_was_gone_is_not_told_anew(project: Project, case: Case) -> None:
    """It is over where the others went on without it: what is read of the past reaches no further."""
    line = factories.create_commits(project, 40)
    other = factories.create_case(project, "other")
    found = cross_together(line, case, other)
    for commit in line[5:20]:
        measure_and_judge([commit], case, [90])
        measure_and_judge([commit], other, [60])
    measure_and_judge(line[20:36], case, [90] * 16)
    found.refresh_from_db()
    assert (found.recovered_by, Regression.objects.count()) == (line[20], 1)
    measure_and_judge(line[36:37], other, [60])
    found.refresh_from_db()
    assert (found.recovered_by, Regression.objects.count()) == (None, 1)


@pytest.mark.usefixtures("soon_gone")
def test_a_series_that_is_measured_late_is_not_taken_for_gone(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 20)
    measure_and_judge(line, case, [90] * 4 + [70] + [90] * 15)
    measure_and_judge(line[:6], factories.create_case(project, "other"), [90] * 4 + [60] * 2)
    assert Regression.objects.get().recovered_by is None


@pytest.mark.usefixtures("soon_gone")
def test_where_nothing_is_measured_any_more_a_limit_stays_crossed(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 20)
    found = cross_together(line, case, factories.create_case(project, "other"))
    measure_and_judge(line[5:], factories.create_case(project, "third"), [90] * 15)
    found.refresh_from_db()
    assert found.recovered_by is None


def test_commits_of_no_branch_cross_nothing_together(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 2)
    project.commits.update(branch=DETACHED)
    measure_and_judge(list(Commit.objects.filter(pk__in=[commit.pk for commit in line])), case, [90, 71])
    assert not Regression.objects.exists()


def test_a_limit_crossed_again_soon_stays_crossed_until_it_is_kept_in_a_row(
    project: Project, case: Case
) -> None:
    values = [90, 71, 92, 71, 92, 71, *[92] * 10]
    line = factories.create_commits(project, len(values))
    measure_and_judge(line, case, values)
    first, second = Regression.objects.order_by("first_bad__position")
    assert (first.first_bad, first.recovered_by) == (line[1], line[2])
    assert (second.first_bad, second.recovered_by) == (line[3], line[6])
    assert opened_alerts() == 2


def test_a_limit_kept_within_the_noise_is_kept_after_ten_commits(project: Project, case: Case) -> None:
    noisy = [84.0, 86, 85, 83, 86, 84]
    line = factories.create_commits(project, 18)
    measure_and_judge(line, case, [*noisy, 70, 71, *[81.0, 82] * 5])
    assert Regression.objects.get().recovered_by == line[8]
    Limit.objects.filter(run__commit=line[17]).update(value=79)
    judge_again(Run.objects.get(commit=line[17]).pk)
    assert Regression.objects.get().recovered_by is None


def test_a_commit_whose_runs_disagree_counts_by_their_median(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 3)
    first, second = line[:2]
    measure_and_judge([first, second], case, [90, 79])
    found = Regression.objects.get()
    measure_and_judge([second], case, [92])
    found.refresh_from_db()
    assert found.withdrawn_at
    measure_and_judge([second], case, [70])
    found.refresh_from_db()
    assert (found.withdrawn_at, found.first_bad, found.after) == (None, second, 79)
    assert Regression.objects.count() == 1


def test_a_limit_kept_again_leaves_a_step_that_stands(project: Project, case: Case) -> None:
    """The step of the very series isn't back where it was, though the limit is kept again."""
    line = factories.create_commits(project, 3)
    measure_and_judge(line[:2], case, [90, 71])
    found = Regression.objects.get()
    size = {"before": 90, "after": 71, "ratio": 0.79, "low": 0.78, "high": 0.8}
    Change.objects.create(
        series=found.series,
        regression=found,
        first_bad=line[1],
        last_good=line[0],
        position=1,
        reach_good=0,
        reach_bad=1,
        direction="regression",
        confidence=0.99,
        **size,
    )
    measure_and_judge(line[2:], case, [82])
    found.refresh_from_db()
    assert (found.changes.count(), found.recovered_by) == (1, None)


def test_of_two_limits_both_must_be_kept(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 4)
    for commit, used, busy in zip(line, (90, 60, 90, 90), (90, 60, 60, 95), strict=True):
        run = factories.store_measured_run(commit, case, {"gpu_utilization": used, "cpu_utilization": busy})
        store_limit(run, "gpu_utilization", used, minimum=80)
        store_limit(run, "cpu_utilization", busy, minimum=80)
        judge_run(run.pk)
    found = Regression.objects.get()
    assert (len(violation_texts(found)), found.first_bad, found.recovered_by) == (2, line[1], line[3])


def test_one_of_two_limits_that_was_crossed_earlier_has_a_regression_of_its_own(
    project: Project, case: Case
) -> None:
    line = factories.create_commits(project, 3)
    for at, used, busy in ((0, 90, 90), (2, 60, 60), (1, 60, 90)):
        run = factories.store_measured_run(line[at], case, {"gpu_utilization": used, "cpu_utilization": busy})
        store_limit(run, "gpu_utilization", used, minimum=80)
        store_limit(run, "cpu_utilization", busy, minimum=80)
        judge_run(run.pk)
    earlier, later = Regression.objects.order_by("first_bad__position")
    assert (earlier.first_bad, earlier.series.metric.name) == (line[1], "gpu_utilization")
    assert (later.first_bad, later.series.metric.name) == (line[2], "cpu_utilization")


def test_a_limit_crossed_from_the_first_commit_on_is_told(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 2)
    measure_and_judge(line, case, [70, 71])
    assert Regression.objects.get().first_bad == line[0]


def test_a_tainted_value_crosses_nothing(project: Project, case: Case) -> None:
    measure_and_judge(factories.create_commits(project, 2), case, [90, 10], tainted=1)
    assert not Regression.objects.exists()


def slower_with_limit(line: list[Commit], case: Case) -> tuple[Regression, Run]:
    """A regression of another series at the second commit, whose utilization crosses its limit too."""
    _, second = measure_and_judge(line, case, [90, 91])
    series = factories.get_series(second, "step_time")
    found = Regression.objects.create(
        project=case.project, first_bad=line[1], last_good=line[0], series=series, before=1, after=2
    )
    Limit.objects.filter(run=second).update(value=60, crossed=True)
    return found, second


def test_an_open_regression_of_the_commit_says_it_too(project: Project, case: Case) -> None:
    found, second = slower_with_limit(factories.create_commits(project, 2), case)
    judge_again(second.pk)
    found.refresh_from_db()
    assert violation_texts(found) == ["GPU utilization is 60 %, its limit is at least 80 %"]


def test_a_limit_of_another_case_names_it(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 2)
    other = factories.create_case(project, "other")
    measure_and_judge(line, other, [90, 91])
    found, second = slower_with_limit(line, case)
    Limit.objects.filter(run=second).update(value=91, crossed=False)
    Limit.objects.filter(series__configuration__case=other, position=1).update(value=60, crossed=True)
    judge_again(Run.objects.get(commit=line[1], configuration__case=other).pk)
    found.refresh_from_db()
    assert violation_texts(found) == ["GPU utilization of other is 60 %, its limit is at least 80 %"]
    assert regression_title(found).startswith(
        "GPU utilization 60 % (limit 80 %) in other, step time 1 s → 2 s in snake_dqn since"
    )


def test_a_title_begins_with_a_limit_of_the_regressions_own_case(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 2)
    other = factories.create_case(project, "other")
    measure_and_judge(line, other, [90, 91])
    found, second = slower_with_limit(line, case)
    Limit.objects.filter(run=second).update(value=70)
    Limit.objects.filter(position=1).exclude(run=second).update(value=60, crossed=True)
    found.limits.add(*Limit.objects.filter(crossed=True))
    assert "GPU utilization 70 % (limit 80 %) and 1 more limit in snake_dqn" in regression_title(found)


def test_what_a_regression_says_too_is_not_listed_again(project: Project, case: Case) -> None:
    found, second = slower_with_limit(factories.create_commits(project, 2), case)
    row = Limit.objects.get(run=second)
    SeriesLatest.objects.filter(series=row.series_id).update(limit=row)
    assert [latest.limit for latest in limits.crossed_without_regression(Project.objects.all())] == [row]
    judge_again(second.pk)
    assert not limits.crossed_without_regression(Project.objects.all()).exists()
    Regression.objects.filter(pk=found.pk).update(state="refuted")
    assert limits.crossed_without_regression(Project.objects.all()).exists()


def test_a_commit_that_crosses_two_limits_says_both(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 2)
    _, second = measure_and_judge(line, case, [90, 60])
    memory = factories.get_series(second, "peak_memory")
    Limit.objects.create(series=memory, run=second, position=1, maximum=100, value=200, crossed=True)
    judge_again(second.pk)
    judge_again(second.pk)
    utilization, memory_text = violation_texts(Regression.objects.get())
    assert utilization == "GPU utilization is 60 %, its limit is at least 80 %"
    assert memory_text == "peak memory is 200 B, its limit is at most 100 B"
    assert "GPU utilization 60 % (limit 80 %) and 1 more limit" in regression_title(Regression.objects.get())
