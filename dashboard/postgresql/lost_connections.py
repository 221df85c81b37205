"""Whether an error of the database says that it is away, or that what was asked of it is wrong."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import InterfaceError, OperationalError, connection

# Of SQLSTATE: the server is shutting down or starting, or has no connection left.
NO_CONNECTION = frozenset({"57P01", "57P02", "57P03", "53300"})
MARK = "is_connection_lost"


def mark_error(error: psycopg.Error, used: psycopg.Connection[Any] | None) -> None:
    """Note beside an error of the driver whether the connection is gone that it was raised of."""
    error.__dict__[MARK] = used is None or used.closed


def is_database_away(error: BaseException | None) -> bool:
    """Whether a connection is missing: a statement that took too long, or a deadlock, is another failure."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    cause = error.__cause__
    if cause is None:
        # Django's own: of a connection that it has closed.
        return connection.connection is None or bool(connection.connection.closed)
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return state in NO_CONNECTION or str(state).startswith("08")
    # The client's own: of a connection that is still open, that it can't send what it is given.
    return isinstance(cause, psycopg.errors.ConnectionTimeout) or bool(cause.__dict__.get(MARK))


def is_refused_by_driver(error: BaseException | None) -> bool:
    """Whether what was asked never reached the database, though the connection is there; nor will it."""
    cause = error.__cause__ if isinstance(error, OperationalError | InterfaceError) else None
    return isinstance(cause, psycopg.Error) and cause.sqlstate is None and not is_database_away(error)
