from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dashboard.management import first_project
from dashboard.management.commands.up import announce_runs
from dashboard.models import Project, Run
from dashboard.repositories import RepositoryError
from dashboard.triggers import TriggerError

MANIFEST = """
[benchmarks.zelda]
version = 1
script = "train.py"
steps = 10
repetitions = 5
quick = { repetitions = 1 }

[benchmarks.snake_dqn]
version = 1
script = "train.py"
cases = [{ variant = "baseline" }, { variant = "optimized" }]
steps = 10
"""


@pytest.fixture
def checkout(tmp_path: Path, settings) -> Path:
    """A repository with one commit, as if Paceline ran out of it."""
    settings.PACELINE_HOME = tmp_path / "home"
    settings.CHECKOUT = tmp_path / "checkout"
    settings.CHECKOUT.mkdir()
    (settings.CHECKOUT / "paceline.toml").write_text(MANIFEST)
    run_git(settings.CHECKOUT, "init", "--quiet", "--initial-branch", "trunk")
    commit_all(settings.CHECKOUT)
    return settings.CHECKOUT


def run_git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def commit_all(checkout: Path) -> None:
    run_git(checkout, "add", ".")
    run_git(checkout, "commit", "--quiet", "--allow-empty", "--message", "A commit")


def test_every_benchmark_is_requested_one_case_of_each_first(transactional_db, checkout):
    runs = first_project.request_first_runs()
    cases = ["snake_dqn[variant=optimized]", "zelda", "snake_dqn[variant=baseline]"]
    assert [str(run.case) for run in runs] == cases
    assert [run.priority for run in runs] == [2, 1, 0]
    project = Project.objects.get(slug="paceline")
    assert (project.repository, project.branch) == (str(checkout), "trunk")


def test_it_is_measured_quickly(transactional_db, checkout):
    runs = first_project.request_first_runs()
    assert all(run.quick for run in runs)
    assert runs[1].repetitions == 1


def test_a_benchmark_that_was_measured_is_left_out(transactional_db, checkout):
    first_project.request_first_runs()
    Run.objects.filter(configuration__case__benchmark="zelda").update(state=Run.State.DONE)
    Run.objects.filter(configuration__case__benchmark="snake_dqn").update(state=Run.State.FAILED)
    assert {run.case.benchmark for run in first_project.request_first_runs()} == {"snake_dqn"}


def test_a_broken_manifest_is_told(transactional_db, checkout):
    (checkout / "paceline.toml").write_text("[benchmarks.snake_dqn]")
    commit_all(checkout)
    with pytest.raises(TriggerError, match=r"benchmarks\.snake_dqn\.script: is missing"):
        first_project.request_first_runs()


def test_what_is_measured_first_and_what_after_it_is_said(transactional_db, checkout, settings):
    settings.PACELINE_URL = "http://here"
    runs = first_project.request_first_runs()
    first, rest = announce_runs(runs)
    assert first.startswith("Measuring snake_dqn[variant=optimized] at ")
    assert first.endswith(f": http://here{runs[0].get_absolute_url()}")
    assert rest == "After it 2 more quick runs, of zelda, snake_dqn: http://here/projects/paceline/"
    assert announce_runs([]) == []


def test_what_waits_or_is_measured_is_not_requested_again(transactional_db, checkout):
    first_project.request_first_runs()
    Run.objects.update(state=Run.State.DONE)
    assert first_project.request_first_runs() == []


def test_what_was_cancelled_is_not_requested_again(transactional_db, checkout):
    first_project.request_first_runs()
    Run.objects.update(state=Run.State.CANCELLED)
    assert first_project.request_first_runs() == []


def test_a_new_commit_is_requested(transactional_db, checkout):
    first_project.request_first_runs()
    commit_all(checkout)
    assert len(first_project.request_first_runs()) == 3


def test_a_commit_whose_runs_failed_is_requested_again(transactional_db, checkout):
    first_project.request_first_runs()
    Run.objects.update(state=Run.State.FAILED)
    assert len(first_project.request_first_runs()) == 3


def test_a_moved_checkout_stays_the_same_project(transactional_db, checkout, settings):
    first_project.request_first_runs()
    settings.CHECKOUT = checkout.rename(checkout.with_name("moved"))
    assert first_project.request_first_runs() == []
    project = Project.objects.get(slug="paceline")
    assert project.mirror.repository == str(settings.CHECKOUT)


def test_a_folder_without_git_is_told(db, tmp_path, settings):
    settings.CHECKOUT = tmp_path
    with pytest.raises(RepositoryError, match=r"is no git checkout with a branch checked out\.$"):
        first_project.request_first_runs()
