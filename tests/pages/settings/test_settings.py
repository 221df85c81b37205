"""The settings of a project: visibility, members, tokens, audit log; and the audit log of the site."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.access import AuditAction, Visitor, record_action
from dashboard.models import ApiToken, AuditEntry, Membership, Project
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

SETTINGS = "/projects/snake/settings/"


@pytest.fixture
def project(db: None) -> Project:
    return builders.create_project("snake")


def test_who_may_administer_finds_the_settings(client: Client, admin: User) -> None:
    assert f'href="{SETTINGS}"' in client.get("/projects/snake/").content.decode()
    Membership.objects.update(role="operator")
    assert f'href="{SETTINGS}"' not in client.get("/projects/snake/").content.decode()


def test_a_project_is_hidden_and_shown(client: Client, admin: User) -> None:
    for wanted, status in (("private", 404), ("public", 200)):
        answer = client.post(SETTINGS, {"visibility": wanted}, follow=True)
        assert f'value="{wanted}" checked' in answer.content.decode()
        assert Client().get("/projects/snake/").status_code == status
    changes = AuditEntry.objects.filter(action=AuditAction.SETTINGS_CHANGED)
    assert changes.count() == 2


def test_no_other_visibility_is_taken(client: Client, admin: User) -> None:
    answer = client.post(SETTINGS, {"visibility": "secret"})
    assert (answer.status_code, "visibility: must be one of" in shown_text(answer)) == (400, True)


def test_a_member_is_added_changed_and_removed(client: Client, admin: User, project: Project) -> None:
    User.objects.create_user("eve")
    answer = client.post(f"{SETTINGS}members/", {"name": "eve", "role": "viewer"}, follow=True)
    assert "eve is viewer of snake now." in shown_text(answer)
    member = project.memberships.get(user__username="eve")
    where = f"{SETTINGS}members/{member.pk}/"
    assert "eve is operator of snake" in shown_text(client.post(where, {"role": "operator"}, follow=True))
    assert "no member of snake" in shown_text(client.post(where, {"remove": "yes"}, follow=True))
    assert not Membership.objects.filter(user__username="eve").exists()


def test_a_refused_member_keeps_what_was_typed(client: Client, admin: User) -> None:
    answer = client.post(f"{SETTINGS}members/", {"name": "<eve>", "role": "operator"})
    assert answer.status_code == 400
    assert 'value="&lt;eve&gt;"' in answer.content.decode()
    assert 'value="operator" checked' in answer.content.decode()


def test_the_last_admin_is_told(client: Client, admin: User, project: Project) -> None:
    where = f"{SETTINGS}members/{project.memberships.get().pk}/"
    for form in ({"remove": "yes"}, {"role": "viewer"}):
        assert "ada is the last admin here" in shown_text(client.post(where, form, follow=True))


def test_who_leaves_is_led_to_what_is_left(client: Client, admin: User, project: Project) -> None:
    create_member("eve", "admin", project)
    where = f"{SETTINGS}members/{project.memberships.get(user=admin).pk}/"
    assert client.post(where, {"role": "viewer"})["Location"] == "/projects/snake/"


def test_a_member_of_another_project_is_not_here(client: Client, admin: User) -> None:
    other = builders.create_project("other")
    create_member("eve", "viewer", other)
    foreign = other.memberships.get()
    assert client.post(f"{SETTINGS}members/{foreign.pk}/", {"remove": "yes"}).status_code == 404
    assert other.memberships.exists()


def create_token(client: Client, **form: Any) -> Any:
    asked = {"name": "nightly", "days": "7", "actions": ["operate"]} | form
    return client.post(f"{SETTINGS}tokens/", asked)


def test_a_token_is_shown_once_and_its_command_works(client: Client, admin: User) -> None:
    answer = create_token(client)
    shown = html.unescape(answer.content.decode())
    found = re.search(r"curl -H 'Authorization: Bearer (plt_\S+)' http://127\.0\.0\.1:\d+(\S+?)<", shown)
    assert found is not None
    assert "no-store" in answer["Cache-Control"]
    said = Client().get(found[2], headers={"Authorization": f"Bearer {found[1]}"}).json()
    assert (said["name"], said["actions"]) == ("nightly", ["view", "operate"])
    assert found[1] not in client.get(f"{SETTINGS}tokens/").content.decode()


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"name": ""}, "name: give the token a name"),
        ({"days": "400"}, "days: a token lasts 1 to 365 days."),
        ({"days": "soon"}, "days: must be a whole number"),
        ({"days": "9" * 5000}, "days: must be a whole number"),
        ({"actions": ["fly"]}, "actions: a token may view, operate, administer, nothing else."),
    ],
)
def test_a_token_that_can_not_be_is_told(
    client: Client, admin: User, form: dict[str, Any], sentence: str
) -> None:
    answer = create_token(client, **form)
    assert (answer.status_code, sentence in shown_text(answer)) == (400, True)
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked(client: Client, admin: User) -> None:
    create_token(client)
    where = f"{SETTINGS}tokens/{ApiToken.objects.get().pk}/revoke/"
    assert "The token nightly is revoked." in shown_text(client.post(where, follow=True))
    assert "had been revoked already" in shown_text(client.post(where, follow=True))
    assert ApiToken.objects.get().state == "revoked"


def test_a_token_of_another_project_is_not_here(client: Client, admin: User) -> None:
    create_token(client)
    ApiToken.objects.update(project=builders.create_project("other"))
    assert client.post(f"{SETTINGS}tokens/{ApiToken.objects.get().pk}/revoke/").status_code == 404


def test_settings_are_changed_by_forms_of_this_site_alone(admin: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin)
    for where in ("", "members/", "tokens/"):
        assert strict.post(f"{SETTINGS}{where}", {"visibility": "private"}).status_code == 403


def test_the_log_of_a_project_is_its_own(client: Client, admin: User, project: Project) -> None:
    record_action(Visitor(admin), AuditAction.HISTORY_JUDGED, project)
    record_action(Visitor(admin), AuditAction.PROJECT_ADDED, builders.create_project("other"))
    shown = shown_text(client.get(f"{SETTINGS}audit/"))
    assert "had the whole history judged again" in shown
    assert "added the project" not in shown


def test_the_log_is_filtered_and_paged(client: Client, admin: User, project: Project) -> None:
    for _ in range(51):
        record_action(Visitor(admin), AuditAction.HISTORY_JUDGED, project)
    record_action(Visitor(admin), AuditAction.RESULTS_IMPORTED, project, format="csv", points=3)
    where = f"{SETTINGS}audit/"
    assert "imported results (csv, 3 values)" in shown_text(client.get(where, {"action": "results imported"}))
    only = shown_text(client.get(where, {"action": "results imported"}))
    assert "had the whole history judged again" not in only
    assert "Page 2 of 2" in shown_text(client.get(where, {"page": 2}))
    assert client.get(where, {"action": "flown"}).status_code == 404


def test_the_log_of_the_site_is_for_its_administrators(client: Client, project: Project) -> None:
    client.force_login(User.objects.create_superuser("root"))
    record_action(Visitor(), AuditAction.HISTORY_JUDGED, project)
    shown = shown_text(client.get("/audit/"))
    assert "root signed in" in shown
    assert "somebody had the whole history judged again snake" in shown
    assert 'href="/audit/"' in client.get("/site/jobs/").content.decode()
