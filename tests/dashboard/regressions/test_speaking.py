"""Which series speaks for a regression, with a verdict on each of them."""

from __future__ import annotations

import pytest
from dashboard.regressions.settling import settle

from dashboard.models import Change, Commit, Confirmation, Pool, Project, Regression
from dashboard.regressions import speaking
from tests.dashboard import factories


@pytest.fixture
def line(project: Project) -> list[Commit]:
    return factories.create_commits(project, 12)


@pytest.fixture
def made(line: list[Commit]) -> Regression:
    """Peak memory moved by 10 % at the seventh commit."""
    project = line[0].project
    series = factories.get_series(
        factories.create_run(line[6], factories.create_case(project)), "peak_memory"
    )
    row = Regression.objects.create(
        project=project, first_bad=line[6], last_good=line[5], series=series, before=1, after=1.1
    )
    join(row, "peak_memory", 1.1)
    return row


def join(made: Regression, name: str, ratio: float, **fields: object) -> Change:
    """A change of a series of the same runs at the regression's commits."""
    run = factories.create_run(made.first_bad, made.series.case)
    series = made.series if name == made.series.metric.name else factories.get_series(run, name)
    ends = {"last_good": made.last_good, "first_bad": made.first_bad, "position": made.first_bad.position}
    size = {"before": 1, "after": ratio, "ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.02}
    said = {"direction": "regression", "confidence": 0.99, "regression": made, "series": series}
    return Change.objects.create(**(said | ends | size | fields))


def weighed(made: Regression, change: Change, verdict: str, **found: float) -> None:
    """Pairs of a change's series, between the regression's commits."""
    factories.create_ended_experiment(made, verdict, made.last_good, made.first_bad, **found)
    Confirmation.objects.filter(pk=Confirmation.objects.latest("pk").pk).update(series=change.series)


def said(made: Regression) -> tuple[str, str, str | None]:
    """The metric that speaks, the state, and the metric that is to be measured too."""
    settle(made.project, made)
    made = Regression.objects.get(pk=made.pk)
    found = speaking.of(made)
    louder = found.louder.series.metric.name if found and found.louder else None
    return made.series.metric.name, made.state, louder


def test_what_no_pairs_have_measured_is_not_told_as_proved(made: Regression) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    join(made, "step_time", 1.4)
    assert said(made) == ("peak_memory", "confirmed", "step_time")


def test_once_confirmed_it_speaks(made: Regression) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    weighed(made, join(made, "step_time", 1.4), "confirmed", ratio=1.35)
    assert said(made) == ("step_time", "confirmed", None)
    assert made.ratio == 1.35


def test_who_speaks_is_decided_by_what_pairs_measured(made: Regression) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    weighed(made, join(made, "step_time", 1.4), "confirmed", ratio=1.05)
    assert said(made) == ("peak_memory", "confirmed", None)
    assert made.ratio == 1.1


def test_a_series_of_another_pool_is_not_waited_for(made: Regression) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    other = Pool.objects.create(name="gpu")
    run = factories.create_run(made.first_bad, made.series.case, pool=other)
    join(made, "step_time", 1.4, series=factories.get_series(run, "step_time"))
    assert said(made) == ("peak_memory", "confirmed", None)


@pytest.mark.parametrize("verdict", ["refuted", "undecided"])
def test_what_is_refuted_leaves_the_cause_proved(made: Regression, verdict: str) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    weighed(made, join(made, "step_time", 1.4), verdict)
    assert said(made) == ("peak_memory", "confirmed", None)


def test_a_verdict_beside_the_proved_commits_is_one_too(made: Regression, line: list[Commit]) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    beside = {"last_good": line[6], "first_bad": line[7], "position": line[7].position}
    time = join(made, "step_time", 1.4, **beside)
    assert said(made)[2] == "step_time"
    weighed(made, time, "confirmed", ratio=1.3)
    assert said(made) == ("step_time", "confirmed", None)
    assert (made.first_bad, made.ratio) == (line[6], 1.3)


def test_a_refuted_series_refutes_no_other(made: Regression) -> None:
    time = join(made, "step_time", 1.4)
    weighed(made, time, "refuted")
    assert said(made) == ("peak_memory", "suspected", None)
    weighed(made, made.changes.get(series=made.series), "confirmed", ratio=1.1)
    assert said(made) == ("peak_memory", "confirmed", None)


def test_what_is_refuted_in_all_series_is_refuted(made: Regression) -> None:
    for change in (join(made, "step_time", 1.4), made.changes.get(series=made.series)):
        weighed(made, change, "refuted")
    assert said(made) == ("step_time", "refuted", None)


def test_a_counter_stays_proved_where_a_time_is_refuted(made: Regression) -> None:
    calls = join(made, "function_calls", 1.5)
    calls.series.exact = True
    calls.series.save()
    assert said(made)[1] == "suspected"
    weighed(made, made.changes.get(series=made.series), "refuted")
    assert said(made) == ("function_calls", "confirmed", None)


def test_a_proof_outlives_a_series_that_joins_beside_it(made: Regression, line: list[Commit]) -> None:
    calls = join(made, "function_calls", 1.5)
    calls.series.exact = True
    calls.series.save()
    made.changes.exclude(pk=calls.pk).delete()
    beside = {"last_good": line[6], "first_bad": line[7], "position": line[7].position}
    weighed(made, join(made, "step_time", 1.2, **beside), "confirmed", ratio=1.2)
    join(made, "peak_memory", 1.5)
    assert said(made) == ("step_time", "confirmed", "peak_memory")


def test_throughput_is_proved_by_the_pairs_of_the_step_time(made: Regression) -> None:
    made.changes.all().delete()
    time = join(made, "step_time", 1.4)
    weighed(made, time, "confirmed", ratio=1.4)
    join(made, "throughput", 0.7)
    time.delete()
    assert said(made) == ("throughput", "confirmed", None)


def test_a_series_whose_change_is_gone_still_speaks_by_its_pairs(made: Regression) -> None:
    time = join(made, "step_time", 1.4)
    weighed(made, time, "confirmed", ratio=1.38)
    time.delete()
    assert said(made) == ("step_time", "confirmed", None)
    assert (made.ratio, made.after) == (1.38, pytest.approx(1.38))


def test_the_same_metric_of_another_case_is_measured_only_if_much_larger(made: Regression) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    other = factories.create_run(made.first_bad, factories.create_case(made.project, batch=256))
    change = join(made, "step_time", 1.12, series=factories.get_series(other, "peak_memory"))
    assert said(made)[2] is None
    Change.objects.filter(pk=change.pk).update(ratio=1.3, after=1.3)
    assert said(made)[2] == "peak_memory"


def test_what_no_commit_is_blamed_for_is_not_measured(made: Regression) -> None:
    weighed(made, made.changes.get(), "confirmed", ratio=1.1)
    join(made, "step_time", 1.4, innocent=True)
    assert said(made) == ("peak_memory", "confirmed", None)
