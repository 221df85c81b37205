"""What the tests of pages share: a signed-in client."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create_superuser("ada", "ada@example.org", "a long secret")


@pytest.fixture
def signed_in(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client
