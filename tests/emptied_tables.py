"""Empties the database after a test that committed: only the tables that hold rows, in one statement."""

from __future__ import annotations

from django.db import connection, transaction
from django.test import TransactionTestCase

# What `migrate` itself puts there after each migration; no test changes it.
KEPT = {"django_migrations", "django_content_type", "auth_permission"}


def empty_tables() -> None:
    """Delete all rows of all models. Sequences go on, as they do after Django's own flush."""
    names = set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT
    quoted = [connection.ops.quote_name(name) for name in sorted(names)]
    looks = (f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in quoted)  # noqa: S608
    # One transaction: the keys between them are looked at when all are empty.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(looks))
        filled = [name for (name,) in cursor.fetchall()]
        if filled:
            cursor.execute("; ".join(f"DELETE FROM {name}" for name in filled))  # noqa: S608


def empty_after_tests() -> None:
    """In place of Django's flush, which truncates every table and writes all permissions again."""

    def teardown(_: TransactionTestCase) -> None:
        empty_tables()

    TransactionTestCase._fixture_teardown = teardown
