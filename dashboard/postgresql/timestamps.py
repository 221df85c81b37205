"""Moments as PostgreSQL writes them, read by Python's own parser of ISO 8601.

psycopg takes each apart with a regular expression, and Django changes its time zone: that takes seven times
as long, and a page of a series has three hundred of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader


class IsoTimestampLoader(TimestamptzLoader):
    # Django asks for it: of another time zone than the connection's it would register its own loader again.
    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        try:
            moment = datetime.fromisoformat(bytes(data).decode())
        except ValueError:
            # `infinity`, or a year that Python doesn't know: psycopg's error says so.
            moment = super().load(data)
        return moment.astimezone(UTC)


def register_loader(connection: BaseDatabaseWrapper, **_signal: Any) -> None:
    """Receiver of `connection_created`."""
    connection.connection.adapters.register_loader("timestamptz", IsoTimestampLoader)


def connect_loader() -> None:
    connection_created.connect(register_loader, dispatch_uid="timestamps.register")
