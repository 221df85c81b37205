"""What tests of several rooms share. The database and the queue come from tests/services_plugin.py."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count

import pytest
from django.conf import settings
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from tests import emptied_tables


def pytest_configure() -> None:
    """Passwords are hashed fast: a hash that is safe takes half a second, and hundreds of tests sign in.

    What a test changes beside the database, no page of another test may hide. And a shell that starts the
    suite in the background has it ignore Ctrl-C, which all that tests start and interrupt would inherit.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.HANDED_PAGES = None


# Of which few fill the table of revisions with so much that a page would notice.
TESTS_BETWEEN = 50
finished_tests = count(1)


def pytest_runtest_logfinish() -> None:
    if next(finished_tests) % TESTS_BETWEEN == 0 and emptied_tables.is_emptying():
        emptied_tables.remove_dead_revisions()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database of the tests, emptied after those that commit."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        # To compress a document takes PostgreSQL longer than all else that most tests ask of it.
        cursor.execute("ALTER TABLE dashboard_document ALTER body SET STORAGE EXTERNAL")
    emptied_tables.empty_after_tests()
    yield
    emptied_tables.end_emptying()


@pytest.fixture
def site_environment(transactional_db: None) -> dict[str, str]:
    """The environment of a child process that works on this test's database and queue."""
    database = connection.settings_dict
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql:///{database['NAME']}?host={database['HOST']}&user={database['USER']}",
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
