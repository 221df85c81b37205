"""Adding, changing and removing a project: whole or not at all, and in the audit log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from dashboard.access import AuditAction, Visitor
from dashboard.models import (
    AuditEntry,
    Commit,
    Membership,
    Project,
    RepositoryTest,
    Run,
    Trigger,
)
from dashboard.project_setup.adding import WantedProject, add_tested_project
from dashboard.project_setup.changing import (
    change_repository,
    change_settings,
    keep_manifest,
    parse_number,
    renew_hook_secret,
)
from dashboard.project_setup.errors import SetupError
from dashboard.project_setup.manifests import EXAMPLE, compare_texts, plan_benchmarks, read_manifest_text
from dashboard.project_setup.removal import delete_project, remove_project
from dashboard.project_setup.repository_tests import perform_test, request_test
from tests.dashboard import factories
from tests.dashboard.conftest import MANIFEST, Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db: None, settings: Settings, tmp_path: Path) -> Visitor:
    settings.PACELINE_HOME = tmp_path / "home"
    return Visitor(User.objects.create_user("ada"))


@pytest.fixture
def tested(ada: Visitor, repository: Repository) -> RepositoryTest:
    assert ada.user
    test = request_test(ada.user, str(repository.folder), "")
    perform_test(test.pk)
    test.refresh_from_db()
    return test


def wanted_project(**fields: Any) -> WantedProject:
    return WantedProject(**({"slug": "mine", "visibility": "private", "manifest": "", "last": 5} | fields))


def test_a_project_is_added_with_its_maker_and_runs(ada: Visitor, tested: RepositoryTest) -> None:
    project = add_tested_project(ada, tested, wanted_project(benchmarks=("tiny",)))
    assert (project.branch, project.visibility, len(project.hook_secret) > 40) == ("main", "private", True)
    assert Membership.objects.get().role == Membership.Role.ADMIN
    trigger = Trigger.objects.get()
    assert (trigger.revisions, trigger.benchmarks) == ({"last": 5}, ["tiny"])
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert actions == {AuditAction.PROJECT_ADDED, AuditAction.RUNS_REQUESTED}
    assert not RepositoryTest.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"slug": "two words"}, "slug"),
        ({"slug": "new"}, "slug"),
        ({"slug": "taken"}, "slug"),
        ({"manifest": "[benchmarks.x]\nverson = 1\n"}, "manifest"),
        ({"last": 9999999}, "last"),
        ({"visibility": "secret"}, "visibility"),
    ],
)
def test_a_wrong_field_leaves_nothing(
    ada: Visitor, tested: RepositoryTest, fields: dict[str, Any], field: str
) -> None:
    Project.objects.create(slug="taken", repository="/x")
    with pytest.raises(SetupError) as refused:
        add_tested_project(ada, tested, wanted_project(**fields))
    assert refused.value.field == field
    assert Project.objects.count() == 1
    assert not Membership.objects.exists()
    assert not AuditEntry.objects.exists()
    assert RepositoryTest.objects.exists()


def test_without_a_manifest_nothing_can_be_measured(ada: Visitor, tested: RepositoryTest) -> None:
    tested.facts["manifest"] = None
    with pytest.raises(SetupError, match="nothing can be measured"):
        add_tested_project(ada, tested, wanted_project())
    assert add_tested_project(ada, tested, wanted_project(last=0)).pk
    assert not Trigger.objects.exists()


def test_a_project_moves(ada: Visitor, project: Project, tested: RepositoryTest) -> None:
    tested.project, tested.credentials = project, "ann:secret"
    assert change_repository(ada, tested) == ["repository", "credentials"]
    project.refresh_from_db()
    assert (project.repository, project.credentials) == (tested.repository, "ann:secret")
    details = AuditEntry.objects.get().details
    assert (details["values"]["repository"], "secret" in str(details)) == (tested.repository, False)


def test_what_is_out_of_bounds_is_not_stored(ada: Visitor, project: Project) -> None:
    with pytest.raises(SetupError) as refused:
        change_settings(ada, project, {"check_minutes": 5, "check_floor": 99})
    project.refresh_from_db()
    assert (refused.value.field, project.check_minutes) == ("check_floor", 20)


def test_an_imported_project_can_be_changed(ada: Visitor, project: Project) -> None:
    Project.objects.update(repository="")
    assert change_settings(ada, project, {"check_minutes": 5}) == ["check_minutes"]


@pytest.mark.parametrize("text", ["", "many", "nan", "1e999", "9" * 50, "1_0"])
def test_what_is_no_number_is_told(text: str) -> None:
    with pytest.raises(SetupError, match="The number of minutes must be a whole number"):
        parse_number(text, "poll_minutes", whole=True)


def test_a_number_has_a_comma_or_a_point() -> None:
    assert (parse_number("0,5", "x"), parse_number(" 20 ", "x", whole=True)) == (0.5, 20)


def test_a_manifest_is_kept_and_given_up(ada: Visitor, project: Project) -> None:
    (commit,) = factories.create_commits(project, 1)
    Commit.objects.update(manifest_problem="Commit 0123456789 has no paceline.toml.")
    keep_manifest(ada, project, MANIFEST)
    commit.refresh_from_db()
    assert commit.manifest_problem == ""
    project.refresh_from_db()
    assert project.manifest == MANIFEST
    assert AuditEntry.objects.get().details == {"fields": ["manifest"], "values": {}}
    with pytest.raises(SetupError, match=r"benchmarks\.x"):
        keep_manifest(ada, project, "[benchmarks.x]\nverson = 1\n")
    keep_manifest(ada, project, "")
    project.refresh_from_db()
    assert project.manifest == ""


def test_the_example_is_a_manifest() -> None:
    (benchmark,) = plan_benchmarks(EXAMPLE)
    assert (benchmark.name, benchmark.cases) == ("train", ("train",))


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(SetupError, match="line 2"):
        plan_benchmarks("[benchmarks.x]\nversion = \n")


def test_the_text_of_a_form_is_that_of_a_file() -> None:
    assert read_manifest_text("a = 1\r\nb = 2\r\n") == "a = 1\nb = 2\n"
    with pytest.raises(SetupError, match="larger than"):
        read_manifest_text("x" * 2**19)


def test_the_lines_that_differ_are_found() -> None:
    lines = compare_texts("a\nb\nc\n", "a\nx\nc\n")
    assert [(line.sign, line.text) for line in lines if line.sign in ("+", "-")] == [("-", "b"), ("+", "x")]
    assert compare_texts("a\n", "a\n") == []


def test_a_hook_secret_is_renewed(ada: Visitor, project: Project) -> None:
    secret = renew_hook_secret(ada, project)
    project.refresh_from_db()
    assert project.hook_secret == secret
    assert secret not in str(AuditEntry.objects.get().details)


def test_its_name_must_be_typed(ada: Visitor, project: Project) -> None:
    with pytest.raises(SetupError, match="Type snakes"):
        remove_project(ada, project, "snake")
    delete_project(project.pk)
    assert Project.objects.filter(slug="snakes").exists()


def test_a_removed_project_is_gone_with_all_of_it(ada: Visitor, run: Run, settings: Settings) -> None:
    project = run.configuration.case.project
    mirror = project.mirror.folder
    mirror.mkdir(parents=True)
    remove_project(ada, project, "snakes")
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED
    assert not Visitor(User.objects.create_superuser("root")).visible_projects().exists()
    entry = AuditEntry.objects.get(action=AuditAction.PROJECT_REMOVED)
    delete_project(project.pk)
    delete_project(project.pk)
    for model in (Project, Run, Commit):
        assert not model.objects.exists()
    entry.refresh_from_db()
    assert (entry.project, entry.project_slug, mirror.exists()) == (None, "snakes", False)


def test_a_project_of_the_same_name_can_be_added_at_once(ada: Visitor, project: Project) -> None:
    remove_project(ada, project, "snakes")
    again = Project.objects.create(slug="snakes", repository=project.repository)
    delete_project(project.pk)
    assert Project.objects.get() == again


def test_a_suggestion_in_a_manifest_ends_as_a_question() -> None:
    with pytest.raises(SetupError, match=r"did you mean 'warmup_steps'\?$"):
        plan_benchmarks('[benchmarks.x]\nversion = 1\nscript = "x.py"\nsteps = 9\nwarmup_step = 3\n')
