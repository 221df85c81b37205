from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import Project
from tests.dashboard.access.conftest import create_member


@pytest.fixture
def admin(client: Client, project: Project) -> User:
    """Of the project, not of the site; signed in."""
    user = create_member("ada", "admin", project)
    client.force_login(user)
    return user
