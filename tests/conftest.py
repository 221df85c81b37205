"""What tests of several rooms share. The database and the queue come from tests/services_plugin.py."""

from __future__ import annotations

import os

import pytest
from django.db import connection


@pytest.fixture
def site_environment(transactional_db: None) -> dict[str, str]:
    """The environment of a child process that works on this test's database and queue."""
    settings = connection.settings_dict
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql:///{settings['NAME']}?host={settings['HOST']}&user={settings['USER']}",
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
