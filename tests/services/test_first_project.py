from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dashboard import repositories
from dashboard.management import first_project
from dashboard.models import Project, Run
from dashboard.repositories import RepositoryError

MANIFEST = """
[benchmarks.snake_dqn]
version = 1
script = "train.py"
cases = [{ variant = "baseline" }, { variant = "optimized" }]
steps = 10
warmup_steps = 5
"""


@pytest.fixture
def checkout(tmp_path: Path, settings) -> Path:
    """A repository with one commit, as if Paceline ran out of it."""
    settings.PACELINE_HOME = tmp_path / "home"
    settings.CHECKOUT = tmp_path / "checkout"
    settings.CHECKOUT.mkdir()
    (settings.CHECKOUT / "paceline.toml").write_text(MANIFEST)
    git(settings.CHECKOUT, "init", "--quiet", "--initial-branch", "trunk")
    commit(settings.CHECKOUT)
    return settings.CHECKOUT


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def commit(checkout: Path) -> None:
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "A commit")


def test_the_newest_commit_is_requested_quickest_case_first(transactional_db, checkout):
    runs = first_project.request()
    assert [run.case.params for run in runs] == [{"variant": "optimized"}, {"variant": "baseline"}]
    assert runs[0].priority > runs[1].priority
    project = Project.objects.get(slug="paceline")
    assert (project.repository, project.branch) == (str(checkout), "trunk")


def test_what_waits_or_is_measured_is_not_requested_again(transactional_db, checkout):
    first_project.request()
    Run.objects.update(state=Run.State.DONE)
    assert first_project.request() == []


def test_a_new_commit_is_requested(transactional_db, checkout):
    first_project.request()
    commit(checkout)
    assert len(first_project.request()) == 2


def test_a_commit_whose_runs_failed_is_requested_again(transactional_db, checkout):
    first_project.request()
    Run.objects.update(state=Run.State.FAILED)
    assert len(first_project.request()) == 2


def test_a_moved_checkout_stays_the_same_project(transactional_db, checkout, settings):
    first_project.request()
    settings.CHECKOUT = checkout.rename(checkout.with_name("moved"))
    assert first_project.request() == []
    project = Project.objects.get(slug="paceline")
    assert repositories.mirror_of(project).repository == str(settings.CHECKOUT)


def test_a_folder_without_git_is_told(db, tmp_path, settings):
    settings.CHECKOUT = tmp_path
    with pytest.raises(RepositoryError, match=r"is no git checkout with a branch checked out\.$"):
        first_project.request()
