"""Passwords: changing them, links to set them, and where one is signed in."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.core import mail
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from dashboard.accounts.links import password_link
from tests.dashboard.accounts.conftest import PASSWORD, is_signed_in, sign_in

NEW = "another long secret"
SMTP = "django.core.mail.backends.smtp.EmailBackend"


def path_of(link: str) -> str:
    return urlsplit(link).path


def set_password(client: Client, link: str, password: str = NEW) -> str:
    """What is said then."""
    form = client.get(path_of(link), follow=True)
    assert re.search(r"For the account <strong>\w+</strong>\.", form.content.decode())
    asked = {"password1": password, "password2": password}
    page = client.post(
        form.redirect_chain[-1][0] if form.redirect_chain else path_of(link), asked, follow=True
    )
    return " ".join(str(message) for message in page.context["messages"])


def test_a_new_session_begins_with_a_sign_in(client: Client, ada: User) -> None:
    planted = client.session
    planted["planted"] = True
    planted.save()
    client.cookies["sessionid"] = planted.session_key
    sign_in(client)
    assert client.session.session_key != planted.session_key
    assert client.session.get_expiry_age() == 14 * 86_400


def test_a_changed_password_ends_all_other_sessions(client: Client, ada: User) -> None:
    other = Client()
    sign_in(client)
    sign_in(other)
    asked = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    answer = client.post("/account/password/", asked)
    assert answer["Location"] == "/account/"
    assert "Your password is changed; all other sessions have ended." in client.get("/account/").text
    assert (is_signed_in(client), is_signed_in(other)) == (True, False)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"oldpassword": "a guess"}, "Please type your current password."),
        ({"password2": "something else"}, "You must type the same password each time."),
        ({"password1": "short", "password2": "short"}, "This password is too short."),
    ],
)
def test_a_refused_password_is_told(client: Client, ada: User, asked: dict[str, str], sentence: str) -> None:
    sign_in(client)
    page = client.post(
        "/account/password/", {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW, **asked}
    )
    assert sentence in page.content.decode()
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


def test_other_sessions_are_listed_and_ended(client: Client, ada: User) -> None:
    other = Client(headers={"User-Agent": "Lynx"})
    sign_in(client)
    sign_in(other)
    assert "Lynx" in client.get("/account/").content.decode()
    answer = client.post("/account/sessions/", follow=True)
    assert answer.redirect_chain == [("/account/", 302)]
    assert "You are signed out everywhere else." in answer.content.decode()
    assert client.get("/account/sessions/")["Location"] == "/account/"
    assert (is_signed_in(client), is_signed_in(other)) == (True, False)
    assert "Lynx" not in client.get("/account/").content.decode()


def test_a_link_sets_a_password_once(client: Client, ada: User) -> None:
    link = password_link(ada)
    set_password(client, link)
    ada.refresh_from_db()
    assert ada.check_password(NEW)
    assert "This link has been used" in Client().get(path_of(link)).content.decode()


def test_a_first_password_ends_nothing(client: Client, db: None) -> None:
    bob = User.objects.create_user("bob")
    assert set_password(client, password_link(bob)) == "Your password is set: sign in with it."
    bob.refresh_from_db()
    assert "all sessions of your account have ended" in set_password(client, password_link(bob))


def test_a_password_beside_a_provider_ends_its_sessions(client: Client, db: None) -> None:
    bob = User.objects.create_user("bob", last_login=timezone.now())
    client.force_login(bob)
    bob.refresh_from_db()
    assert "all sessions of your account have ended" in set_password(Client(), password_link(bob))
    assert not is_signed_in(client)


def test_a_link_is_good_for_a_day(client: Client, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    link = password_link(ada)
    later = timezone.now().replace(tzinfo=None) + timedelta(days=1, minutes=1)
    monkeypatch.setattr("django.contrib.auth.tokens.PasswordResetTokenGenerator._now", lambda _: later)
    assert "older than a day" in client.get(path_of(link)).content.decode()


@override_settings(EMAIL_URL="smtp://mail.example.org")
def test_a_forgotten_password_is_set_by_mail(client: Client, ada: User, settings: LazySettings) -> None:
    settings.PACELINE_URL = "https://pace.example.org"
    assert client.post("/account/password/reset/", {"email": "ADA@example.org"}).status_code == 302
    (message,) = mail.outbox
    assert (message.subject, message.to) == ("Paceline: a new password", ["ada@example.org"])
    link = re.search(r"https://pace\.example\.org/\S+", str(message.body))
    assert link is not None
    settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    set_password(client, link[0])
    ada.refresh_from_db()
    assert ada.check_password(NEW)
    told = mail.outbox[-1]
    assert told.subject == "Paceline: your password was set"
    assert (
        "was changed:\n\nits password was set by a link that was made for it.\n\nIt was done from"
        in told.body
    )


def test_nobody_learns_whose_address_has_an_account(client: Client, ada: User) -> None:
    known, unknown = (
        client.post("/account/password/reset/", {"email": f"{name}@example.org"}, follow=True)
        for name in ("ada", "nobody")
    )
    assert known.redirect_chain == unknown.redirect_chain
    assert [message.to for message in mail.outbox] == [["ada@example.org"]]


def test_where_no_mail_is_sent_an_administrator_makes_the_link(client: Client, ada: User) -> None:
    with override_settings(EMAIL_BACKEND="django.core.mail.backends.console.EmailBackend"):
        assert "ask an administrator for a link" in client.get("/account/password/reset/").content.decode()
        client.post("/account/password/reset/", {"email": "ada@example.org"})
    assert mail.outbox == []


def test_there_is_no_sign_up(client: Client, db: None) -> None:
    assert client.get("/account/signup/").status_code == 404
    assert "Sign up" not in client.get("/sign-in/").content.decode()


def test_a_closed_account_is_told_so(client: Client, ada: User) -> None:
    User.objects.update(is_active=False)
    assert sign_in(client)["Location"] == reverse("account_inactive")
    assert "is closed" in client.get("/account/inactive/").content.decode()
    assert not is_signed_in(client)


def test_what_can_be_recorded_is_signalled(client: Client, ada: User) -> None:
    heard: list[str] = []

    def hear_success(user: User, **_: object) -> None:
        heard.append(f"in: {user.username}")

    def hear_failure(credentials: dict[str, str], **_: object) -> None:
        heard.append(f"failed: {credentials['username']}")

    user_logged_in.connect(hear_success)
    user_login_failed.connect(hear_failure)
    sign_in(client, password="a guess")
    sign_in(client)
    user_logged_in.disconnect(hear_success)
    user_login_failed.disconnect(hear_failure)
    assert heard == ["failed: ada", "in: ada"]


def test_the_administration_has_no_door_of_its_own(client: Client, ada: User) -> None:
    assert client.get("/admin/", follow=True).redirect_chain[-1][0] == "/sign-in/?next=/admin/"
    posted = client.post("/admin/login/", {"username": "ada", "password": PASSWORD})
    assert posted["Location"].startswith("/sign-in/")
    sign_in(client)
    assert client.get("/admin/", follow=True).status_code == 403


@pytest.mark.parametrize(
    ("asked", "led"),
    [
        ("/regressions/?state=all", "/regressions/?state=all"),
        ("http://testserver/regressions/", "http://testserver/regressions/"),
        # In ALLOWED_HOSTS, for who sits at the site's machine.
        ("http://localhost/x", "/"),
        ("//elsewhere.example.org/", "/"),
        ("https:elsewhere.example.org", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_signing_in_leads_to_this_site_alone(client: Client, ada: User, asked: str, led: str) -> None:
    assert sign_in(client, next=asked)["Location"] == led


@pytest.mark.parametrize("where", ["/account/", "/account/password/", "/account/second-factor/set-up/"])
def test_an_account_is_for_who_is_signed_in(client: Client, db: None, where: str) -> None:
    assert client.get(where, follow=True).redirect_chain[-1][0].startswith("/sign-in/?next=")
