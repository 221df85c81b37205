"""A project with an admin, and clients that bear the tokens of that person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from dashboard.access import Visitor, make_token
from dashboard.models import Project
from tests.dashboard.access.conftest import create_member
from tests.pages import builders

API = "/api/v1"
ACTIONS = ("view", "operate", "administer")


@pytest.fixture(autouse=True)
def _unlimited(settings: LazySettings) -> None:
    settings.PACELINE_RATES = {}


@pytest.fixture
def project(db: None) -> Project:
    return builders.create_project("snake")


@pytest.fixture
def admin(project: Project) -> User:
    return create_member("ada", "admin", project)


@pytest.fixture
def bearing(project: Project, admin: User) -> Callable[..., Client]:
    """A client with a token of the admin that may do what is named; everything, where nothing is."""

    def make_client(*actions: str) -> Client:
        token = make_token(Visitor(admin), project, "script", actions or ACTIONS)[1]
        return Client(headers={"Authorization": f"Bearer {token}"})

    return make_client


@pytest.fixture
def script(bearing: Callable[..., Client]) -> Client:
    """With a token that may do everything in the project."""
    return bearing()


def post_json(client: Client, address: str, **body: Any) -> Any:
    return client.post(API + address, body, "application/json")
