"""What each kind of visitor may do."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dashboard.access import Action, Visitor, make_token
from dashboard.models import Membership, Project
from tests.dashboard.access.conftest import create_member, create_permitted
from tests.pages import builders

pytestmark = pytest.mark.django_db

ALL = ["view", "operate", "administer"]


def allowed_actions(visitor: Visitor, project: Project) -> list[str]:
    return [action for action in ALL if visitor.may(action, project)]


@pytest.mark.parametrize(("role", "most"), [("viewer", 1), ("operator", 2), ("admin", 3)])
def test_a_role_is_of_one_project(public: Project, private: Project, role: str, most: int) -> None:
    visitor = Visitor(create_member("ada", role, private))
    assert allowed_actions(visitor, private) == ALL[:most]
    assert allowed_actions(visitor, public) == ["view"]
    assert not visitor.may(Action.ADMINISTER_SITE)
    assert set(visitor.visible_projects()) == {public, private}


def test_who_has_no_role_sees_what_is_public(public: Project, private: Project) -> None:
    for visitor in (Visitor(), Visitor(User.objects.create_user("eve"))):
        assert allowed_actions(visitor, public) == ["view"]
        assert allowed_actions(visitor, private) == []
        assert list(visitor.visible_projects()) == [public]


def test_a_superuser_may_do_everything(private: Project) -> None:
    visitor = Visitor(User.objects.create_superuser("root"))
    assert allowed_actions(visitor, private) == ALL
    assert visitor.may(Action.ADMINISTER_SITE)
    assert list(visitor.visible_projects()) == [private]


def test_who_may_request_runs_by_permission_operates_everywhere(private: Project) -> None:
    visitor = Visitor(create_permitted("grace", "add_trigger"))
    assert allowed_actions(visitor, private) == ["view", "operate"]
    assert list(visitor.visible_projects()) == [private]


def test_who_may_triage_by_permission_does_so_where_they_may_look(public: Project, private: Project) -> None:
    visitor = Visitor(create_permitted("grace", "add_triage"))
    triages = [visitor.may("operate", project, "dashboard.add_triage") for project in (public, private)]
    assert triages == [True, False]
    # Measuring executes code on the machines: that is another permission.
    assert not visitor.may("operate", public)


def test_a_closed_account_may_what_anybody_may(public: Project, private: Project) -> None:
    user = create_member("ada", "admin", public, private)
    user.is_active = False
    assert allowed_actions(Visitor(user), public) == ["view"]
    assert allowed_actions(Visitor(user), private) == []


def test_a_token_is_bound_to_its_project_and_actions(public: Project, private: Project) -> None:
    maker = create_member("ada", "admin", public, private)
    visitor = Visitor(maker, make_token(Visitor(maker), private, "nightly", ["operate"])[0])
    assert allowed_actions(visitor, private) == ["view", "operate"]
    # As anybody may, without a token.
    assert allowed_actions(visitor, public) == ["view"]
    assert list(visitor.visible_projects()) == [private]


def test_a_token_loses_what_its_maker_loses(private: Project) -> None:
    maker = create_member("ada", "admin", private)
    token = make_token(Visitor(maker), private, "nightly", ALL)[0]
    Membership.objects.update(role="viewer")
    assert allowed_actions(Visitor(maker, token), private) == ["view"]
    Membership.objects.all().delete()
    assert allowed_actions(Visitor(maker, token), private) == []
    assert not Visitor(maker, token).visible_projects().exists()


def test_no_token_administers_the_site(public: Project) -> None:
    root = User.objects.create_superuser("root")
    token = make_token(Visitor(root), public, "nightly", ALL)[0]
    assert not Visitor(root, token).may(Action.ADMINISTER_SITE)
    assert not Visitor(root, token).may(Action.ADMINISTER_SITE, public)
    assert builders.create_project("other") not in Visitor(root, token).visible_projects()
