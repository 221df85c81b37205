from __future__ import annotations

import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dashboard import runs
from dashboard.models import Commit, Project, Trigger
from dashboard.projects.registration import NewProject, add_project
from dashboard.projects.repository_location import ProjectError
from dashboard.triggers.receiving import TriggerOrigin, receive_trigger
from tests.dashboard.conftest import MANIFEST, Repository

pytestmark = pytest.mark.django_db


def test_a_project_is_added(repository: Repository) -> None:
    output = StringIO()
    call_command("add_project", "mine", repository=str(repository.folder), stdout=output)
    project = Project.objects.get()
    assert (project.slug, project.repository, project.branch) == ("mine", str(repository.folder), "main")
    assert len(project.hook_secret) > 40
    assert "manage.py trigger mine --wait" in output.getvalue()


def test_adding_it_again_is_safe(repository: Repository) -> None:
    first = add_project(NewProject("mine", str(repository.folder)))
    assert add_project(NewProject("mine", str(repository.folder))) == first
    with pytest.raises(ProjectError, match="There is a project mine already, with another branch"):
        add_project(NewProject("mine", str(repository.folder), "topic"))


def test_a_relative_path_is_made_absolute(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository.folder)
    assert add_project(NewProject("mine", ".")).repository == str(repository.folder)


def test_long_paths_and_branches_are_watched(repository: Repository, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["folder" * 20] * 5)
    deep.parent.mkdir(parents=True)
    repository.folder.rename(deep)
    branch = "topic/" + "x" * 230
    subprocess.run(["git", "branch", branch], cwd=deep, check=True)
    project = add_project(NewProject("mine", str(deep), branch))
    assert (project.repository, project.branch) == (str(deep), branch)
    assert len(project.repository) > 600
    trigger = receive_trigger(project, TriggerOrigin(Trigger.Source.COMMAND), {})
    assert runs.resolve_trigger(trigger.pk)
    assert Commit.objects.get().branch == branch


def test_the_site_can_keep_the_manifest(repository: Repository, tmp_path: Path) -> None:
    manifest_file = tmp_path / "kept.toml"
    manifest_file.write_text(MANIFEST)
    assert (
        add_project(NewProject("mine", str(repository.folder), manifest=manifest_file)).manifest == MANIFEST
    )


@pytest.mark.parametrize(
    ("slug", "address", "branch", "sentence"),
    [
        ("two words", "", "main", "A name has letters from a to z,"),
        ("x" * 61, "", "main", "slug: Ensure this value has at most 60"),
        ("mine", "/nowhere", "main", "/nowhere is neither a folder"),
        ("mine", "ext::sh -c true", "main", "is neither a folder"),
        ("mine", " ", "main", "The repository is empty: give a folder"),
        ("mine", "/a" * 3000, "main", "/a/a/a is neither a folder"),
        ("mine", "a\nb\0", "main", r"'a\nb\x00' is neither a folder"),
        ("mine", "~nobody-of-that-name/x", "main", "~nobody-of-that-name/x is neither a folder"),
        ("mine", "http://127.0.0.1:1/x", "main", "can't be fetched"),
        ("mine", "", "master", "has no branch 'master'; its branches are: main."),
        ("mine", "", "--all", "has no branch '--all'"),
    ],
)
def test_what_can_not_be_watched_is_refused(
    repository: Repository, settings: Any, slug: str, address: str, branch: str, sentence: str
) -> None:
    settings.PACELINE_HOME = repository.folder.parent / "home"
    with pytest.raises(CommandError) as refused:
        call_command("add_project", slug, repository=address or str(repository.folder), branch=branch)
    assert sentence in str(refused.value)
    assert not Project.objects.exists()
    assert not list(settings.PACELINE_HOME.glob("mirrors/*.git"))


def test_a_broken_manifest_is_refused(repository: Repository, tmp_path: Path) -> None:
    broken = tmp_path / "kept.toml"
    broken.write_text("[benchmarks.x]\nverson = 1\n")
    with pytest.raises(ProjectError, match=r"kept\.toml: benchmarks\.x"):
        add_project(NewProject("mine", str(repository.folder), manifest=broken))
    with pytest.raises(ProjectError, match="can't be read"):
        add_project(NewProject("mine", str(repository.folder), manifest=tmp_path / "nowhere.toml"))


def test_an_empty_repository_says_so(tmp_path: Path) -> None:
    empty = Repository(tmp_path / "empty")
    with pytest.raises(ProjectError, match="it has no commit yet"):
        add_project(NewProject("mine", str(empty.folder)))


def test_a_branch_can_not_be_an_option(repository: Repository) -> None:
    with pytest.raises(ProjectError):
        add_project(NewProject("mine", str(repository.folder), "-d"))
    assert not Project.objects.exists()


def test_the_share_of_false_alerts_can_be_given_and_changed(repository: Repository, db: None) -> None:
    for false_alerts in ("0.5", "2"):
        call_command(
            "add_project", "snakes", "--repository", str(repository.folder), "--false-alerts", false_alerts
        )
        assert Project.objects.get().false_alerts_per_100_commits == float(false_alerts)


def test_no_false_alerts_at_all_are_refused(repository: Repository, db: None) -> None:
    with pytest.raises(CommandError, match="false_alerts_per_100_commits"):
        call_command("add_project", "snakes", "--repository", str(repository.folder), "--false-alerts", "0")


def test_its_numbers_are_set_and_changed(repository: Repository) -> None:
    wanted = ["add_project", "snakes", "--repository", str(repository.folder)]
    call_command(*wanted, "--hours-per-week", "200", "--experiment-minutes", "5")
    call_command(*wanted, "--experiment-pairs", "8", "--experiment-share", "0.5")
    project = Project.objects.get()
    assert (project.training_hours_per_week, project.experiment_minutes) == (200, 5)
    assert (project.experiment_pairs, project.experiment_share) == (8, 0.5)


def test_the_earlier_names_of_its_options_are_accepted(repository: Repository) -> None:
    wanted = ["add_project", "snakes", "--repository", str(repository.folder)]
    call_command(*wanted, "--confirmation-minutes", "5", "--confirmation-pairs", "8")
    call_command(*wanted, "--confirmation-share", "0.5")
    project = Project.objects.get()
    numbers = (project.experiment_minutes, project.experiment_pairs, project.experiment_share)
    assert numbers == (5, 8, 0.5)


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--hours-per-week", "-3", "training_hours_per_week: Ensure this value is greater"),
        ("--hours-per-week", "nan", "training_hours_per_week: it must be a number, not nan."),
        ("--experiment-pairs", "3", "experiment_pairs: Ensure this value is greater"),
        ("--experiment-share", "1.5", "experiment_share: Ensure this value is less"),
    ],
)
def test_a_number_that_can_not_be_is_refused(
    repository: Repository, option: str, value: str, sentence: str
) -> None:
    with pytest.raises(CommandError, match="^" + sentence):
        call_command("add_project", "snakes", "--repository", str(repository.folder), option, value)
    assert not Project.objects.exists()


def test_a_project_is_hidden_and_never_shown_by_adding_it(repository: Repository) -> None:
    wanted = ["add_project", "snakes", "--repository", str(repository.folder)]
    call_command(*wanted)
    assert Project.objects.get().visibility == "public"
    for options in (["--private"], []):
        call_command(*wanted, *options)
        assert Project.objects.get().visibility == "private"
