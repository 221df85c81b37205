"""What Django loads by the name of the package: its own, whose connections needn't wait for ever."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import ModuleType, TracebackType
from typing import Any, TypeVar

import psycopg
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from dashboard.postgresql.database_waits import WAITS, DatabaseSilent, Wait
from dashboard.postgresql.lost_connections import mark_error

CANCEL_SECONDS = 2.0

Result = TypeVar("Result")


class LimitedConnection(psycopg.Connection[Any]):
    """Waits no longer than this process may (`database_waits.limit_waits`)."""

    def wait(self, gen: PQGen[Result], *arguments: Any, **named: Any) -> Result:
        """As psycopg's own, whatever is asked. DatabaseSilent where nothing came in time; closed by then."""
        if WAITS.limit is None:
            return super().wait(gen, *arguments, **named)
        try:
            with WAITS.counted() as wait:
                try:
                    return super().wait(WAITS.watch(gen, wait), *arguments, **named)
                except DatabaseSilent:
                    self._cancel_overdue(wait)
                    raise
        except DatabaseSilent:
            # A request that was refused before it was sent leaves the connection as it was.
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise

    def rollback(self) -> None:
        """As psycopg's own, but what is prepared stays: psycopg forgets it, for it may ask of tables that the
        transaction has made.

        Where a statement has failed, it may have been left half prepared: then all are prepared anew.
        """
        if self.pgconn.transaction_status == TransactionStatus.INTRANS:
            self.execute("ROLLBACK", prepare=False)
        else:
            super().rollback()

    def _cancel_overdue(self, wait: Wait) -> None:
        """A server that is only slow shall not go on with what nobody waits for.

        Whether it is slow or frozen shows now: a statement alone is silent in both. Called while the wait is
        counted, so that one thread stays free; what was refused for others goes at once.
        """
        if wait.is_overdue and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
            with suppress(psycopg.Error):  # It was a try: the server ends it by itself.
                self.cancel_safe(timeout=CANCEL_SECONDS)
                WAITS.note_answer(wait)


def _limited_psycopg() -> ModuleType:
    """psycopg as Django uses it, but for the class of connections: Django has no option for it."""
    module = ModuleType(psycopg.__name__, psycopg.__doc__)
    module.__dict__.update(vars(psycopg), connect=LimitedConnection.connect)
    return module


class LostConnectionMarker(DatabaseErrorWrapper):
    """Notes beside each error whether its connection was lost: later Django may have another one."""

    def __init__(self, database: base.DatabaseWrapper) -> None:
        super().__init__(database)
        self._database = database

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, psycopg.Error):
            mark_error(exc_value, self._database.connection)
        super().__exit__(exc_type, exc_value, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    Database = _limited_psycopg()

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return LostConnectionMarker(self)

    def get_new_connection(self, conn_params: Mapping[str, Any]) -> Any:
        """How long that takes at most says libpq's own `connect_timeout`."""
        if WAITS.limit is None:
            return super().get_new_connection(conn_params)
        with WAITS.counted() as wait:
            try:
                opened = super().get_new_connection(conn_params)
            except psycopg.errors.ConnectionTimeout:
                wait.is_answered = False
                raise
            except psycopg.Error:
                WAITS.note_answer(wait)
                raise
            WAITS.note_answer(wait)
            return opened
