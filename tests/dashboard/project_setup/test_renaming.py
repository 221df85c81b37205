"""A renamed project: pages lead on, hooks and scripts go on, its mirror stays where it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from dashboard.access import Visitor, make_token
from dashboard.forges.signatures import digest_hex
from dashboard.hosts.commit_service import measured_project
from dashboard.leases import LeaseLost
from dashboard.management.base import project_named
from dashboard.models import AuditEntry, FormerName, Machine, Project, Run
from dashboard.project_setup.errors import SetupError
from dashboard.project_setup.removal import delete_project, remove_project
from dashboard.project_setup.renaming import MOST_FORMER, give_up_name, rename_project
from dashboard.projects.names import find_named_project
from dashboard.sentences.administration.audit import describe_entry
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

NOBODY = Visitor()


@pytest.fixture
def project(settings: Settings, tmp_path: Path) -> Project:
    settings.PACELINE_HOME = tmp_path
    return builders.create_project("snake")


def renamed_project(project: Project, name: str = "viper") -> Project:
    assert rename_project(NOBODY, project, name)
    return Project.objects.get(pk=project.pk)


def test_its_pages_lead_on_with_what_was_asked_for(client: Client, project: Project) -> None:
    renamed_project(project)
    answer = client.get("/projects/snake/runs/?page=2")
    assert (answer.status_code, answer["Location"]) == (302, "/projects/viper/runs/?page=2")
    assert client.get("/projects/viper/").status_code == 200
    assert client.get("/regressions/?project=snake").status_code == 200
    assert client.get("/projects/adder/").status_code == 404


def test_scripts_go_on_by_the_old_name(project: Project) -> None:
    admin = create_member("ada", "admin", project)
    token = make_token(Visitor(admin), project, "nightly", ("operate",))[1]
    renamed_project(project)
    script = Client(headers={"Authorization": f"Bearer {token}"})
    assert script.get("/api/v1/projects/snake").json()["slug"] == "viper"
    asked = script.post("/api/v1/projects/snake/runs", {"last": 1}, "application/json")
    assert asked.status_code == 202
    assert project.triggers.count() == 1
    assert project_named("snake").slug == "viper"


def test_hooks_go_on_by_the_old_name(client: Client, project: Project) -> None:
    project.hook_secret = "a secret"
    project.save()
    renamed_project(project)
    signature = f"sha256={digest_hex('a secret', b'{}')}"
    told = [
        client.post(f"/hooks/{name}/", b"{}", "application/json", headers={"Paceline-Signature": signature})
        for name in ("snake", "adder")
    ]
    assert [answer.status_code for answer in told] == [400, 401]


def test_a_host_fetches_what_it_was_told(project: Project) -> None:
    commit = builders.create_commits(project, 1)[0]
    run = builders.create_run(commit, builders.create_case(project), Run.State.MEASURING)
    machine = Machine.objects.get(pk=run.machine_id)
    renamed_project(project)
    assert measured_project(machine, "snake") == project
    with pytest.raises(LeaseLost, match="measures nothing of adder"):
        measured_project(machine, "adder")


def test_its_mirror_stays_where_it_is(project: Project) -> None:
    before = project.mirror
    renamed = renamed_project(renamed_project(project), "adder")
    assert (renamed.mirror.folder, renamed.mirror.project) == (before.folder, "adder")


def test_a_private_project_tells_nobody_its_new_name(client: Client, project: Project) -> None:
    Project.objects.update(visibility="private")
    renamed_project(project)
    answer = client.get("/projects/snake/")
    assert answer.status_code == 404
    assert "viper" not in answer.text
    assert client.get("/regressions/?project=snake").status_code == 404


def test_a_former_name_is_free_once_it_is_given_up(project: Project) -> None:
    renamed_project(project)
    with pytest.raises(SetupError, match="Another project still answers to snake"):
        rename_project(NOBODY, builders.create_project("other"), "snake")
    assert give_up_name(NOBODY, project, "snake")
    assert not give_up_name(NOBODY, project, "snake")
    assert find_named_project("snake") is None
    told = [describe_entry(entry) for entry in AuditEntry.objects.order_by("pk")]
    assert told == ["renamed the project from snake to viper", "gave up the former name snake"]


def test_it_may_take_its_own_name_back(project: Project) -> None:
    assert renamed_project(renamed_project(project), "snake").slug == "snake"
    assert list(FormerName.objects.values_list("slug", flat=True)) == ["viper"]
    assert not rename_project(NOBODY, project, " snake ")


@pytest.mark.parametrize("name", ["", "two words", "new", "other", "x" * 61, "paceline"])
def test_what_can_be_no_name_changes_nothing(project: Project, name: str) -> None:
    builders.create_project("other")
    with pytest.raises(SetupError) as refused:
        rename_project(NOBODY, project, name)
    assert refused.value.field == "slug"
    assert Project.objects.filter(slug="snake", mirror_name="").exists()
    assert not FormerName.objects.exists()


def test_the_first_project_keeps_its_name(db: None) -> None:
    with pytest.raises(SetupError, match="hosts without a box"):
        rename_project(NOBODY, builders.create_project("paceline"), "mine")


def test_names_are_not_collected_for_ever(project: Project) -> None:
    for number in range(MOST_FORMER):
        renamed_project(project, f"viper-{number}")
    with pytest.raises(SetupError, match="give one of them up first"):
        rename_project(NOBODY, project, "adder")


def test_a_removed_project_leaves_its_names_and_its_mirror(project: Project) -> None:
    renamed = renamed_project(project)
    Project.objects.update(repository="https://example.org/snake.git")
    folder = Project.objects.get().mirror.folder
    folder.mkdir(parents=True)
    remove_project(NOBODY, renamed, "viper")
    assert find_named_project("snake") is None
    delete_project(project.pk)
    assert not Project.objects.exists()
    assert not folder.exists()


def test_an_admin_renames_it_on_its_settings(client: Client, project: Project) -> None:
    client.force_login(create_member("ada", "admin", project))
    answer = client.post("/projects/snake/settings/", {"slug": "viper"}, follow=True)
    assert answer.redirect_chain == [("/projects/viper/settings/", 302)]
    assert "The project is called viper now, and still answers to snake." in shown_text(answer)
    refused = client.post("/projects/viper/settings/", {"slug": "new"})
    assert refused.status_code == 400
    assert "No project can be called new" in shown_text(refused)
    done = client.post("/projects/viper/settings/", {"given_up": "snake"}, follow=True)
    assert "Nothing leads here by the name snake any more." in shown_text(done)


def test_a_form_of_an_open_page_is_taken(client: Client, project: Project) -> None:
    client.force_login(User.objects.create_superuser("root"))
    renamed_project(project)
    assert client.post("/projects/snake/settings/", {"visibility": "private"}).status_code == 302
    assert Project.objects.get().visibility == "private"


def test_a_name_of_another_project_is_refused_in_the_words_of_the_page(project: Project) -> None:
    builders.create_project("viper")
    with pytest.raises(SetupError, match="There is a project viper already"):
        rename_project(NOBODY, project, "viper")
