from __future__ import annotations

import fcntl
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psycopg
import pytest
from django.db import OperationalError
from django.utils import timezone

from dashboard import runs
from dashboard.models import Case, Commit, Project, Run, Trigger
from dashboard.repositories import mirror
from dashboard.runs import resolving
from tests.dashboard.conftest import MANIFEST, Repository

pytestmark = pytest.mark.django_db


def resolve_new_trigger(project: Project, source: str = "command", **fields: Any) -> Trigger:
    trigger = project.triggers.create(source=source, **fields)
    runs.resolve_trigger(trigger.pk)
    trigger.refresh_from_db()
    return trigger


def test_every_case_of_the_newest_commit_is_requested(tracked: Project, repository: Repository) -> None:
    trigger = resolve_new_trigger(tracked)
    assert (trigger.state, trigger.detail) == ("resolved", "3 runs at 1 commit.")
    assert [str(run.case) for run in trigger.runs.order_by("pk")] == ["tiny[size=1]", "tiny[size=2]", "other"]
    commit = Commit.objects.get()
    assert (commit.hash, commit.branch, commit.position) == (repository.git("rev-parse", "HEAD"), "main", 1)
    assert commit.parents == [repository.git("rev-parse", "HEAD~")]
    assert (commit.subject, commit.author) == ("Add a manifest", "Ada")


def test_resolving_again_changes_nothing(tracked: Project) -> None:
    trigger = resolve_new_trigger(tracked)
    assert runs.resolve_trigger(trigger.pk) == []
    assert Run.objects.count() == 3


def test_a_trigger_can_name_benchmarks(tracked: Project) -> None:
    assert resolve_new_trigger(tracked, benchmarks=["other"]).detail == "1 run at 1 commit."
    trigger = resolve_new_trigger(tracked, benchmarks=["tiney"])
    assert trigger.state == Trigger.State.REFUSED
    assert trigger.detail.endswith("has no benchmark 'tiney'; did you mean tiny? It has tiny, other.")


def test_a_commit_without_a_manifest_is_refused(tracked: Project, repository: Repository) -> None:
    trigger = resolve_new_trigger(tracked, revisions={"commit": "HEAD~"})
    first = repository.git("rev-parse", "HEAD~")[:10]
    assert trigger.state == Trigger.State.REFUSED
    assert trigger.detail.startswith(f"Commit {first} has no paceline.toml. Write one with paceline init")
    assert "or keep one in the project's settings" in trigger.detail
    assert Commit.objects.get().manifest_problem == trigger.detail
    tracked.manifest = MANIFEST
    tracked.save()
    resolve_new_trigger(tracked, revisions={"commit": "HEAD~"})
    assert Commit.objects.get().manifest_problem == ""


def test_of_several_commits_those_without_a_manifest_are_named(
    tracked: Project, repository: Repository
) -> None:
    repository.commit("Break it", paceline_toml="benchmarks = 1")
    trigger = resolve_new_trigger(tracked, revisions={"last": 3})
    assert trigger.state == Trigger.State.RESOLVED
    assert trigger.detail.startswith("3 runs at 1 commit. Left out: Commit")
    assert trigger.detail.count("Left out") == 2
    assert trigger.detail.count(". Left out: ") == 2
    assert trigger.detail.endswith(".")
    assert trigger.left_out == [{"reason": "manifest", "commits": 2, "benchmark": ""}]
    problems = list(Commit.objects.order_by("position").values_list("subject", "manifest_problem"))
    assert [subject for subject, problem in problems if problem] == ["Begin", "Break it"]
    assert problems[2][1] in trigger.detail


def test_a_slip_in_a_benchmarks_name_is_no_broken_manifest(tracked: Project) -> None:
    resolve_new_trigger(tracked, benchmarks=["tiney"])
    assert not Commit.objects.exists()


def test_what_waits_already_is_told_apart(tracked: Project) -> None:
    tracked.manifest = MANIFEST
    tracked.save()
    resolve_new_trigger(tracked)
    trigger = resolve_new_trigger(tracked, revisions={"last": 2})
    assert trigger.detail == "6 runs at 2 commits, 3 of them asked for before."
    assert trigger.runs.count() == 3


def test_a_manifest_of_the_site_serves_every_commit(tracked: Project) -> None:
    tracked.manifest = MANIFEST
    tracked.save()
    assert resolve_new_trigger(tracked, revisions={"last": 2}).detail == "6 runs at 2 commits."


def test_a_range_is_measured_oldest_first(tracked: Project, repository: Repository) -> None:
    hashes = [repository.commit(f"Change {number}", train_py=str(number)) for number in range(3)]
    resolve_new_trigger(tracked, revisions={"range": f"{hashes[0]}..{hashes[2]}"}, benchmarks=["other"])
    assert [run.commit.hash for run in Run.objects.order_by("pk")] == hashes[1:]


def test_a_hook_does_not_measure_again_what_is_done(tracked: Project) -> None:
    resolve_new_trigger(tracked)
    Run.objects.filter(configuration__case__benchmark="tiny").update(state=Run.State.DONE)
    again = resolve_new_trigger(tracked, source="hook")
    assert again.detail == "1 run at 1 commit, asked for before."
    Run.objects.update(state=Run.State.DONE)
    assert resolve_new_trigger(tracked, source="hook").detail.startswith("Nothing to do")
    assert resolve_new_trigger(tracked, source="web").runs.count() == 3


def test_a_new_commit_comes_before_a_backlog(tracked: Project, repository: Repository) -> None:
    resolve_new_trigger(tracked)
    repository.commit("New", train_py="new")
    trigger = resolve_new_trigger(tracked, source="hook", benchmarks=["other"])
    assignment = runs.claim_run("default", "gpu-1")
    assert assignment is not None
    assert trigger.runs.get().pk == assignment.run_id


def test_a_commit_that_reached_the_branch_moves_there(tracked: Project, repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "try")
    tried = repository.commit("Try", train_py="try")
    resolve_new_trigger(tracked, revisions={"commit": "try"}, benchmarks=["other"])
    assert Commit.objects.get().branch == "try"
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--ff-only", "try")
    resolve_new_trigger(tracked, benchmarks=["other"])
    assert (Commit.objects.get().hash, Commit.objects.get().branch) == (tried, "main")


def test_too_long_parameters_are_refused(tracked: Project, repository: Repository) -> None:
    many = ", ".join(f'p{number} = "{"x" * 100}"' for number in range(4))
    repository.commit("Many", paceline_toml=MANIFEST.replace("{ size = 1 }", f"{{ {many} }}"))
    trigger = resolve_new_trigger(tracked)
    assert "at most 300 are allowed" in trigger.detail
    assert not Case.objects.exists()


def test_what_no_column_holds_is_refused(tracked: Project, repository: Repository) -> None:
    repository.commit("Huge", paceline_toml=MANIFEST.replace("version = 4", f"version = {2**31}"))
    assert "version: is 2147483648, must be between 1 and 2147483647" in resolve_new_trigger(tracked).detail


def test_an_unforeseen_error_refuses_the_trigger(
    tracked: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resolving, "make_plan", Mock(side_effect=KeyError("odd")))
    trigger = resolve_new_trigger(tracked)
    assert trigger.state == Trigger.State.REFUSED
    assert trigger.detail == "An error of Paceline's own, KeyError: its log has the details."
    assert f"Trigger {trigger.pk} can't be resolved" in caplog.text


def test_a_database_that_is_away_leaves_the_trigger_open(
    tracked: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "make_plan", Mock(side_effect=OperationalError("gone")))
    with pytest.raises(OperationalError):
        resolve_new_trigger(tracked)
    assert Trigger.objects.get().state == Trigger.State.RECEIVED


def test_what_the_driver_refuses_is_not_tried_for_ever(
    tracked: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OperationalError("said by the driver")
    error.__cause__ = psycopg.OperationalError("number of parameters must be between 0 and 65535")
    monkeypatch.setattr(resolving, "make_plan", Mock(side_effect=error))
    assert resolve_new_trigger(tracked).state == Trigger.State.REFUSED


def test_an_unreachable_repository_is_refused_with_its_reason(tracked: Project) -> None:
    shutil.rmtree(tracked.repository)
    trigger = resolve_new_trigger(tracked)
    assert trigger.state == Trigger.State.REFUSED
    assert trigger.detail.startswith(f"{tracked.repository} can't be fetched: git fetch failed")


def test_a_hook_waits_for_an_unreachable_repository(tracked: Project) -> None:
    shutil.rmtree(tracked.repository)
    trigger = resolve_new_trigger(tracked, source="hook")
    assert trigger.state == Trigger.State.RECEIVED
    Trigger.objects.update(received_at=timezone.now() - timedelta(hours=1))
    runs.resolve_trigger(trigger.pk)
    trigger.refresh_from_db()
    assert trigger.state == Trigger.State.REFUSED


def test_a_repository_that_is_being_fetched_is_busy(
    tracked: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "LOCK_SECONDS", 0.2)
    folder: Path = tracked.mirror.folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(runs.Busy, match="is being fetched already"):
            resolve_new_trigger(tracked)
    assert Trigger.objects.get().state == Trigger.State.RECEIVED
