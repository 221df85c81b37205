"""In the quiet hours of a project nothing of its own is started."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard import dispatch, experiments, runs
from dashboard.models import Machine, Project, Run
from dashboard.policy.project_policy import follow_policy, plan_next_quiet_hours
from tests.dashboard.factories import create_case, create_commits, create_experiment, create_regression

pytestmark = pytest.mark.django_db


@pytest.fixture
def quiet_project(project: Project) -> Project:
    now = timezone.now()
    begins, ends = ((now + timedelta(hours=hours)).strftime("%H:%M") for hours in (-2, 2))
    project.policy = f'[policy]\nquiet_hours = {{ from = "{begins}", until = "{ends}" }}'
    project.save()
    follow_policy(project)
    return project


def test_no_run_of_it_is_claimed(quiet_project: Project, run: Run) -> None:
    assert runs.claim_run("default", "bench-1") is None
    other = Project.objects.create(slug="awake")
    waiting = Run.objects.create(
        commit=create_commits(other, 1)[0],
        configuration=create_case(other).configurations.create(version=1, pool=run.pool),
        repetitions=1,
        time_limit=1,
        priority=-30,
    )
    claimed = runs.claim_run("default", "bench-1")
    assert claimed is not None
    assert claimed.lease.key == waiting.pk


def test_what_waited_is_started_when_they_are_over(
    quiet_project: Project, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[tuple[str, int]] = []
    monkeypatch.setattr(dispatch, "count_waiting_messages", lambda _: 0)
    monkeypatch.setattr(dispatch, "wake_workers", lambda *call: woken.append(call))
    runs.sweep_runs()
    assert woken == []
    Project.objects.update(quiet_until=timezone.now())
    runs.sweep_runs()
    assert woken == [("default", 1)]
    claimed = runs.claim_run("default", "bench-1")
    assert claimed is not None
    assert claimed.lease.key == run.pk


def test_a_run_that_was_started_goes_on(project: Project, run: Run) -> None:
    claimed = runs.claim_run("default", "bench-1")
    assert claimed is not None
    project.quiet_from, project.quiet_until = timezone.now(), timezone.now() + timedelta(hours=1)
    project.save()
    runs.advance_run(claimed.lease, "preparing")
    assert runs.heartbeat_run(claimed.lease)


def test_no_experiment_of_it_is_claimed(quiet_project: Project) -> None:
    line = create_commits(quiet_project, 4)
    made = create_regression(line, 2, "step_time", 2)
    create_experiment(made, line[1], line[2])
    Machine.objects.get(name="bench-1")
    assert not runs.has_waiting_experiment("default")
    assert experiments.claim_experiment("default", "bench-1") is None
    Project.objects.update(quiet_until=timezone.now())
    assert runs.has_waiting_experiment("default")
    assert experiments.claim_experiment("default", "bench-1") is not None


def test_the_next_ones_are_planned_when_they_are_over(quiet_project: Project) -> None:
    yesterday = timezone.now() - timedelta(days=1)
    Project.objects.update(quiet_from=yesterday, quiet_until=yesterday + timedelta(hours=4))
    plan_next_quiet_hours()
    quiet_project.refresh_from_db()
    assert quiet_project.quiet_from is not None
    assert quiet_project.quiet_from <= timezone.now() < quiet_project.quiet_until


def test_a_policy_without_them_ends_them(quiet_project: Project, run: Run) -> None:
    quiet_project.policy = "[policy]\nquiet_hours = {}"
    follow_policy(quiet_project)
    assert runs.claim_run("default", "bench-1") is not None
