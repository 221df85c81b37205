"""How another host joins: by a code that is shown once, to who may add one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from dashboard import hosts
from dashboard.models import JoinCode, Machine, Pool
from dashboard.secrets.tokens import hash_token
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(db: None) -> Machine:
    return builders.create_machine("gpu-1")


def shown_code(response: Any) -> str:
    found = re.search(r"CODE=(\S+?)<", response.content.decode())
    assert found is not None
    return found[1]


def test_a_code_is_shown_once_and_kept_as_a_hash(
    signed_in: Client, machine: Machine, settings: Settings
) -> None:
    settings.PACELINE_URL = "https://paceline.example.org"
    response = signed_in.post("/machines/codes/", {"pool": "h100"})
    code = shown_code(response)
    shown = shown_text(response)
    assert f"make host SITE=https://paceline.example.org CODE={code}" in shown
    assert f"python -m workers.host run --site https://paceline.example.org --code {code}" in shown
    assert "no-store" in response["Cache-Control"]
    made = JoinCode.objects.get()
    assert (made.code_hash, made.pool.name, made.made_by) == (hash_token(code), "h100", "ada")
    assert [value for value in vars(made).values() if code in str(value)] == []
    assert code not in shown_text(signed_in.get("/machines/"))


def test_a_host_joins_by_the_code(signed_in: Client, machine: Machine) -> None:
    code = shown_code(signed_in.post("/machines/codes/", {"pool": machine.pool.name}))
    joined, _ = hosts.join_machine(code, "gpu-2")
    assert joined.pool == machine.pool
    assert "not started yet" in shown_text(signed_in.get("/machines/"))


@pytest.mark.parametrize("name", ["", "a pool", "ü", "x" * 61, "a/b"])
def test_a_pool_needs_a_name_that_an_address_may_have(signed_in: Client, name: str) -> None:
    response = signed_in.post("/machines/codes/", {"pool": name})
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()
    assert not Pool.objects.exists()
    assert not JoinCode.objects.exists()


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000", True),
        ("http://10.1.2.3:8000", False),
        ("https://paceline.example.org", False),
    ],
)
def test_an_address_that_no_other_host_reaches_is_told(
    signed_in: Client, settings: Settings, address: str, warned: bool
) -> None:
    settings.PACELINE_URL = address
    shown = shown_text(signed_in.post("/machines/codes/", {"pool": "h100"}))
    assert ("Other hosts can't reach" in shown) is warned


def test_who_is_not_signed_in_gets_no_code(client: Client) -> None:
    response = client.post("/machines/codes/", {"pool": "h100"})
    assert response["Location"] == "/sign-in/?next=/machines/"
    assert not JoinCode.objects.exists()


def test_who_may_not_gets_no_code_and_is_told(client: Client) -> None:
    client.force_login(User.objects.create_user("grace"))
    answer = client.post("/machines/codes/", {"pool": "h100"})
    assert (answer.status_code, "Only administrators of this site" in shown_text(answer)) == (403, True)
    assert "Your account can view machines but not add a host" in shown_text(client.get("/machines/"))
    assert not JoinCode.objects.exists()


def test_a_code_is_made_by_a_form_of_this_site_alone(operator: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    assert strict.post("/machines/codes/", {"pool": "h100"}).status_code == 403
    assert strict.get("/machines/codes/")["Location"] == "/machines/"
