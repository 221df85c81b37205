"""A step that stored runs show beside its commits is found between its levels, and bisected to them."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.models import Regression
from dashboard.regressions import judge_run
from tests.dashboard import factories
from tests.dashboard.regressions.planted import History, linear_history

# The last commit of a history: many enough behind its steps that all of them are told.
LAST = 32


def measure_history(
    steps: Mapping[str, float], seen: int, memory: Mapping[str, float] | None = None
) -> list[Regression]:
    """What is told once a history was measured whose points show all its steps as one, at commit `seen`.

    `memory`: its steps, where they aren't those of the time.
    """
    history = History(linear_history(LAST), steps, others={"peak_memory": memory or steps}).make()
    case = factories.create_case(history.project)
    for commit in history.rows.values():
        place = f"m{LAST}" if commit.position >= seen else "m0"
        values = {name: history.level(place, name) for name in ("step_time", "peak_memory")}
        values = {name: value * factories.run_noise(commit.position) for name, value in values.items()}
        values["peak_memory"] *= 1e11
        run = factories.store_measured_run(commit, case, values)
        # Of the points before it nothing is to be said: they are judged with those behind them.
        if commit.position < seen - 2:
            continue
        judge_run(run.pk)
        if history.project.experiments.filter(state="requested").exists():
            history.answer_all()
    return list(Regression.objects.filter(withdrawn_at=None).order_by("first_bad__position"))


def test_two_series_that_seemed_to_step_beside_their_commit_are_one_regression(db: None) -> None:
    """Pairs of each find it between its levels, and bisection leads both to the commit."""
    (regression,) = measure_history({"m9": 1.4}, seen=14)
    assert (regression.state, regression.first_bad.subject) == ("confirmed", "m9")
    assert {change.series.metric.name for change in regression.changes.all()} == {"step_time", "peak_memory"}


def test_two_halves_of_a_step_are_both_named(db: None) -> None:
    told = measure_history({"m10": 1.12, "m16": 1.1}, seen=13)
    assert [(found.state, found.commits_left, found.first_bad.subject) for found in told] == [
        ("confirmed", 1, "m10"),
        ("confirmed", 1, "m16"),
    ]


def test_the_half_that_another_series_has_behind_a_commit_is_named(db: None) -> None:
    told = measure_history({"m10": 1.25}, seen=13, memory={"m10": 1.12, "m16": 1.1})
    assert [(found.series.metric.name, found.first_bad.subject) for found in told] == [
        ("step_time", "m10"),
        ("peak_memory", "m16"),
    ]


def test_what_came_little_by_little_is_told_over_its_commits(db: None) -> None:
    (regression,) = measure_history({f"m{place}": 1.02 for place in range(8, 20)}, seen=14)
    assert (regression.state, regression.came_gradually) == ("confirmed", True)
    assert regression.last_good.position < 8
    assert regression.first_bad.position >= 19
