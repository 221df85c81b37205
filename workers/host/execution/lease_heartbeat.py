"""The heartbeat of held work: renews its lease and streams its progress and log, beside the measurement."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from workers.host.errors import SiteAway, TokenRefused
from workers.host.execution.launching import Progress
from workers.host.logs import Log

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 2.0

# Renews the lease with a fraction, a few words and new lines of the log; False: it is no longer ours.
Renew = Callable[[float | None, str, str], bool]


class LeaseHeartbeat:
    """Beats in a thread of its own until it is left.

    `stop` is set once the work is no longer ours. While the site is away it stays ours: a site that comes
    back gives its hosts time to say so.
    """

    def __init__(
        self, name: str, renew: Renew, log: Log, stop: threading.Event, lease_seconds: float
    ) -> None:
        self.name = name
        self.renew = renew
        self.log = log
        self.stop = stop
        # What people read while it goes on; the source of progress comes with the measurement.
        self.activity = ""
        self.progress: Callable[[], Progress | None] = lambda: None
        self._unsent = ""
        self._interval = min(HEARTBEAT_SECONDS, lease_seconds / 4)
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

    def _beat_until_over(self) -> None:
        while not self._over.wait(self._interval):
            try:
                self.beat()
            except SiteAway as error:
                logger.warning("No heartbeat of %s: %s", self.name, error)
            except TokenRefused:
                self.stop.set()
            except Exception:
                # The measurement must not go on unrenewed because of one odd answer.
                logger.exception("No heartbeat of %s", self.name)
