"""A public and a private project, and people with each role in them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User

from dashboard.models import Membership, Project
from tests.pages import builders

PASSWORD = "a long secret"


@pytest.fixture
def public(db: None) -> Project:
    return builders.create_project("snake")


@pytest.fixture
def private(db: None) -> Project:
    return builders.create_project("hidden-snake", visibility=Project.Visibility.PRIVATE)


def create_member(name: str, role: str, *projects: Project) -> User:
    """A person with this role in each of the projects."""
    user = User.objects.create_user(name, password=PASSWORD)
    Membership.objects.bulk_create(Membership(user=user, project=project, role=role) for project in projects)
    return user


def create_permitted(name: str, *codenames: str) -> User:
    """A person with permissions of Django's and no role."""
    user = User.objects.create_user(name)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user
