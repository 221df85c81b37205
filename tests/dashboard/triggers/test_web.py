from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client

from dashboard.models import Project, Trigger

pytestmark = pytest.mark.django_db
URL = "/projects/snakes/trigger/"


@pytest.fixture
def operator(db: None) -> User:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="add_trigger"))
    return user


def post_form(client: Client, **form: Any) -> str:
    response = client.post(URL, form)
    assert (response.status_code, response["Location"]) == (302, "/projects/snakes/")
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


@pytest.mark.parametrize(
    ("form", "revisions"),
    [
        ({}, {}),
        ({"which": "newest", "commit": "typed before", "last": "10"}, {}),
        ({"which": "commit", "commit": " v1.0 "}, {"commit": "v1.0"}),
        ({"which": "range", "range": "v1..v2"}, {"range": "v1..v2"}),
        ({"which": "last", "last": "5"}, {"last": 5}),
    ],
)
def test_the_button_requests(
    client: Client, project: Project, operator: User, form: dict[str, str], revisions: dict[str, Any]
) -> None:
    client.force_login(operator)
    assert post_form(client, **form, benchmarks=["tiny", "other"]).startswith("Requested")
    trigger = Trigger.objects.get()
    assert (trigger.source, trigger.revisions, trigger.requested_by) == ("web", revisions, operator)
    assert trigger.benchmarks == ["tiny", "other"]


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"which": "commit", "commit": "--all"}, "isn't a revision"),
        ({"which": "commit"}, "Say which commits"),
        ({"which": "benchmarks"}, "Say which commits"),
        ({"which": "last", "last": "many"}, "ask for 1 to 1000"),
        ({"which": "last", "last": "²"}, "ask for 1 to 1000"),
        ({"which": "last", "last": "9" * 5000}, "The last 99999999999999999999 commits can't be measured"),
        ({"which": "range", "range": "main"}, "isn't a range"),
        ({"which": "newest", "benchmarks": ["x" * 101]}, "can't be right"),
    ],
)
def test_wrong_revisions_are_one_sentence(
    client: Client, project: Project, operator: User, form: dict[str, Any], sentence: str
) -> None:
    client.force_login(operator)
    assert sentence in post_form(client, **form)
    assert not Trigger.objects.exists()


def test_who_is_not_signed_in_signs_in_first(client: Client, project: Project) -> None:
    assert client.post(URL)["Location"] == "/sign-in/?next=/projects/snakes/"
    assert not Trigger.objects.exists()


def test_a_viewer_may_not(client: Client, project: Project) -> None:
    client.force_login(User.objects.create_user("eve"))
    assert client.post(URL).status_code == 403
    assert not Trigger.objects.exists()


def test_the_form_is_protected(project: Project, operator: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    assert client.post(URL).status_code == 403


def test_only_post_requests(client: Client, project: Project, operator: User) -> None:
    client.force_login(operator)
    assert client.get(URL).status_code == 405
