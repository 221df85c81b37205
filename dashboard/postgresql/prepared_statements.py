"""Statements that PostgreSQL plans once for each connection, where it would plan them at each question.

A dozen joins take PostgreSQL longer to plan than to answer. A prepared statement is planned for any values,
by `plan_cache_mode` (dashboard/postgresql/query_planning.py), and stays when a transaction is rolled back
(dashboard/postgresql/backend/base.py). Behind a pooler that hands each transaction another connection it
isn't there any more: PACELINE_PREPARED_STATEMENTS turns it off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from psycopg.pq import TransactionStatus

# Questions after which psycopg would prepare what nobody asked it to.
NEVER_BY_ITSELF = 10**9
# So many are kept in a connection: all pages have some 170 for two kinds of visitors, and of psycopg's own
# hundred one would be thrown away for each that comes. In PostgreSQL each takes a quarter of a megabyte.
MOST_PREPARED = 250


# PostgreSQL's function that refuses a plan whose answer would have other columns than before.
REVALIDATION = "RevalidateCachedQuery"


class OutdatedPlan(psycopg.OperationalError):
    """A table has got other columns since the statement was prepared: asked once more it is answered."""

    sqlstate = psycopg.errors.FeatureNotSupported.sqlstate


class PreparingCursor(psycopg.Cursor[Any]):
    """Prepares what it runs; psycopg keeps the statements of a connection that were used last."""

    is_binary = False

    def execute(self, query: Any, params: Any = None, **_options: Any) -> PreparingCursor:
        try:
            return super().execute(query, params, prepare=True, binary=self.is_binary)
        except psycopg.errors.FeatureNotSupported as error:
            if error.diag.source_function != REVALIDATION:
                raise
            # Within a transaction nothing more can be asked, and its rollback forgets what is prepared.
            if self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
                raise OutdatedPlan(str(error)) from error
            self.connection.execute("DEALLOCATE ALL", prepare=False)
            return super().execute(query, params, prepare=True, binary=self.is_binary)


class BinaryCursor(PreparingCursor):
    """The same, and is answered in PostgreSQL's own format.

    To write an array of floats as text and to read it again takes longer than to look it up.
    """

    is_binary = True


@contextmanager
def preparing_statements(connection: Any, *, binary: bool = False) -> Iterator[None]:
    """Cursors that Django's `connection` opens meanwhile prepare what they run.

    `binary`: numbers and arrays of them come as they are, to the last bit. Django knows moments and JSON as
    text alone.
    """
    if not settings.PACELINE_PREPARED_STATEMENTS:
        yield
        return
    connection.ensure_connection()
    opened = connection.connection
    opened.prepared_max = MOST_PREPARED
    usual = opened.cursor_factory, opened.prepare_threshold
    opened.cursor_factory = BinaryCursor if binary else PreparingCursor
    opened.prepare_threshold = NEVER_BY_ITSELF
    try:
        yield
    finally:
        # Django turns preparing off. Else psycopg would look at what else is run, and forget all that is
        # prepared whenever that goes back to a savepoint.
        opened.cursor_factory, opened.prepare_threshold = usual


def write_constants(sql: str, constants: Mapping[int, Any], connection: Any) -> str:
    """The statement with literals for the `constants`, by the places of its parameters.

    Of a literal PostgreSQL knows by where it stands which type it has, of a parameter not always.
    """
    connection.ensure_connection()
    client = psycopg.ClientCursor(connection.connection)
    first, *texts = sql.split("%s")
    written = [first]
    for place, text in enumerate(texts):
        literal = client.mogrify("%s", [constants[place]]).replace("%", "%%") if place in constants else "%s"
        written += [literal, text]
    return "".join(written)
