"""The settings that a project's set-up needs: repository, numbers, manifest, forge, hook, removal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from dashboard.access import AuditAction
from dashboard.models import (
    AuditEntry,
    ForgeConnection,
    ForgeDelivery,
    Membership,
    Project,
    RepositoryTest,
)
from dashboard.project_setup.removal import delete_project
from dashboard.project_setup.repository_tests import perform_test
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.forges.stand_ins import TOKEN, StandIn
from tests.pages import builders
from tests.pages.check_builders import create_check
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import create_ended

pytestmark = pytest.mark.django_db

SETTINGS = "/projects/snake/settings/"


@pytest.fixture
def project(db: None, tmp_path: Path, settings: Settings) -> Project:
    settings.PACELINE_HOME = tmp_path / "home"
    code = Repository(tmp_path / "code")
    code.commit("Begin", paceline_toml=MANIFEST)
    project = builders.create_project("snake")
    Project.objects.update(repository=str(code.folder))
    project.refresh_from_db()
    return project


def test_all_sections_are_there(client: Client, admin: User) -> None:
    shown = client.get(SETTINGS).content.decode()
    for name in (
        "measuring",
        "manifest",
        "forge",
        "hook",
        "members",
        "tokens",
        "channels",
        "audit",
        "remove",
    ):
        assert f'href="{SETTINGS}{name}/"' in shown
        assert client.get(f"{SETTINGS}{name}/").status_code == 200


def test_credentials_are_not_shown(client: Client, admin: User) -> None:
    Project.objects.update(credentials="ann:secret")
    shown = client.get(SETTINGS)
    assert "User ann and a password are kept." in shown_text(shown)
    assert "secret" not in shown.content.decode()


def test_another_branch_is_tested_and_taken(client: Client, admin: User, project: Project) -> None:
    Repository(Path(project.repository)).git("branch", "topic")
    form = {"repository": project.repository, "branch": "topic"}
    where = client.post(f"{SETTINGS}repository/", form)["Location"]
    assert "Waiting for a worker" in shown_text(client.get(where))
    assert "Waiting" in shown_text(client.get(f"{where}status/"))
    perform_test(RepositoryTest.objects.get().pk)
    assert "its branch topic is read" in shown_text(client.get(where))
    client.post(where)
    project.refresh_from_db()
    assert project.branch == "topic"
    entry = AuditEntry.objects.get(action=AuditAction.SETTINGS_CHANGED)
    assert entry.details == {"fields": ["branch"], "values": {"branch": "topic"}}


def test_credentials_go_to_no_other_address(client: Client, admin: User, project: Project) -> None:
    Project.objects.update(credentials="ann:secret")
    client.post(f"{SETTINGS}repository/", {"repository": project.repository})
    assert RepositoryTest.objects.get().credentials == "ann:secret"
    RepositoryTest.objects.all().delete()
    client.post(f"{SETTINGS}repository/", {"repository": "https://elsewhere.example.org/x"})
    assert RepositoryTest.objects.get().credentials == ""


def test_credentials_are_forgotten(client: Client, admin: User, project: Project) -> None:
    Project.objects.update(credentials="ann:secret")
    client.post(f"{SETTINGS}repository/", {"repository": project.repository, "forget": "yes"})
    assert RepositoryTest.objects.get().credentials == ""


def test_an_admin_of_a_project_names_no_folder(client: Client, admin: User, project: Project) -> None:
    answer = client.post(f"{SETTINGS}repository/", {"repository": "/etc"})
    assert "administrators of the site alone" in shown_text(answer)


def test_an_admin_of_a_project_has_no_use_of_the_sites_key(
    client: Client, admin: User, project: Project
) -> None:
    """It may read the repository of another project, a private one too."""
    form = {"repository": "git@git.example.org:theirs/code.git"}
    answer = client.post(f"{SETTINGS}repository/", form)
    assert "Over ssh the site's own key is used" in shown_text(answer)
    assert "git@host" not in shown_text(client.get(SETTINGS))
    assert not RepositoryTest.objects.exists()
    admin.user_permissions.add(Permission.objects.get(codename="add_project"))
    assert "git@host" in shown_text(client.get(SETTINGS))
    client.post(f"{SETTINGS}repository/", form)
    assert RepositoryTest.objects.get().repository == form["repository"]


def test_what_failed_is_not_taken(client: Client, admin: User, project: Project) -> None:
    form = {"repository": project.repository, "branch": "nothing"}
    where = client.post(f"{SETTINGS}repository/", form)["Location"]
    perform_test(RepositoryTest.objects.get().pk)
    assert "has no branch &#x27;nothing&#x27;" in client.get(where).content.decode()
    assert "could not be read" in shown_text(client.post(where, follow=True))
    again = client.post(f"{SETTINGS}repository/", {"again": where.split("/")[-2], "branch": "main"})
    assert again["Location"] != where


@pytest.mark.parametrize(
    ("minutes", "sentence"),
    [
        ("15", "every 15 minutes"),
        ("0", "It looks no more"),
        ("-1", "The number of minutes must be 0 or more."),
        ("soon", "a whole number"),
    ],
)
def test_how_often_it_looks(client: Client, admin: User, minutes: str, sentence: str) -> None:
    assert sentence in shown_text(client.post(SETTINGS, {"poll_minutes": minutes}, follow=True))


def numbers_form(**fields: str) -> dict[str, str]:
    return {
        "check_minutes": "30",
        "check_floor": "2,5 %",
        "experiment_minutes": "10",
        "experiment_pairs": "12",
        "experiment_share": "50",
        "false_alerts_per_100_commits": "0.5",
        "training_hours_per_week": "",
        **fields,
    }


def test_its_numbers_are_changed(client: Client, admin: User, project: Project) -> None:
    client.post(f"{SETTINGS}measuring/", numbers_form())
    project.refresh_from_db()
    assert (project.check_floor, project.experiment_share, project.sentinels) == (0.025, 0.5, False)
    assert "check floor to 0.025" in shown_text(client.get(f"{SETTINGS}audit/"))
    assert 'value="2.5"' in client.get(f"{SETTINGS}measuring/").content.decode()


def test_a_wrong_number_is_told_and_none_is_stored(client: Client, admin: User, project: Project) -> None:
    form = numbers_form(check_floor="2000", experiment_pairs="3", check_minutes="soon")
    answer = client.post(f"{SETTINGS}measuring/", form)
    for sentence in (
        "“Least loss, in %” must be 1,000 or less.",
        "“At most, in pairs” must be 4 or more.",
        "“At most, in minutes” must be a number, not soon.",
    ):
        assert sentence in shown_text(answer)
    assert Project.objects.get().experiment_minutes == project.experiment_minutes


def test_two_administrators_at_once_keep_both_numbers(client: Client, admin: User, project: Project) -> None:
    page = f"{SETTINGS}measuring/"
    opened = hidden_fields(client.get(page))
    mine = {name.removesuffix("-shown"): text for name, text in opened.items() if text} | {"check_floor": "4"}
    theirs = (77, not project.sentinels)
    Project.objects.update(check_minutes=77, sentinels=not project.sentinels)
    assert client.post(page, opened | mine).status_code == 302
    project.refresh_from_db()
    assert ((project.check_minutes, project.sentinels), project.check_floor) == (theirs, 0.04)
    # The same number: the second is told, and may insist.
    answer = client.post(page, opened | mine | {"check_minutes": "15", "check_floor": "5"})
    assert "set it to 77 since this page was loaded. Save again to set it to 15." in shown_text(answer)
    assert "set it to 4 since this page was loaded" in shown_text(answer)
    client.post(page, hidden_fields(answer) | mine | {"check_minutes": "15", "check_floor": "5"})
    project.refresh_from_db()
    assert (project.check_minutes, project.check_floor) == (15, 0.05)


def hidden_fields(answer: Any) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="([\w-]+-shown)" value="([^"]*)"', answer.content.decode()))


def test_a_manifest_is_compared_with_the_repositorys(client: Client, admin: User) -> None:
    written = MANIFEST.replace("steps = 10\n", "steps = 20\n")
    form = {"manifest": written, "action": "preview"}
    shown = client.post(f"{SETTINGS}manifest/", form)
    assert "3 cases" in shown_text(shown)
    found = re.search(rf'hx-post="({SETTINGS}manifest/\d+/)"', shown.content.decode())
    assert found
    assert "Reading the newest" in shown_text(client.post(found[1], form))
    perform_test(RepositoryTest.objects.get().pk)
    answer = shown_text(client.post(found[1], form))
    assert "- steps = 10" in answer
    assert "+ steps = 20" in answer
    assert "The same as" in shown_text(client.post(found[1], {"manifest": MANIFEST}))


def test_a_nul_in_a_manifest_is_told_of_it(client: Client, admin: User) -> None:
    answer = client.post(f"{SETTINGS}manifest/", {"manifest": "\0", "action": "keep"})
    assert answer.status_code == 400
    assert "paceline.toml: holds a NUL, which no text has." in shown_text(answer)


def test_a_manifest_is_kept_and_given_up(client: Client, admin: User) -> None:
    where = f"{SETTINGS}manifest/"
    answer = client.post(where, {"manifest": "[benchmarks.x]\nverson = 1", "action": "keep"})
    assert (answer.status_code, "benchmarks.x" in shown_text(answer)) == (400, True)
    assert "counts from now on" in shown_text(
        client.post(where, {"manifest": MANIFEST, "action": "keep"}, follow=True)
    )
    other = {"manifest": MANIFEST.replace("100", "50"), "action": "preview"}
    assert "Changed against the one kept now" in shown_text(client.post(where, other))
    client.post(where, {"action": "use-repository"})
    assert Project.objects.get().manifest == ""


@pytest.fixture
def stand_in(settings: Settings) -> Iterator[StandIn]:
    settings.PACELINE_ALLOW_INTERNAL_FORGES = True
    with StandIn("gitea").open() as made:
        made.responses["GET /repos/{owner}/{repo}"] = {"id": 1}
        yield made


def forge_form(stand_in: StandIn, **fields: str) -> dict[str, str]:
    form = {"kind": "gitea", "repository": "ada/snakes", "api_address": stand_in.url, "token": TOKEN}
    return form | {"action": "connect"} | fields


def test_a_forge_is_connected_tried_and_forgotten(client: Client, admin: User, stand_in: StandIn) -> None:
    where = f"{SETTINGS}forge/"
    assert "isn't connected" in shown_text(client.post(f"{where}test/"))
    answer = client.post(where, forge_form(stand_in))
    connection = ForgeConnection.objects.get()
    assert connection.webhook_secret in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    shown = client.get(where).content.decode()
    assert TOKEN not in shown
    assert connection.webhook_secret not in shown
    assert "the token may read the repository" in shown_text(client.post(f"{where}test/"))
    renewed = client.post(where, {"action": "renew-secret"}).content.decode()
    assert ForgeConnection.objects.get().webhook_secret in renewed
    client.post(where, {"action": "disconnect"})
    assert not ForgeConnection.objects.exists()
    said = shown_text(client.get(f"{SETTINGS}audit/"))
    assert "connected the project with ada/snakes on gitea" in said
    assert TOKEN not in said


def test_a_kept_token_is_for_its_repository_alone(client: Client, admin: User, stand_in: StandIn) -> None:
    where = f"{SETTINGS}forge/"
    client.post(where, forge_form(stand_in))
    for other in ({"api_address": "https://other.example.org"}, {"repository": "ada/other"}):
        answer = client.post(where, forge_form(stand_in, token="", **other))
        assert "Give the token again" in shown_text(answer)
    answer = client.post(where, forge_form(stand_in, token=""), follow=True)
    assert "Connected with ada/snakes" in shown_text(answer)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"kind": "x"}, "Choose which forge it is."),
        ({"repository": "x"}, "isn't a repository of gitea"),
        ({"token": "short"}, "The token must be 8 to 1000"),
        ({"token": "a-wrong-token"}, "Its token is wrong"),
        ({"app_id": "1"}, "Only GitHub has apps"),
    ],
)
def test_a_wrong_connection_is_told(
    client: Client, admin: User, stand_in: StandIn, fields: dict[str, str], sentence: str
) -> None:
    answer = client.post(f"{SETTINGS}forge/", forge_form(stand_in, **fields))
    assert (answer.status_code, sentence in shown_text(answer)) == (400, True)
    assert not ForgeConnection.objects.exists()


def test_an_unknown_action_changes_no_connection(client: Client, admin: User, stand_in: StandIn) -> None:
    client.post(f"{SETTINGS}forge/", forge_form(stand_in))
    answer = client.post(f"{SETTINGS}forge/", {"action": "forget"}, follow=True)
    assert "action: must be one of connect, renew-secret, disconnect." in shown_text(answer)
    assert ForgeConnection.objects.exists()


def test_a_hook_gets_a_new_secret(client: Client, admin: User, project: Project) -> None:
    assert "manage.py install_hook snake" in shown_text(client.get(f"{SETTINGS}hook/"))
    shown = client.post(f"{SETTINGS}hook/").content.decode()
    project.refresh_from_db()
    assert project.hook_secret in shown
    assert project.hook_secret not in client.get(f"{SETTINGS}hook/").content.decode()


def test_a_project_is_removed(client: Client, admin: User) -> None:
    for typed in ("snak", "Snake", "sna\0ke", "snake/", ""):
        answer = client.post(f"{SETTINGS}remove/", {"slug": typed})
        assert (answer.status_code, "Type snake to remove it." in shown_text(answer)) == (400, True)
    answer = client.post(f"{SETTINGS}remove/", {"slug": "snake"}, follow=True)
    assert "snake is removed" in shown_text(answer)
    assert client.get("/projects/snake/").status_code == 404
    assert not Membership.objects.exists()


def test_a_long_history_is_removed(client: Client) -> None:
    line = builders.create_measured_commits(4, step_at=2)
    case = line[0].runs.get().case
    regression = builders.create_regression(builders.headline_series(case), line[1], line[2])
    builders.create_delivery(regression)
    create_ended(line)
    create_check(line)
    client.force_login(User.objects.create_superuser("root"))
    shown = shown_text(client.get(f"{SETTINGS}remove/"))
    assert "4 commits, 4 runs" in shown
    client.post(f"{SETTINGS}remove/", {"slug": "snake"})
    delete_project(Project.objects.get().pk)
    assert not Project.objects.exists()


def test_the_page_of_a_forge_says_when_it_told_of_something(
    client: Client, admin: User, project: Project
) -> None:
    ForgeConnection.objects.create(
        project=project, kind="github", api_address="https://api.github.com", repository="org/name"
    )
    assert "It has reported nothing yet that was signed with this secret." in shown_text(
        client.get(f"{SETTINGS}forge/")
    )
    ForgeDelivery.objects.create(project=project, identity="1")
    assert "It last reported something just now." in shown_text(client.get(f"{SETTINGS}forge/"))
