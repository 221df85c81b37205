"""A code of an app beside the password: asked for, required of administrators, never taken twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.core.management import call_command
from django.db.models import F
from django.test import Client

from dashboard.accounts.second_factors import reencrypt_second_factors
from dashboard.environment_variables import is_loopback_site
from dashboard.models import Throttle
from tests.dashboard.accounts.conftest import (
    PASSWORD,
    is_signed_in,
    set_up_second_factor,
    shown_code,
    sign_in,
)
from tests.pages import builders


@pytest.fixture
def key(client: Client, ada: User) -> str:
    """Of the app of an account that has signed out again."""
    sign_in(client)
    made, _ = set_up_second_factor(client)
    client.post("/sign-out/")
    return made


def enter_code(client: Client, code: str) -> int:
    return int(client.post("/sign-in/code/", {"code": code}).status_code)


def test_the_password_alone_signs_nobody_in(client: Client, key: str) -> None:
    assert sign_in(client)["Location"] == "/sign-in/code/"
    assert not is_signed_in(client)
    assert "Incorrect code." in client.post("/sign-in/code/", {"code": "000000"}).content.decode()
    assert enter_code(client, shown_code(key, -1)) == 302
    assert is_signed_in(client)


def test_a_code_is_good_once(client: Client, key: str) -> None:
    used = shown_code(key)
    sign_in(client)
    assert enter_code(client, used) == 200
    assert not is_signed_in(client)


def test_an_old_code_is_none(client: Client, key: str) -> None:
    sign_in(client)
    assert enter_code(client, shown_code(key, 3)) == 200
    assert not is_signed_in(client)


def test_a_recovery_code_signs_in_once(client: Client, ada: User) -> None:
    sign_in(client)
    _, codes = set_up_second_factor(client)
    for expected in (302, 200):
        client.post("/sign-out/")
        sign_in(client)
        assert enter_code(client, codes[0]) == expected


@pytest.mark.usefixtures("stopped_clock")
def test_guessing_codes_gets_slow(client: Client, key: str) -> None:
    sign_in(client)
    answers = [enter_code(client, f"{number:06}") for number in range(6)]
    assert answers == [200] * 5 + [429]
    other = Client(headers={"X-Forwarded-For": "192.0.2.1"})
    sign_in(other)
    assert enter_code(other, shown_code(key, -1)) == 429
    Throttle.objects.update(free_at=F("free_at") - timedelta(seconds=2))
    assert enter_code(other, shown_code(key, -1)) == 302


def test_a_wrong_code_can_be_recorded(client: Client, key: str) -> None:
    heard: list[dict[str, str]] = []

    def hear_failure(credentials: dict[str, str], **_: object) -> None:
        heard.append(credentials)

    user_login_failed.connect(hear_failure)
    sign_in(client)
    enter_code(client, "000000")
    user_login_failed.disconnect(hear_failure)
    assert heard == [{"username": "ada", "second_factor": "wrong"}]


def test_the_key_is_kept_encrypted(key: str) -> None:
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert key not in kept
    assert kept.count("gAAAA") == 2


def test_without_its_key_a_second_factor_lets_nobody_in(
    client: Client, key: str, settings: LazySettings
) -> None:
    settings.SECRET_KEY_FALLBACKS = []
    settings.SECRET_KEY = "another key of the site"
    sign_in(client)
    for secret in (key, ""):
        page = client.post("/sign-in/code/", {"code": shown_code(secret)}).content.decode()
        assert "an administrator has to reset it" in page
    assert not is_signed_in(client)


def test_a_new_key_of_the_site_takes_them_along(client: Client, key: str, settings: LazySettings) -> None:
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key of the site"
    assert reencrypt_second_factors() == 2
    settings.SECRET_KEY_FALLBACKS = []
    sign_in(client)
    assert enter_code(client, shown_code(key, -1)) == 302


def test_who_has_lost_both_gets_it_reset(
    client: Client, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("reset_second_factor", "ada")
    assert "with the password alone" in capsys.readouterr().out
    assert sign_in(client)["Location"] == "/"
    assert is_signed_in(client)


def test_an_administrator_sets_it_up_before_anything_is_written(
    client: Client, admin_user: User, settings: LazySettings
) -> None:
    settings.PACELINE_REQUIRE_SECOND_FACTOR = "admins"
    builders.create_project("snake")
    set_up = "/account/second-factor/set-up/"
    assert sign_in(client, "grace")["Location"] == set_up
    assert client.post("/projects/snake/trigger/", {"which": "newest"})["Location"] == set_up
    assert client.get("/admin/")["Location"] == f"{set_up}?next=%2Fadmin%2F"
    assert client.get("/projects/snake/experiments/new/")["Location"].startswith(set_up)
    assert client.get("/projects/snake/").status_code == 200
    set_up_second_factor(client)
    asked = client.post("/projects/snake/trigger/", {"which": "newest"})
    assert asked["Location"].startswith("/projects/snake/triggers/")
    assert client.get("/admin/").status_code == 200


def test_it_stays_where_it_is_required(client: Client, admin_user: User, settings: LazySettings) -> None:
    settings.PACELINE_REQUIRE_SECOND_FACTOR = "admins"
    sign_in(client, "grace")
    set_up_second_factor(client)
    page = client.post("/account/second-factor/remove/").content.decode()
    assert "must have a second factor" in page
    assert Authenticator.objects.filter(type="totp").exists()


@pytest.mark.parametrize(
    ("required", "led"), [("none", False), ("admins", False), ("all", True)]
)  # fmt: skip
def test_the_setting_says_who_must_have_it(
    client: Client, ada: User, settings: LazySettings, required: str, led: bool
) -> None:
    settings.PACELINE_REQUIRE_SECOND_FACTOR = required
    builders.create_project("snake").memberships.create(user=ada, role="operator")
    sign_in(client)
    answer = client.post("/projects/snake/trigger/", {"which": "newest"})
    assert (not answer["Location"].startswith("/projects/snake/triggers/")) is led


def test_who_must_set_it_up_can_leave(client: Client, admin_user: User, settings: LazySettings) -> None:
    settings.PACELINE_REQUIRE_SECOND_FACTOR = "all"
    sign_in(client, "grace")
    client.post("/sign-out/")
    assert not is_signed_in(client)


@pytest.mark.parametrize(
    ("url", "host", "alone"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", True),
        ("http://localhost:8000", "::1", True),
        ("http://127.0.0.1:8000", "0.0.0.0", False),  # noqa: S104
        ("https://pace.example.org", "127.0.0.1", False),
    ],
)
def test_a_site_for_this_machine_alone_asks_for_none(url: str, host: str, alone: bool) -> None:
    assert is_loopback_site(url, host) is alone


def test_a_session_that_is_older_is_asked_again(client: Client, key: str) -> None:
    sign_in(client)
    enter_code(client, shown_code(key, -1))
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 1000
    session.save()
    assert client.get("/account/recovery-codes/")["Location"].startswith("/account/confirm/?next=")
    assert "Is it you?" in client.get("/account/confirm/").content.decode()
    asked = {"password": PASSWORD}
    confirmed = client.post("/account/confirm/?next=/account/recovery-codes/", asked)
    assert confirmed["Location"] == "/account/recovery-codes/"
    assert "Each works once" in client.get("/account/recovery-codes/").content.decode()


def test_it_is_removed_where_it_is_not_required(client: Client, ada: User) -> None:
    sign_in(client)
    set_up_second_factor(client)
    client.post("/account/second-factor/remove/")
    assert not Authenticator.objects.exists()
