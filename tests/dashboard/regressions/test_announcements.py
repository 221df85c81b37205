from __future__ import annotations

import pytest
from django.utils import timezone

from dashboard import alerts
from dashboard.models import Case, Channel, Commit, Delivery, Project, Regression
from dashboard.regressions import advance_proof, judge_run, redetect_project
from dashboard.sentences.series.doubts import describe_doubts
from tests.dashboard import factories

# So many commits that a suspicion is clear enough for the budget; the step is at AT.
COUNT, AT = 30, 24


def create_channel(project: Project, minimum: float = 0) -> Channel:
    return Channel.objects.create(
        project=project,
        kind="email",
        address=f"{minimum}@example.org",
        minimum_percent=minimum,
        suspicions=True,
    )


def measure_and_judge(line: list[Commit], case: Case, name: str, levels: list[float]) -> None:
    """Measure all commits and judge once."""
    measured = [(commit, {name: value}) for commit, value in zip(line, levels, strict=True)]
    judge_run(factories.store_measured_runs(measured, case)[-1].pk)


def told_channels() -> list[tuple[int, float]]:
    rows = Delivery.objects.order_by("channel__minimum_percent")
    return list(rows.values_list("regression", "channel__minimum_percent"))


def stepping_levels(before: float, after: float) -> list[float]:
    return factories.noisy_levels((AT, before), (COUNT - AT, after))


def slower_regression(project: Project, case: Case) -> Regression:
    """A regression of 15 % that memory will show to be one of 80 %."""
    measure_and_judge(
        factories.create_commits(project, COUNT), case, "step_time", stepping_levels(0.010, 0.0115)
    )
    return Regression.objects.get()


def test_who_hears_of_large_ones_only_is_told_when_it_grows(project: Project, case: Case) -> None:
    for minimum in (0, 20, 200):
        create_channel(project, minimum)
    found = slower_regression(project, case)
    assert told_channels() == [(found.pk, 0)]
    line = list(project.commits.order_by("position"))
    for _ in range(2):
        measure_and_judge(line, case, "peak_memory", stepping_levels(1e8, 1.8e8))
    found.refresh_from_db()
    assert found.change_percent == pytest.approx(80, abs=3)
    assert told_channels() == [(found.pk, 0), (found.pk, 20)]


def test_a_channel_that_came_later_is_not_told_of_what_it_could_have_been(
    project: Project, case: Case
) -> None:
    found = slower_regression(project, case)
    factories.create_ended_experiment(found, "confirmed", found.last_good, found.first_bad)
    Regression.objects.update(proving=False, state="confirmed")
    create_channel(project, 5)
    line = list(project.commits.order_by("position"))
    measure_and_judge(line, case, "peak_memory", stepping_levels(1e8, 1.8e8))
    assert told_channels() == []


def withdrawn_beside(project: Project, case: Case) -> tuple[Regression, Regression]:
    """A live regression beside its step, and a withdrawn one at the commit where the points put it."""
    live = slower_regression(project, case)
    place = live.first_bad
    Regression.objects.filter(pk=live.pk).update(first_bad=project.commits.get(position=AT + 2))
    gone = Regression.objects.create(
        project=project,
        first_bad=place,
        last_good=live.last_good,
        series=live.series,
        before=1,
        after=2,
        withdrawn_at=timezone.now(),
    )
    live.refresh_from_db()
    return live, gone


@pytest.mark.parametrize("state", ["pending", "delivered"])
def test_one_that_joins_a_withdrawn_one_is_told_once(project: Project, case: Case, state: str) -> None:
    create_channel(project)
    _, gone = withdrawn_beside(project, case)
    Delivery.objects.update(state=state)
    measure_and_judge(
        list(project.commits.order_by("position")),
        case,
        "step_time",
        stepping_levels(0.010, 0.013),
    )
    assert list(Regression.objects.filter(withdrawn_at=None)) == [gone]
    assert list(Delivery.objects.values_list("regression", "state")) == [(gone.pk, state)]


def test_what_is_taken_up_by_joining_is_told(project: Project, case: Case) -> None:
    _, gone = withdrawn_beside(project, case)
    create_channel(project)
    measure_and_judge(
        list(project.commits.order_by("position")),
        case,
        "step_time",
        stepping_levels(0.010, 0.013),
    )
    assert told_channels() == [(gone.pk, 0)]


def test_redetect_tells_nobody_of_what_it_takes_up(project: Project, case: Case) -> None:
    _, gone = withdrawn_beside(project, case)
    create_channel(project)
    line = project.commits.order_by("position")
    levels = stepping_levels(0.010, 0.013)
    measured = [(commit, {"step_time": value}) for commit, value in zip(line, levels, strict=True)]
    factories.store_measured_runs(measured, case)
    redetect_project(project)
    gone.refresh_from_db()
    assert (gone.withdrawn_at, told_channels()) == (None, [])


def test_who_was_told_of_both_keeps_both_in_the_log(project: Project, case: Case) -> None:
    create_channel(project)
    live, gone = withdrawn_beside(project, case)
    alerts.announce_regression(gone)
    advance_proof(live.pk)
    assert list(Regression.objects.filter(withdrawn_at=None)) == [gone]
    assert Delivery.objects.count() == 2
    assert gone.deliveries.count() == live.deliveries.count() == 1


def test_a_counter_that_comes_and_goes_is_told_once(project: Project) -> None:
    Channel.objects.create(project=project, kind="email", address="a@example.org")
    case = factories.create_case(project)
    for commit in factories.create_commits(project, 16):
        run = factories.store_measured_run(commit, case, {"recompilations": 3 + commit.position % 2})
        judge_run(run.pk)
    assert Delivery.objects.filter(event="opened").count() == 1
    change = Regression.objects.get().changes.get()
    assert any("varies between values on the same code" in doubt for doubt in describe_doubts(change))
