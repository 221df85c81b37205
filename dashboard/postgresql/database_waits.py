"""How long a web process waits for PostgreSQL: one that is frozen, or whose machine is gone, never answers.

`statement_timeout` is the server's own clock, which stands still with it, and of a server on this machine TCP
says nothing. So the client looks at its clock ten times a second while it waits. Only processes that call
`limit_waits` do: a worker's statement may take as long as it needs, and goes on with the server.

All threads of a web server may wait for such a server, and none would be left to say that the process lives.
Once the server has been silent for a few seconds, so many threads wait on (`MOST_PATIENT`); who comes then is
refused at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen

# One fewer than a web process has threads.
MOST_PATIENT = 3
# No answer to anybody for so long: a statement alone may take longer, and so may many that wait for a lock.
SILENCE_SECONDS = 5.0

Result = TypeVar("Result")


class DatabaseSilent(psycopg.errors.ConnectionTimeout):
    """PostgreSQL hasn't answered for as long as a request may wait."""


class Wait:
    """One of a thread; `last_answer_at`: monotonic seconds when it began or the server last sent something.

    `is_answered`: False once it was given up; None while nothing came, as of what needs no server at all: to
    begin a transaction, or to end one of a connection that is closed. `is_overdue`: it lasted too long.
    """

    def __init__(self, now: float) -> None:
        self.began_at = self.last_answer_at = now
        self.is_answered: bool | None = None
        self.is_overdue = False


class DatabaseWaits:
    """Those of all threads of this process. `limit`: seconds; None: without end."""

    def __init__(self) -> None:
        self.limit: float | None = None
        self._lock = threading.Lock()
        # In the order in which they began.
        self._waits: dict[Wait, None] = {}
        # When the first of them began that began since the server's last answer to anybody.
        self._silent_since: float | None = None

    @contextmanager
    def counted(self) -> Iterator[Wait]:
        """Around one wait. DatabaseSilent at once where too many wait for a silent server already."""
        wait = Wait(time.monotonic())
        with self._lock:
            self._waits[wait] = None
            if self._silent_since is None:
                self._silent_since = wait.last_answer_at
        try:
            self._check(wait)
            yield wait
        finally:
            self._end(wait)

    def watch(self, gen: PQGen[Result], wait: Wait) -> PQGen[Result]:
        """The same answers; DatabaseSilent once `wait` has lasted too long."""
        try:
            awaited = next(gen)
            while True:
                ready = yield awaited
                if ready:
                    self.note_answer(wait)
                else:
                    # psycopg's clock ticked: nothing came.
                    self._check(wait)
                awaited = gen.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result

    def note_answer(self, wait: Wait) -> None:
        """The server has said something to it."""
        wait.last_answer_at, wait.is_answered = time.monotonic(), True
        with self._lock:
            self._silent_since = wait.last_answer_at

    def _check(self, wait: Wait) -> None:
        now = time.monotonic()
        with self._lock:
            is_silent = self._silent_since is not None and now - self._silent_since > SILENCE_SECONDS
            is_patient = not is_silent or wait in islice(self._waits, MOST_PATIENT)
        wait.is_overdue = self.limit is not None and now - wait.last_answer_at > self.limit
        if wait.is_overdue or not is_patient:
            wait.is_answered = False
            raise DatabaseSilent("the database hasn't answered in time")

    def _end(self, wait: Wait) -> None:
        with self._lock:
            del self._waits[wait]
            if wait.is_answered:
                self._silent_since = time.monotonic() if self._waits else None
            elif wait.is_answered is None and self._silent_since == wait.began_at:
                self._silent_since = next((other.began_at for other in self._waits), None)


WAITS = DatabaseWaits()


def limit_waits(seconds: float) -> None:
    """Have this process wait for a silent server at most so long, each time that it asks for something."""
    WAITS.limit = seconds
