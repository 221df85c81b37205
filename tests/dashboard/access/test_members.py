"""Roles are given, changed and taken; the last admin stays."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dashboard.access import AccessError, Visitor
from dashboard.access.members import add_member, change_role, remove_member
from dashboard.models import AuditEntry, Membership, Project
from tests.dashboard.access.conftest import create_member

pytestmark = pytest.mark.django_db

NOBODY = Visitor()


@pytest.fixture
def admin(private: Project) -> Membership:
    create_member("ada", "admin", private)
    return private.memberships.get()


def test_a_member_is_added_changed_and_removed(private: Project) -> None:
    User.objects.create_user("eve")
    member = add_member(NOBODY, private, " eve ", "viewer")
    change_role(NOBODY, member, "operator")
    assert private.memberships.get().role == "operator"
    # Again is no news.
    change_role(NOBODY, member, "operator")
    remove_member(NOBODY, member)
    assert not private.memberships.exists()
    recorded = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert recorded == ["member added", "member changed", "member removed"]


@pytest.mark.parametrize(
    ("name", "role", "sentence"),
    [
        ("nobody", "viewer", "name: there is no account 'nobody'."),
        ("\0", "viewer", "name: there is no account"),
        ("ada", "viewer", "name: ada is a member already"),
        ("ada", "king", "role: must be one of viewer, operator, admin."),
        ("gone", "viewer", "name: there is no account 'gone'."),
    ],
)
def test_who_can_not_be_added_is_told(
    private: Project, admin: Membership, name: str, role: str, sentence: str
) -> None:
    User.objects.create_user("gone", is_active=False)
    with pytest.raises(AccessError, match=f"^{sentence}"):
        add_member(NOBODY, private, name, role)
    assert private.memberships.count() == 1


def test_the_last_admin_stays(private: Project, admin: Membership) -> None:
    with pytest.raises(AccessError, match="ada is the last admin"):
        remove_member(NOBODY, admin)
    with pytest.raises(AccessError, match="ada is the last admin"):
        change_role(NOBODY, admin, "viewer")
    assert private.memberships.get().role == "admin"
    assert not AuditEntry.objects.exists()


def test_a_closed_account_is_no_other_admin(private: Project, admin: Membership) -> None:
    other = create_member("eve", "admin", private)
    User.objects.filter(pk=other.pk).update(is_active=False)
    with pytest.raises(AccessError, match="ada is the last admin"):
        remove_member(NOBODY, admin)
    # The closed one may go.
    remove_member(NOBODY, private.memberships.get(user=other))
    assert private.memberships.get() == admin


def test_one_of_two_admins_may_go(private: Project, admin: Membership) -> None:
    create_member("eve", "admin", private)
    remove_member(NOBODY, admin)
    assert str(private.memberships.get().user) == "eve"
