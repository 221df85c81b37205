"""The heartbeat of held work: renews its lease and streams its progress and log, beside the measurement."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from workers.host.launching import Progress
from workers.host.logs import Log

logger = logging.getLogger(__name__)

SECONDS = 2.0

# Renews the lease with a fraction, a few words and new lines of the log; False: it is no longer ours.
Renew = Callable[[float | None, str, str], bool]


class LeaseHeartbeat:
    """Beats in a thread of its own until it is left.

    `stop` is set once the work is no longer ours, or once nobody can tell for longer than a lease.
    """

    def __init__(self, name: str, renew: Renew, log: Log, stop: threading.Event) -> None:
        self.name = name
        self.renew = renew
        self.log = log
        self.stop = stop
        # What people read while it goes on; the source of progress comes with the measurement.
        self.activity = ""
        self.progress: Callable[[], Progress | None] = lambda: None
        self._unsent = ""
        self._renewed = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat_until_over, name="lease heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """No beat follows."""
        self._over.set()
        self._thread.join()

    def rest_of_log(self) -> str:
        """What has not been sent; call it after `end`."""
        rest, self._unsent = self._unsent + self.log.finish(), ""
        return rest

    def beat(self) -> None:
        """One heartbeat."""
        progress = self.progress()
        self._unsent += self.log.drain()
        text = progress.text if progress else self.activity
        fraction = progress.fraction if progress else None
        if not self.renew(fraction, text, self._unsent):
            self.stop.set()
        self._unsent = ""
        self._renewed = time.monotonic()

    def _beat_until_over(self) -> None:
        try:
            while not self._over.wait(min(SECONDS, settings.PACELINE_LEASE_SECONDS / 4)):
                self._try_to_beat()
        finally:
            connection.close()

    def _try_to_beat(self) -> None:
        """The database may be away for a while; after a lease the work counts as lost, and is."""
        try:
            self.beat()
        except (OperationalError, InterfaceError) as error:
            logger.warning("No heartbeat of %s: %s", self.name, error)
            connection.close()
            if time.monotonic() - self._renewed > settings.PACELINE_LEASE_SECONDS:
                self.stop.set()
