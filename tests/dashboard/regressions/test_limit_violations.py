from __future__ import annotations

import pytest

from dashboard.models import Case, Channel, Commit, Delivery, Limit, Project, Regression, Run, SeriesLatest
from dashboard.querysets import limits
from dashboard.regressions import judge_run
from dashboard.sentences.limits import violation_text
from dashboard.sentences.regressions import regression_title
from tests.dashboard import factories
from tests.dashboard.regressions.judged_again import judge_again


@pytest.fixture
def of(project: Project) -> Case:
    Channel.objects.create(project=project, kind="email", address="a@example.org")
    return factories.create_case(project)


def measure_and_judge(line: list[Commit], of: Case, values: list[float], tainted: int = -1) -> list[Run]:
    """Measure and judge commits whose utilization must be at least 80 %."""
    made = []
    for index, (commit, value) in enumerate(zip(line, values, strict=True)):
        run = factories.store_measured_run(commit, of, {"gpu_utilization": value})
        Limit.objects.create(
            series=factories.get_series(run, "gpu_utilization"),
            run=run,
            position=commit.position,
            minimum=80,
            value=value,
            crossed=value < 80,
            tainted=index == tainted,
        )
        judge_run(run.pk)
        made.append(run)
    return made


def violation_texts(found: Regression) -> list[str]:
    return [violation_text(limit) for limit in found.limits.order_by("pk")]


def test_a_crossed_limit_is_told_once(project: Project, of: Case) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, of, [90, 91, 71, 70])
    found = Regression.objects.get()
    assert (found.first_bad, found.last_good, found.state) == (line[2], line[1], "confirmed")
    assert violation_texts(found) == ["gpu_utilization is 71 %, its limit is at least 80 %"]
    assert Delivery.objects.get().regression == found
    assert regression_title(found).startswith(violation_texts(found)[0] + " since")


def test_a_limit_kept_again_names_the_commit(project: Project, of: Case) -> None:
    line = factories.create_commits(project, 3)
    measure_and_judge(line, of, [90, 71, 92])
    assert Regression.objects.get().recovered_by == line[2]


def test_a_limit_crossed_from_the_first_commit_on_is_told(project: Project, of: Case) -> None:
    line = factories.create_commits(project, 2)
    measure_and_judge(line, of, [70, 71])
    assert Regression.objects.get().first_bad == line[0]


def test_a_tainted_value_crosses_nothing(project: Project, of: Case) -> None:
    measure_and_judge(factories.create_commits(project, 2), of, [90, 10], tainted=1)
    assert not Regression.objects.exists()


def slower_with_limit(line: list[Commit], of: Case) -> tuple[Regression, Run]:
    """A regression of another series at the second commit, whose utilization crosses its limit too."""
    _, second = measure_and_judge(line, of, [90, 91])
    series = factories.get_series(second, "step_time")
    found = Regression.objects.create(
        project=of.project, first_bad=line[1], last_good=line[0], series=series, before=1, after=2
    )
    Limit.objects.filter(run=second).update(value=60, crossed=True)
    return found, second


def test_an_open_regression_of_the_commit_says_it_too(project: Project, of: Case) -> None:
    found, second = slower_with_limit(factories.create_commits(project, 2), of)
    judge_again(second.pk)
    found.refresh_from_db()
    assert violation_texts(found) == ["gpu_utilization is 60 %, its limit is at least 80 %"]


def test_what_a_regression_says_too_is_not_listed_again(project: Project, of: Case) -> None:
    found, second = slower_with_limit(factories.create_commits(project, 2), of)
    row = Limit.objects.get(run=second)
    SeriesLatest.objects.filter(series=row.series_id).update(limit=row)
    assert [latest.limit for latest in limits.crossed_without_regression(Project.objects.all())] == [row]
    judge_again(second.pk)
    assert not limits.crossed_without_regression(Project.objects.all()).exists()
    Regression.objects.filter(pk=found.pk).update(state="refuted")
    assert limits.crossed_without_regression(Project.objects.all()).exists()


def test_a_commit_that_crosses_two_limits_says_both(project: Project, of: Case) -> None:
    line = factories.create_commits(project, 2)
    _, second = measure_and_judge(line, of, [90, 60])
    memory = factories.get_series(second, "peak_memory")
    Limit.objects.create(series=memory, run=second, position=1, maximum=100, value=200, crossed=True)
    judge_again(second.pk)
    judge_again(second.pk)
    utilization, memory_text = violation_texts(Regression.objects.get())
    assert utilization == "gpu_utilization is 60 %, its limit is at least 80 %"
    assert memory_text == "peak_memory is 200 B, its limit is at most 100 B"
