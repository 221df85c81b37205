"""Runs that anything rests on keep their detail, whatever their age."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard import retention
from dashboard.models import (
    Claim,
    ClaimMeasurement,
    Commit,
    Document,
    Experiment,
    Machine,
    PictureLink,
    Project,
    Run,
    RunLog,
    Sentinel,
    Triage,
)
from dashboard.retention import Reason
from dashboard.retention.protected_runs import protected_runs
from tests.dashboard import factories
from tests.dashboard.retention.histories import KEEP_A_DAY, measure_values
from tests.dashboard.shared_rows import share_rows
from tests.pages.check_builders import create_check

pytestmark = pytest.mark.django_db
COUNT = 16


@pytest.fixture(scope="module")
def measured_line(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What each test's `history` is read from."""
    levels = factories.noisy_levels((COUNT, 0.010))
    with share_rows(
        django_db_blocker, lambda: measure_values(factories.create_project(policy=KEEP_A_DAY), levels)
    ):
        yield


@pytest.fixture
def history(measured_line: None, db: None, settings: Any) -> list[Run]:
    """Runs at the commits 0 to 15, all older than anything is kept; the newest keeps its detail anyway."""
    settings.PACELINE_KEEP_LEAST_DAYS = 0
    related = ("commit__project", "configuration__case")
    return list(Run.objects.select_related(*related).order_by("commit__position"))


def regression_of(runs: list[Run], place: int, **fields: Any) -> Any:
    commits = [run.commit for run in runs]
    made = factories.create_regression(commits, place, "step_time", place)
    made.changes.all().delete()
    for name, value in fields.items():
        setattr(made, name, value)
    made.save()
    return made


def experiment_of(runs: list[Run], **fields: Any) -> Experiment:
    series = factories.get_series(runs[0], "step_time")
    values = {"purpose": "person", "question": "estimate", "metric": series.metric, "state": "done"}
    configurations = {f"{side}_configuration": runs[0].configuration for side in ("base", "head")}
    return Experiment.objects.create(
        project=runs[0].commit.project,
        base_commit=runs[3].commit,
        head_commit=runs[5].commit,
        **{**values, **configurations, **fields},
    )


def tag_commit(runs: list[Run]) -> None:
    Commit.objects.filter(pk=runs[4].commit_id).update(tags=["v1"])


def pin_baseline(runs: list[Run]) -> None:
    project = runs[0].commit.project
    project.policy += f'\n[policy.baseline]\npinned = "{runs[6].commit.hash[:12]}"'
    project.save()


def fork_branch(runs: list[Run]) -> None:
    """Whose merge base isn't measured: the commit before it is its baseline."""
    runs[6].delete()
    topic = factories.create_commit(runs[0].commit.project, 7, "topic")
    Commit.objects.filter(pk=topic.pk).update(fork=6)
    factories.create_run(topic, runs[0].case, finished_at=timezone.now())


def measure_claim(runs: list[Run]) -> None:
    claim = Claim.objects.create(
        project=runs[0].commit.project, benchmark="snake_dqn", key="fast", definition={}, position=0
    )
    of = {"claim": claim, "requester": "policy", "commit": runs[2].commit, "head": runs[2].configuration}
    ClaimMeasurement.objects.create(**of, run=runs[2])


def refuse_head(runs: list[Run]) -> None:
    create_check([run.commit for run in runs[3:6]], answer="worse")
    create_check([run.commit for run in runs[8:11]], answer="not worse")


def pin_sentinel(runs: list[Run]) -> None:
    machine = Machine.objects.get(name="bench-1")
    Sentinel.objects.create(configuration=runs[1].configuration, machine=machine, commit=runs[1].commit)


def upgrade_torch(runs: list[Run]) -> None:
    for run in runs[9:]:
        factories.set_environment(run, {"python": "3.11.2", "torch": "2.14.0"})


def share_picture(runs: list[Run]) -> None:
    project = runs[0].commit.project
    PictureLink.objects.create(project=project, run=runs[7])
    PictureLink.objects.create(project=project, run=runs[8], revoked_at=timezone.now())


def find_step(runs: list[Run]) -> None:
    made = factories.create_regression([run.commit for run in runs], 8, "step_time", 8)
    type(made).objects.filter(pk=made.pk).delete()


@pytest.mark.parametrize(
    ("refer", "reason", "places"),
    [
        (lambda runs: regression_of(runs, 8, withdrawn_at=timezone.now()), Reason.REGRESSION, []),
        (find_step, Reason.STEP, [5, 6, 7, 8, 9, 10]),
        (tag_commit, Reason.TAG, [4]),
        (pin_baseline, Reason.BASELINE, [6]),
        (fork_branch, Reason.BASELINE, [5]),
        (experiment_of, Reason.EXPERIMENT, [3, 5]),
        (lambda runs: experiment_of(runs, purpose="check"), Reason.EXPERIMENT, []),
        (measure_claim, Reason.CLAIM, [2]),
        (refuse_head, Reason.CHECK, [3, 5]),
        (pin_sentinel, Reason.SENTINEL, [1]),
        (upgrade_torch, Reason.ENVIRONMENT, [8, 9]),
        (share_picture, Reason.SHARED, [7]),
    ],
)
def test_what_is_referred_to_keeps_its_detail(
    history: list[Run], refer: Callable[[list[Run]], Any], reason: Reason, places: list[int]
) -> None:
    refer(history)
    project = Project.objects.get()
    measured = {run.pk for run in history if run.pk}
    protected = {key: why for key, why in protected_runs(project).items() if key in measured}
    assert {history[place].pk for place in places} == {key for key, why in protected.items() if why == reason}
    # Asked for one by one, or for those alone that nothing rests on, the answer is the same.
    rest = measured - protected.keys()
    assert protected == {
        key: why for run in protected for key, why in protected_runs(project, frozenset([run])).items()
    }
    assert {} == protected_runs(project, frozenset(rest)) == protected_runs(project, frozenset([max(rest)]))
    retention.prune_runs(seconds=60)
    for kept in (Document, RunLog):
        assert {row.run_id for row in kept.objects.all()} == protected.keys()


def test_commits_of_a_regression_and_what_its_proof_waits_for(history: list[Run]) -> None:
    made = regression_of(history, 8)
    made.culprit, made.recovered_by = history[2].commit, history[12].commit
    made.save()
    made.awaited_runs.add(history[4])
    of_regression = {key for key, why in protected_runs(made.project).items() if why == Reason.REGRESSION}
    assert {history[place].pk for place in (2, 4, 7, 8, 12)} <= of_regression


def test_a_triaged_regression_keeps_its_runs_after_it_was_withdrawn(history: list[Run]) -> None:
    made = regression_of(history, 8, withdrawn_at=timezone.now())
    Triage.objects.create(regression=made, action=Triage.Action.COMMENT, comment="the allocator")
    found = protected_runs(made.project)
    assert [found.get(history[place].pk) for place in (7, 8)] == [Reason.REGRESSION] * 2


def test_what_is_read_off_a_sweep_keeps_a_longer_side(history: list[Run]) -> None:
    for run in history:
        factories.add_point(run, factories.get_series(run, "projected_time"), 3600)
    commits = [run.commit for run in history]
    made = factories.create_regression(commits, 12, "projected_time", 12)
    beside = [history[place].pk for place in range(2, 11)]
    assert {protected_runs(made.project)[key] for key in beside} == {Reason.STEP}
    assert history[1].pk not in protected_runs(made.project)


def test_the_step_of_a_branch_reaches_back_before_its_fork(history: list[Run]) -> None:
    project = history[0].commit.project
    topic = factories.create_commits(project, 3, "topic", first=7)
    Commit.objects.filter(branch="topic").update(fork=6)
    series = factories.get_series(history[0], "step_time")
    for commit in topic:
        factories.add_point(factories.create_run(commit, history[0].case), series, 0.014)
    made = factories.create_regression([run.commit for run in history], 8, "step_time", 8)
    made.changes.update(first_bad=topic[0], last_good=history[6].commit, position=7)
    made.delete()
    beside = {key for key, why in protected_runs(project).items() if why in (Reason.STEP, Reason.BASELINE)}
    assert {history[place].pk for place in (4, 5, 6)} <= beside
    assert history[7].pk not in beside
