"""Signing in by an OpenID provider that speaks HTTP, and all that must not sign anybody in."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.test import Client

from dashboard.accounts.openid_settings import OpenIDSettings
from tests.dashboard.accounts.conftest import PASSWORD, is_signed_in, sign_in
from tests.dashboard.accounts.openid_provider import CLIENT_ID, CLIENT_SECRET, Provider, start_provider

VERIFIED = {"sub": "42", "preferred_username": "ada", "email": "ada@example.org", "email_verified": True}


@pytest.fixture
def provider(settings: LazySettings, db: None) -> Iterator[Provider]:
    """One that the site signs in by."""
    made, server = start_provider()
    settings.PACELINE_URL = "http://testserver"
    settings.PACELINE_OIDC = OpenIDSettings(made.issuer, CLIENT_ID, CLIENT_SECRET, name="Example")
    yield made
    server.shutdown()
    server.server_close()


def begin_sign_in(client: Client, **fields: str) -> str:
    """The provider's address, to which the page leads."""
    page = client.post("/sign-in/provider/", fields).content.decode()
    match = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page)
    assert match, page
    return unescape(match[1])


def visit_provider(address: str) -> str:
    """The browser at the provider: where it is sent back to, from the path on."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("GET", f"{parts.path}?{parts.query}")
    location = connection.getresponse().headers["Location"]
    connection.close()
    return location.removeprefix("http://testserver")


def sign_in_by(client: Client, **fields: str) -> Any:
    return client.get(visit_provider(begin_sign_in(client, **fields)))


def change_provider(settings: LazySettings, **changed: Any) -> None:
    settings.PACELINE_OIDC = replace(settings.PACELINE_OIDC, **changed)


def test_the_first_sign_in_makes_an_account(client: Client, provider: Provider) -> None:
    provider.person = VERIFIED
    assert "Sign in with Example" in client.get("/sign-in/").content.decode()
    assert sign_in_by(client, next="/regressions/")["Location"] == "/regressions/"
    assert is_signed_in(client)
    made = User.objects.get()
    assert (made.username, made.email, made.is_superuser) == ("ada", "ada@example.org", False)
    assert not made.has_usable_password()


def test_the_next_one_finds_it_by_the_subject(client: Client, provider: Provider) -> None:
    sign_in_by(client)
    provider.person = {"sub": "42", "preferred_username": "ada.lovelace", "email": "new@example.org"}
    sign_in_by(Client())
    assert User.objects.count() == 1


def test_the_same_name_or_address_is_another_account(client: Client, provider: Provider, ada: User) -> None:
    provider.person = VERIFIED
    sign_in_by(client)
    made = User.objects.exclude(pk=ada.pk).get()
    assert made.username != "ada"
    assert SocialAccount.objects.get().user == made


def test_an_address_that_is_not_verified_is_not_kept(client: Client, provider: Provider) -> None:
    provider.person = {**VERIFIED, "email_verified": False}
    sign_in_by(client)
    assert User.objects.get().email == ""


def test_the_request_has_all_that_it_needs(client: Client, provider: Provider) -> None:
    asked = {name: values[0] for name, values in parse_qs(urlsplit(begin_sign_in(client)).query).items()}
    assert asked["redirect_uri"] == "http://testserver/sign-in/provider/answer/"
    assert set(asked["scope"].split()) == {"openid", "profile", "email"}
    assert len(asked["nonce"]) > 40
    assert {"state", "code_challenge", "code_challenge_method"} <= set(asked)


def test_nothing_in_the_address_changes_the_request(client: Client, provider: Provider) -> None:
    planted = urlencode({"scope": "admin", "auth_params": "nonce=mine&prompt=none", "process": "connect"})
    page = client.post(f"/sign-in/provider/?{planted}").content.decode()
    address = re.search(r'content="0;url=([^"]+)"', page)
    assert address is not None
    assert not re.search("admin|mine|prompt", unescape(address[1]))


def test_it_begins_with_a_button_alone(provider: Provider) -> None:
    assert Client().get("/sign-in/provider/").status_code == 405
    assert Client(enforce_csrf_checks=True).post("/sign-in/provider/").status_code == 403


NOW = int(time.time())
OTHER_KEY = rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    "wrong",
    [
        {"claims": {"nonce": "of another sign-in"}},
        {"claims": {"nonce": None}},
        {"claims": {"iss": "https://evil.example"}},
        {"claims": {"aud": "another client"}},
        {"claims": {"aud": [CLIENT_ID, "another client"], "azp": "another client"}},
        {"claims": {"exp": NOW - 120, "iat": NOW - 600}},
        {"claims": {"exp": None}},
        {"claims": {"iat": NOW + 3600}},
        {"claims": {"sub": None}},
        {"signing_key": OTHER_KEY},
        {"algorithm": "none", "signing_key": ""},
        {"algorithm": "HS256", "signing_key": CLIENT_SECRET * 3},
        {"userinfo": {"sub": "43"}},
        {"described": {"issuer": "https://evil.example"}},
    ],
    ids=[
        *("nonce", "no nonce", "issuer", "audience", "azp", "expired", "no end", "from the future"),
        *("no subject", "key", "unsigned", "shared secret", "userinfo", "description"),
    ],
)
def test_what_can_not_be_verified_signs_nobody_in(
    client: Client, provider: Provider, wrong: dict[str, Any]
) -> None:
    address = begin_sign_in(client)
    for name, value in wrong.items():
        setattr(provider, name, value)
    answer = client.get(visit_provider(address))
    assert answer.status_code == 403
    assert "What Example answered couldn&#x27;t be verified" in answer.content.decode()
    assert not is_signed_in(client)
    assert not User.objects.exists()


def test_the_state_is_that_of_the_same_browser_and_good_once(client: Client, provider: Provider) -> None:
    answer = visit_provider(begin_sign_in(client))
    assert Client().get(answer).status_code == 403
    assert client.get(answer.replace("state=", "state=x")).status_code == 403
    assert client.get(answer).status_code == 302
    client.post("/sign-out/")
    assert client.get(answer).status_code == 403


def test_a_code_that_was_asked_for_elsewhere_is_refused(client: Client, provider: Provider) -> None:
    """By PKCE: the provider gives no token for another browser's verifier."""
    stolen = parse_qs(urlsplit(visit_provider(begin_sign_in(Client()))).query)["code"][0]
    own = visit_provider(begin_sign_in(client))
    answer = client.get(re.sub(r"code=[^&]+", f"code={stolen}", own))
    assert answer.status_code == 403
    assert provider.refusals == ["code_verifier"]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [("access_denied", "was cancelled"), ("server_error", "verified")],
)
def test_an_error_of_the_provider_is_told(
    client: Client, provider: Provider, error: str, sentence: str
) -> None:
    state = parse_qs(urlsplit(begin_sign_in(client)).query)["state"][0]
    answer = client.get("/sign-in/provider/answer/", {"error": error, "state": state})
    assert sentence in answer.content.decode()


def test_a_provider_that_is_away_is_told(client: Client, provider: Provider, settings: LazySettings) -> None:
    change_provider(settings, issuer="http://127.0.0.1:1")
    answer = client.post("/sign-in/provider/")
    assert answer.status_code == 502
    assert "Example can&#x27;t be reached just now" in answer.content.decode()


def test_an_issuer_over_tls_names_no_plain_addresses(
    client: Client, provider: Provider, settings: LazySettings
) -> None:
    provider.described = {"authorization_endpoint": "javascript:alert(1)"}
    assert client.post("/sign-in/provider/").status_code == 502


@pytest.mark.parametrize(
    ("person", "allowed", "sentence"),
    [
        ({"email": "ada@evil.example"}, {"allowed_domains": frozenset({"example.org"})}, "of no domain"),
        ({"email_verified": False}, {"allowed_domains": frozenset({"example.org"})}, "verified your e-mail"),
        (
            {"email": "ada@example.org@evil.example"},
            {"allowed_domains": frozenset({"example.org"})},
            "domain",
        ),
        ({"groups": ["sales"]}, {"allowed_groups": frozenset({"training"})}, "You are in no group"),
        ({"groups": None}, {"allowed_groups": frozenset({"training"})}, "You are in no group"),
    ],
)
def test_who_is_not_allowed_gets_one_sentence(
    client: Client,
    provider: Provider,
    settings: LazySettings,
    person: dict[str, Any],
    allowed: dict[str, Any],
    sentence: str,
) -> None:
    change_provider(settings, **allowed)
    provider.person = {**VERIFIED, **person}
    answer = sign_in_by(client)
    assert (answer.status_code, sentence in answer.content.decode()) == (403, True)
    assert not User.objects.exists()


def test_who_is_not_allowed_any_more_is_refused(
    client: Client, provider: Provider, settings: LazySettings
) -> None:
    provider.person = {**VERIFIED, "groups": ["training"]}
    change_provider(
        settings, allowed_groups=frozenset({"training"}), allowed_domains=frozenset({"example.org"})
    )
    sign_in_by(client)
    provider.person["groups"] = ["sales"]
    assert sign_in_by(Client()).status_code == 403


def test_administrators_are_who_is_in_their_group(
    client: Client, provider: Provider, settings: LazySettings
) -> None:
    change_provider(settings, admin_group="admins")
    for groups, expected in (["admins"], True), (["training"], False), ("admins", True), ([], False):
        provider.person = {**VERIFIED, "groups": groups}
        sign_in_by(Client())
        made = User.objects.get()
        assert (made.is_superuser, made.is_staff) == (expected, expected)


def test_without_such_a_group_nobody_loses_what_they_are(client: Client, provider: Provider) -> None:
    sign_in_by(client)
    User.objects.update(is_superuser=True)
    sign_in_by(Client())
    assert User.objects.get().is_superuser


def test_an_account_is_linked_by_who_is_signed_in(client: Client, provider: Provider, ada: User) -> None:
    sign_in(client)
    assert sign_in_by(client, process="connect")["Location"] == "/account/"
    assert SocialAccount.objects.get().user == ada
    other = Client()
    sign_in_by(other)
    assert is_signed_in(other)
    assert User.objects.count() == 1
    assert "You sign in here with Example" in other.get("/account/").content.decode()


def test_another_issuer_means_other_people(
    client: Client, provider: Provider, settings: LazySettings
) -> None:
    sign_in_by(client)
    SocialAccount.objects.update(provider=replace(settings.PACELINE_OIDC, issuer="https://x").provider_id)
    sign_in_by(Client())
    assert User.objects.count() == 2


def test_who_signs_in_by_the_provider_gets_no_password_by_mail(client: Client, provider: Provider) -> None:
    from django.core import mail

    provider.person = VERIFIED
    sign_in_by(client)
    Client().post("/account/password/reset/", {"email": "ada@example.org"})
    assert mail.outbox == []


def test_the_providers_second_factor_counts_unless_it_has_none(
    client: Client, provider: Provider, settings: LazySettings
) -> None:
    settings.PACELINE_REQUIRE_SECOND_FACTOR = "all"
    assert sign_in_by(client)["Location"] == "/"
    change_provider(settings, has_second_factor=False)
    assert sign_in_by(Client())["Location"] == "/account/second-factor/set-up/"


def test_a_password_still_signs_in(client: Client, provider: Provider, ada: User) -> None:
    sign_in(client, password=PASSWORD)
    assert is_signed_in(client)


def test_a_refusal_can_be_recorded(client: Client, provider: Provider) -> None:
    heard: list[dict[str, str]] = []

    def hear_failure(credentials: dict[str, str], **_: object) -> None:
        heard.append(credentials)

    user_login_failed.connect(hear_failure)
    client.get("/sign-in/provider/answer/", {"state": "none", "code": "none"})
    user_login_failed.disconnect(hear_failure)
    assert heard == [{"provider": "Example"}]


@pytest.mark.django_db
def test_without_a_provider_there_is_no_such_page(client: Client) -> None:
    assert client.post("/sign-in/provider/").status_code == 404
    assert client.get("/sign-in/provider/answer/").status_code == 404
    assert "Sign in with" not in client.get("/sign-in/").content.decode()
