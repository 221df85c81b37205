"""How long PostgreSQL may prepare a query: what pages ask takes a few milliseconds itself.

Pages read a row with what it belongs to: a dozen joins by key, whose order matters little. By default all
orders of eight of them are weighed, which takes longer than the rest of the page. Beyond a few the order is
that in which the query is written, which begins at what it lists. Nor is a query compiled: where many parts
are written and few are reached, the compiler took longer than all rows. What is prepared is planned once for
each connection (dashboard/postgresql/prepared_statements.py).
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

MOST_WEIGHED_JOINS = 4


def limit_planning(connection: BaseDatabaseWrapper, **_signal: Any) -> None:
    """Receiver of `connection_created`: poolers refuse options of a connection that they don't know."""
    with connection.cursor() as cursor:
        for name in ("join_collapse_limit", "from_collapse_limit"):
            cursor.execute(f"SET {name} = {MOST_WEIGHED_JOINS}")
        cursor.execute("SET jit = off")
        # What is prepared is planned once, for any values; else it would be planned anew five times.
        cursor.execute("SET plan_cache_mode = force_generic_plan")


def connect_limit() -> None:
    connection_created.connect(limit_planning, dispatch_uid="query_planning.limit")
