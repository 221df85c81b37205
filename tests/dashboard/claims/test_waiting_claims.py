"""Claims that wait for a machine while the branch goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.claims.watching import start_next, watch_project
from dashboard.models import ClaimMeasurement, ClaimsFile, Commit, Experiment, Project
from dashboard.sentences.comparisons import claims as sentences
from tests.dashboard.conftest import Repository


def due_at_each_commit(project: Project, repository: Repository) -> Commit:
    """A new commit of the branch, at which the policy asks for all claims."""
    sha = repository.commit("Go on", notes_txt=str(project.commits.count()))
    at = project.commits.count() + 1
    commit = project.commits.create(
        hash=sha, branch="main", position=at, committed_at=timezone.now(), subject="Go on"
    )
    project.mirror.fetch()
    ClaimsFile.objects.update(asked_at=timezone.now() - timedelta(days=8))
    watch_project(Project.objects.get())
    return commit


def waiting_commits() -> list[tuple[str, str]]:
    waiting = ClaimMeasurement.objects.filter(state="requested").order_by("requested_at", "pk")
    return list(waiting.values_list("claim__key", "commit__hash"))


@pytest.fixture
def waiting(project: Project, repository: Repository) -> list[ClaimMeasurement]:
    """What the policy has asked for at an older commit: nothing of it has begun."""
    due_at_each_commit(project, repository)
    due_at_each_commit(project, repository)
    return list(ClaimMeasurement.objects.order_by("pk"))


def test_what_waits_follows_the_branch_to_its_newest_commit(
    project: Project, repository: Repository, waiting: list[ClaimMeasurement]
) -> None:
    assert start_next(project)
    newer = due_at_each_commit(project, repository)
    assert waiting_commits() == [("fused", newer.hash), ("together", newer.hash)]
    assert [row.pk for row in ClaimMeasurement.objects.order_by("pk")] == [row.pk for row in waiting]
    # The experiment that no machine had begun doesn't hold up that of the newer commit.
    assert Experiment.objects.get().reason == {"code": "newer commit"}
    started = start_next(project)
    assert started
    assert started.head_commit == newer


def test_what_has_begun_is_measured_to_its_end(
    project: Project, repository: Repository, waiting: list[ClaimMeasurement]
) -> None:
    started = start_next(project)
    assert started
    begun = list(ClaimMeasurement.objects.filter(experiment=started).values_list("claim__key", flat=True))
    Experiment.objects.update(state="measuring")
    newer = due_at_each_commit(project, repository)
    assert Experiment.objects.get().state == "measuring"
    assert {key for key, commit in waiting_commits() if commit != newer.hash} == set(begun)
    assert {key for key, commit in waiting_commits() if commit == newer.hash} == {"fused", "together"}


def test_what_a_person_asked_for_stays_at_its_commit(
    project: Project, repository: Repository, waiting: list[ClaimMeasurement]
) -> None:
    ClaimMeasurement.objects.filter(claim__key="fused").update(requester="person")
    newer = due_at_each_commit(project, repository)
    older = waiting[0].commit.hash
    assert set(waiting_commits()) == {("fused", older), ("fused", newer.hash), ("together", newer.hash)}


def test_a_line_of_older_commits_becomes_one_measurement(
    project: Project, repository: Repository, waiting: list[ClaimMeasurement]
) -> None:
    for row in waiting:
        row.pk, row.commit = None, project.commits.order_by("position")[0]
        row.save()
    newer = due_at_each_commit(project, repository)
    assert waiting_commits() == [("fused", newer.hash), ("together", newer.hash)]
    cancelled = ClaimMeasurement.objects.filter(state="cancelled")
    assert [sentences.reason_text(row.reason) for row in cancelled] == [
        "a newer commit is measured instead"
    ] * 2
