from __future__ import annotations

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from tests.dashboard.accounts.conftest import PASSWORD, sign_in
from tests.dashboard.accounts.test_passwords import NEW, path_of, set_password

pytestmark = pytest.mark.django_db


def type_passwords(monkeypatch: pytest.MonkeyPatch, *typed: str) -> None:
    answers = iter(typed)
    monkeypatch.setattr("getpass.getpass", lambda _: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)


def test_a_link_is_printed_where_nobody_types(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("add_user", "ada", "--email", "ada@example.org", "--link")
    link = capsys.readouterr().out.split()[-1]
    made = User.objects.get()
    assert (made.email, made.is_superuser, made.has_usable_password()) == ("ada@example.org", False, False)
    set_password(client, path_of(link))
    assert sign_in(client, password=NEW)["Location"] == "/"


def test_at_a_terminal_it_asks(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    type_passwords(monkeypatch, "short", "short", PASSWORD, "a slip", PASSWORD, PASSWORD)
    call_command("add_user", "grace", "--admin")
    made = User.objects.get()
    assert made.check_password(PASSWORD)
    assert (made.is_staff, made.is_superuser) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["Ada"], "There is an account Ada already: manage.py password_link Ada"),
        (["a name"], "NAME: Enter a valid username."),
        (["bob", "--email", "bob"], "email: Enter a valid email address."),
    ],
)
def test_a_wrong_account_is_refused_in_one_sentence(ada: User, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("add_user", *arguments, "--link")
    assert User.objects.count() == 1


def test_a_link_for_a_new_password(client: Client, ada: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("password_link", "ada")
    assert ada.check_password(PASSWORD)
    set_password(client, path_of(capsys.readouterr().out.strip()))
    assert sign_in(client, password=NEW)["Location"] == "/"


@pytest.mark.parametrize("command", ["password_link", "reset_second_factor"])
def test_an_unknown_account_is_told(command: str) -> None:
    with pytest.raises(CommandError, match="There is no account 'ada': manage"):
        call_command(command, "ada")


def test_the_administration_shows_no_key(client: Client, ada: User, admin_user: User) -> None:
    made = Authenticator.objects.create(user=ada, type="totp", data={"secret": "a kept key"})
    client.force_login(admin_user)
    page = client.get(f"/admin/mfa/authenticator/{made.pk}/change/")
    assert page.status_code == 200
    assert "a kept key" not in page.content.decode()
    assert client.get("/admin/socialaccount/socialapp/").status_code == 404
