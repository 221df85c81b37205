"""Outages of the site: whoever measures for it waits until it is back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from workers.host.errors import SiteAway, SiteBroken, Stopped

logger = logging.getLogger(__name__)

T = TypeVar("T")
# What was measured is worth a long wait for its site.
PATIENCE_SECONDS = 24 * 3600
BROKEN_PATIENCE_SECONDS = 20
LONGEST_PAUSE = 15.0


def ask_site(act: Callable[[], T], stop: threading.Event | None = None) -> T:
    """Do it; where the site is away, try again until it is back, or `stop` is set: Stopped."""
    started = time.monotonic()
    pause = 1.0
    while True:
        try:
            return act()
        except SiteAway as error:
            patience = BROKEN_PATIENCE_SECONDS if isinstance(error, SiteBroken) else PATIENCE_SECONDS
            if time.monotonic() - started > patience:
                raise
            logger.warning("%s Trying again.", error)
            if stop is None:
                time.sleep(pause)
            elif stop.wait(pause):
                raise Stopped from error
            pause = min(2 * pause, LONGEST_PAUSE)
