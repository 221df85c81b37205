"""Empties the database after a test that committed: only the tables that hold rows, in one statement.

By a connection of its own, which stays: in a test's new one it takes PostgreSQL longer to open each table for
the first time than most tests take.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import psycopg
from django.db import connection
from django.test import TransactionTestCase

# What `migrate` itself puts there after each migration; no test changes it.
KEPT = {"django_migrations", "django_content_type", "auth_permission"}


@cache
def own_connection() -> psycopg.Connection[Any]:
    """What a test has left locked is an error, nothing to wait for."""
    parameters = {**connection.get_connection_params(), "options": "-c lock_timeout=30s"}
    return psycopg.connect(**parameters, autocommit=True)


@cache
def table_names() -> list[str]:
    """Quoted, of all models that have a table."""
    names = set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT
    return [connection.ops.quote_name(name) for name in sorted(names)]


def empty_tables() -> None:
    """Delete all rows of all models. Sequences go on, as they do after Django's own flush."""
    looks = (f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in table_names())  # noqa: S608
    own = own_connection()
    # One transaction: the keys between them are looked at when all are empty.
    with own.transaction():
        filled = own.execute(" UNION ALL ".join(looks), prepare=True).fetchall()
        if filled:
            own.execute("; ".join(f"DELETE FROM {name}" for (name,) in filled))  # noqa: S608


def remove_dead_revisions() -> None:
    """Of tests that were rolled back: each page reads the whole table of revisions, and each write fills it.

    A hundred thousand of them would cost each page more than a millisecond.
    """
    own_connection().execute("VACUUM dashboard_revision")


def empty_after_tests() -> None:
    """In place of Django's flush, which truncates every table and writes all permissions again."""

    def teardown(_: TransactionTestCase) -> None:
        empty_tables()

    TransactionTestCase._fixture_teardown = teardown
    own_connection()


def is_emptying() -> bool:
    return bool(own_connection.cache_info().currsize)


def end_emptying() -> None:
    """Before the database is dropped."""
    if own_connection.cache_info().currsize:
        own_connection().close()
    own_connection.cache_clear()
