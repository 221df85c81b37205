"""Tokens of scripts: how they are made, kept, used and refused."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.access import AccessError, Visitor, make_token, revoke_token
from dashboard.models import ApiToken, Project
from tests.dashboard.access.conftest import create_member

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/token"


@pytest.fixture
def maker(private: Project) -> User:
    return create_member("ada", "operator", private)


@pytest.fixture
def made(maker: User, private: Project) -> tuple[ApiToken, str]:
    return make_token(Visitor(maker), private, "nightly", ["operate", "administer"])


def ask_with(client: Client, token: str, address: str = ADDRESS) -> Any:
    return client.get(address, headers={"Authorization": f"Bearer {token}"})


def test_only_a_hash_of_it_is_kept(made: tuple[ApiToken, str]) -> None:
    row, token = made
    assert row.token_hash == hashlib.sha256(token.encode()).hexdigest()
    assert token.startswith("plt_")
    assert token.startswith(row.prefix)
    assert token not in str(ApiToken.objects.values())
    assert timedelta(days=89) < row.expires_at - timezone.now() <= timedelta(days=90)


def test_it_says_what_it_may(client: Client, made: tuple[ApiToken, str]) -> None:
    answer = ask_with(client, made[1])
    # Its maker is no admin.
    assert answer.json() | {"expires_at": ""} == {
        "name": "nightly",
        "project": "hidden-snake",
        "actions": ["view", "operate"],
        "made_by": "ada",
        "expires_at": "",
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"revoked_at": timezone.now()}, "This token was revoked."),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "This token expired on "),
        ({"token_hash": "0" * 64}, "This token is none of this site's."),
    ],
)
def test_what_is_good_for_nothing_is_refused(
    client: Client, made: tuple[ApiToken, str], change: dict[str, Any], sentence: str
) -> None:
    ApiToken.objects.update(**change)
    for address in (ADDRESS, "/metrics", "/"):
        answer = ask_with(client, made[1], address)
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="paceline"')
        assert answer.json()["detail"].startswith(sentence)


def test_the_token_of_a_closed_account_is_refused(client: Client, made: tuple[ApiToken, str]) -> None:
    User.objects.update(is_active=False)
    assert ask_with(client, made[1]).status_code == 401


@pytest.mark.parametrize("written", ["plt_", "plt_é", "eyJhbGciOi.x.y", "host_guess"])
def test_guesses_are_refused(client: Client, maker: User, written: str) -> None:
    client.force_login(maker)
    assert ask_with(client, written).status_code == 401


def test_the_bearer_of_a_proxy_is_no_business_of_pages(client: Client, maker: User) -> None:
    assert ask_with(client, "eyJhbGciOi.x.y", "/").status_code == 200


def test_pages_take_no_tokens(client: Client, made: tuple[ApiToken, str]) -> None:
    for address in ("/", "/projects/hidden-snake/", "/admin/"):
        answer = ask_with(client, made[1], address)
        assert (answer.status_code, "takes no tokens" in answer.json()["detail"]) == (403, True)


def test_a_token_counts_beside_a_session(client: Client, made: tuple[ApiToken, str]) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert ask_with(client, made[1]).json()["made_by"] == "ada"


def test_without_a_token_there_is_nothing_to_say(client: Client, maker: User) -> None:
    assert client.get(ADDRESS).status_code == 401
    client.force_login(maker)
    assert client.get(ADDRESS).status_code == 401


def test_its_last_use_is_written_once_a_minute(client: Client, made: tuple[ApiToken, str]) -> None:
    def use_seconds_ago(seconds: int) -> bool:
        """Whether a use so long after the last one was written down."""
        before = timezone.now() - timedelta(seconds=seconds)
        ApiToken.objects.update(last_used_at=before)
        assert ask_with(client, made[1]).status_code == 200
        return bool(ApiToken.objects.get().last_used_at != before)

    assert made[0].last_used_at is None
    ask_with(client, made[1])
    assert ApiToken.objects.get().last_used_at is not None
    assert (use_seconds_ago(50), use_seconds_ago(70)) == (False, True)


def test_revoking_twice_is_no_news(maker: User, made: tuple[ApiToken, str]) -> None:
    assert [revoke_token(Visitor(maker), made[0]), revoke_token(Visitor(maker), made[0])] == [True, False]
    assert ApiToken.objects.get().state == "revoked"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"days": 0}, "days"),
        ({"days": 366}, "days"),
        ({"actions": ["administer site"]}, "actions"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_kept(
    maker: User, private: Project, changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(AccessError, match=f"^{field}: "):
        make_token(Visitor(maker), private, **({"name": "nightly", "actions": ["view"]} | changed))
    assert not ApiToken.objects.exists()


def test_no_token_makes_another(maker: User, private: Project, made: tuple[ApiToken, str]) -> None:
    for visitor in (Visitor(maker, made[0]), Visitor()):
        with pytest.raises(AccessError, match="made by people"):
            make_token(visitor, private, "more", ["operate"])
    assert ApiToken.objects.count() == 1
