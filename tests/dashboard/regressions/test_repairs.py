"""Which improvement repairs a regression: by the level, and by the phase that explains the step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dashboard.models import Case, Commit, Point, Project, Regression
from dashboard.regressions import experiment_ended, judge_run
from dashboard.regressions.explanation.left_over import growth_at_pace, phase_growth
from dashboard.regressions.explanation.phase_shares import Sides
from dashboard.regressions.row_facts import series_fact
from tests.dashboard import factories
from tests.dashboard.regressions.judged_again import judge_again


@pytest.fixture
def of(project: Project) -> Case:
    return factories.create_case(project)


def judge_phases(project: Project, case: Case, **phases: Sequence[float]) -> list[Commit]:
    """Runs of commits in order, whose step time is the sum of its phases'; six measured on each level.

    Of the first ones nothing is to be said: they are judged with those behind them.
    """
    line = factories.create_commits(project, 6 * len(next(iter(phases.values()))))
    for commit in line:
        now = {name: levels[commit.position // 6] for name, levels in phases.items()}
        values = {"step_time": sum(now.values())}
        run = factories.store_measured_run(commit, case, values, phases={"phase_self_time": now})
        if commit.position >= 4:
            judge_run(run.pk)
    return line


def repaired_by() -> dict[int, Commit | None]:
    rows = Regression.objects.filter(withdrawn_at=None).select_related("first_bad", "recovered_by")
    return {regression.first_bad.position: regression.recovered_by for regression in rows}


@pytest.mark.parametrize("commits_later", [2, 3, 5, 12])
def test_a_counter_recovers_however_long_afterwards(project: Project, case: Case, commits_later: int) -> None:
    """Its change is exact from the first commit on: no later run writes it again."""
    counts = [10] * 5 + [13] * commits_later + [10]
    line = factories.create_commits(project, len(counts))
    for commit, count in zip(line, counts, strict=True):
        judge_run(factories.store_measured_run(commit, case, {"synchronisations": count}).pk)
    assert repaired_by() == {5: line[-1]}


def test_a_step_before_the_judged_window_recovers(project: Project, case: Case) -> None:
    bad, fixed = 20, 430
    line = factories.create_commits(project, fixed + 6)
    for part in (line[: bad + 6], line[bad + 6 :]):
        levels = {commit: 0.014 if bad <= commit.position < fixed else 0.01 for commit in part}
        measured = [
            (commit, {"step_time": level * factories.run_noise(commit.position)})
            for commit, level in levels.items()
        ]
        for run in factories.store_measured_runs(measured, case)[-6:]:
            judge_run(run.pk)
    assert repaired_by() == {bad: line[fixed]}


def test_a_gain_in_another_phase_repairs_nothing(project: Project, case: Case) -> None:
    judge_phases(project, case, push=[0.004, 0.008, 0.008], targets=[0.006, 0.006, 0.002])
    assert repaired_by() == {6: None}


def test_a_step_that_noise_has_placed_beside_goes_by_its_proved_commits(project: Project, case: Case) -> None:
    """Detection sees it at 6, by another phase's noise; pairs have placed it at 7."""
    line = factories.create_commits(project, 18)
    levels = {0: (4, 6), 6: (4, 7.9), 7: (6, 6), 12: (6, 2)}
    for commit in line:
        push, targets = levels[max(start for start in levels if start <= commit.position)]
        now = {"push": push / 1000, "targets": targets / 1000}
        if commit.position == 12:
            regression = Regression.objects.get()
            assert regression.first_bad.position == 6
            found = (("confirmed", 7, "proof", 1.2), ("none", 6, "bisection", 1.0))
            for verdict, head, purpose, ratio in found:
                row = factories.create_ended_experiment(
                    regression, verdict, line[5], line[head], purpose=purpose, ratio=ratio
                )
                experiment_ended(row.pk)
        values = {"step_time": sum(now.values())}
        judge_run(factories.store_measured_run(commit, case, values, phases={"phase_self_time": now}).pk)
    assert repaired_by() == {7: None}


def test_a_gain_in_the_same_phase_repairs(project: Project, case: Case) -> None:
    line = judge_phases(project, case, push=[0.004, 0.008, 0.0042], targets=[0.006, 0.006, 0.0058])
    assert repaired_by() == {6: line[12]}


def test_what_lies_below_another_regression_can_be_repaired(project: Project, case: Case) -> None:
    line = judge_phases(
        project, case, push=[0.004, 0.008, 0.008, 0.004], targets=[0.006, 0.006, 0.016, 0.016]
    )
    assert repaired_by() == {6: line[18], 12: None}


def test_a_phase_that_is_back_repairs_where_something_else_became_slower(
    project: Project, case: Case
) -> None:
    line = judge_phases(project, case, push=[0.004, 0.008, 0.004], targets=[0.006, 0.006, 0.0073])
    assert repaired_by() == {6: line[12]}


def test_a_step_that_no_phase_explains_goes_by_the_level(project: Project, case: Case) -> None:
    line = judge_phases(
        project, case, a=[0.004, 0.006, 0.004], b=[0.003, 0.005, 0.003], c=[0.003, 0.005, 0.003]
    )
    assert repaired_by() == {6: line[12]}


def test_a_gain_that_is_no_longer_found_repairs_nothing(project: Project, case: Case) -> None:
    line = judge_phases(project, case, push=[0.004, 0.008, 0.004], targets=[0.006, 0.006, 0.006])
    assert repaired_by() == {6: line[12]}
    for phase, slow in (("", 0.014), ("push", 0.008)):
        measured_anew = Point.objects.filter(position__gte=12, series__phase=phase)
        measured_anew.update(value=slow, samples=[0.99 * slow, slow, 1.01 * slow])
    judge_again(line[-1].runs.get().pk)
    assert repaired_by() == {6: None}


OTHERS = dict.fromkeys(("act", "env", "sample", "targets"), 0.002)


def test_a_machine_that_has_slowed_down_hides_no_repair(project: Project, case: Case) -> None:
    """All takes a third longer from the repair on: half the level is back, the phase is as the others are."""
    slow = {name: [level, level, 1.34 * level] for name, level in OTHERS.items()}
    line = judge_phases(project, case, push=[0.004, 0.012, 1.34 * 0.004], **slow)
    assert repaired_by() == {6: line[12]}


def test_what_a_slow_machine_leaves_of_a_step_is_no_repair(project: Project, case: Case) -> None:
    """A third of the time is given back in other phases, while the phase keeps what it lost."""
    judge_phases(
        project,
        case,
        push=[0.004, 0.008, 0.008],
        big=[0.008] * 2 + [0.004],
        **dict.fromkeys(OTHERS, [0.002] * 3),
    )
    assert repaired_by() == {6: None}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        # The others twice as slow: 6 ms are 3 ms at the pace before.
        ({"push": 0.006, "push/copy": 0.002, "a": 0.002, "b": 0.002, "c": 0.002, "d": 0.002}, 0.002),
        # One of them has lost time itself: the median doesn't know.
        ({"push": 0.003, "push/copy": 0.001, "a": 0.009, "b": 0.001, "c": 0.001, "d": 0.001}, 0.002),
        # One is gone: three are too few to tell the machine's pace.
        ({"push": 0.006, "push/copy": 0.002, "a": 0.0, "b": 0.002, "c": 0.002, "d": 0.002}, 0.006),
    ],
)
def test_the_other_phases_tell_the_pace(after: dict[str, float], expected: float) -> None:
    before = {"push": 0.002, "push/copy": 0.0, "a": 0.001, "b": 0.001, "c": 0.001, "d": 0.001}
    assert growth_at_pace("push", before, after) == pytest.approx(expected)


def test_without_phases_nothing_is_known() -> None:
    assert growth_at_pace("push", {}, {}) is None


def test_a_side_without_runs_left_tells_nothing_of_a_phase(project: Project, case: Case) -> None:
    commit = factories.create_commit(project, 0)
    run = factories.store_measured_run(
        commit, case, {"step_time": 0.01}, phases={"phase_self_time": {"act": 0.01}}
    )
    series = series_fact(factories.get_series(run, "step_time"))
    assert phase_growth(series, "act", Sides(good=(run.pk,), bad=())) is None
