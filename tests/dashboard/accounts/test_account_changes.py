"""What an administrator of the site does to accounts, each act in the audit log."""

from __future__ import annotations

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.test import Client

from dashboard.access import Visitor
from dashboard.accounts import account_changes
from dashboard.accounts.account_changes import AccountError
from dashboard.models import AuditEntry
from dashboard.sentences.administration.audit import describe_entry
from tests.dashboard.accounts.conftest import is_signed_in, set_up_second_factor, sign_in

pytestmark = pytest.mark.django_db

NOBODY = Visitor()


def told_changes() -> list[str]:
    rows = AuditEntry.objects.filter(action__startswith="account").order_by("pk")
    return [describe_entry(entry) for entry in rows]


def invite_person(name: str, email: str = "", *permissions: str, administrator: bool = False) -> User:
    return account_changes.invite_account(
        NOBODY, name, email, administrator=administrator, permissions=permissions
    )


def test_who_is_invited_may_do_what_was_chosen() -> None:
    eve = User.objects.get(pk=invite_person(" eve ", "eve@example.org", "add_project").pk)
    assert (eve.username, eve.email, eve.has_usable_password()) == ("eve", "eve@example.org", False)
    assert eve.has_perm("dashboard.add_project")
    assert not eve.has_perm("dashboard.add_machine")
    assert told_changes() == ["made the account eve, on the whole site: add project"]


@pytest.mark.parametrize(
    ("name", "email", "permissions", "field", "sentence"),
    [
        ("Ada", "", (), "name", "There is an account Ada already."),
        # The same letters in other characters of Unicode.
        ("\uff41\uff44\uff41", "", (), "name", "There is an account ada already."),
        ("two words", "", (), "name", "Name: Enter a valid username."),
        ("a\0b", "", (), "name", "Name: Enter a valid username."),
        ("", "", (), "name", "Name: This field cannot be blank."),
        ("x" * 300, "", (), "name", "Name: Ensure this value has at most 150 characters (it has 300)."),
        ("eve", "nowhere", (), "email", "E-mail address: Enter a valid email address."),
        (
            "eve",
            f"eve@{'e' * 63}.{'e' * 63}.{'e' * 63}.{'e' * 60}.org",
            (),
            "email",
            "E-mail address: Ensure",
        ),
        ("eve", "", ("delete_run",), "permissions", "Permissions: they must be among add_project, "),
    ],
)
def test_what_can_be_no_account_is_told_at_its_field(
    ada: User, name: str, email: str, permissions: tuple[str, ...], field: str, sentence: str
) -> None:
    with pytest.raises(AccountError) as refused:
        invite_person(name, email, *permissions)
    assert (refused.value.field, str(refused.value)[: len(sentence)]) == (field, sentence)
    assert User.objects.get() == ada


def test_rights_are_given_and_taken(ada: User, admin_user: User) -> None:
    account_changes.change_rights(NOBODY, ada, administrator=True, permissions=())
    ada.refresh_from_db()
    assert (ada.is_superuser, ada.is_staff) == (True, True)
    account_changes.change_rights(NOBODY, ada, administrator=False, permissions=["add_triage"])
    fresh = User.objects.get(pk=ada.pk)
    assert (fresh.is_superuser, fresh.is_staff) == (False, False)
    assert fresh.get_user_permissions() == {"dashboard.add_triage"}
    assert told_changes()[-1] == "gave ada these rights: on the whole site: add triage"


def test_other_permissions_of_django_stay(ada: User) -> None:
    other = account_changes.Permission.objects.get(codename="view_run")
    ada.user_permissions.add(other)
    account_changes.change_rights(NOBODY, ada, administrator=False, permissions=())
    assert list(ada.user_permissions.all()) == [other]


def test_the_last_administrator_stays(admin_user: User) -> None:
    User.objects.create_superuser("gone", is_active=False)
    with pytest.raises(AccountError, match="grace is the last administrator"):
        account_changes.change_rights(NOBODY, admin_user, administrator=False, permissions=())
    with pytest.raises(AccountError, match="grace is the last administrator"):
        account_changes.close_account(NOBODY, admin_user)
    admin_user.refresh_from_db()
    assert (admin_user.is_superuser, admin_user.is_active) == (True, True)


def test_closing_ends_the_sessions(client: Client, ada: User) -> None:
    sign_in(client)
    account_changes.close_account(NOBODY, ada)
    assert not is_signed_in(client)
    assert sign_in(Client()).url == "/account/inactive/"
    account_changes.open_account(NOBODY, ada)
    assert not is_signed_in(client)
    sign_in(client)
    assert is_signed_in(client)
    assert told_changes() == ["closed the account ada", "opened again the account ada"]


def test_an_account_gets_another_name_and_keeps_the_rest(client: Client, ada: User, admin_user: User) -> None:
    assert account_changes.change_details(NOBODY, ada, "Ada", "a@example.org") == ["name", "email"]
    sign_in(client, "Ada")
    assert is_signed_in(client)
    assert told_changes() == ["changed name and email of ada, now Ada"]
    with pytest.raises(AccountError, match="There is an account grace already"):
        account_changes.change_details(NOBODY, ada, "grace", "")


def test_a_second_factor_and_a_provider_are_taken_away(client: Client, ada: User) -> None:
    sign_in(client)
    set_up_second_factor(client)
    SocialAccount.objects.create(user=ada, provider="oidc", uid="1")
    assert account_changes.take_second_factor(NOBODY, ada)
    assert account_changes.unlink_provider(NOBODY, ada)
    assert not account_changes.take_second_factor(NOBODY, ada)
    assert not account_changes.unlink_provider(NOBODY, ada)
    assert told_changes() == ["reset the second factor of ada", "unlinked from its provider the account ada"]


def test_a_closed_account_gets_no_link(ada: User) -> None:
    assert "/account/password/new/" in account_changes.give_password_link(NOBODY, ada)
    account_changes.close_account(NOBODY, ada)
    ada.refresh_from_db()
    with pytest.raises(AccountError, match="ada is closed"):
        account_changes.give_password_link(NOBODY, ada)
