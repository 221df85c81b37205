"""Waiting for a site that is away, and being ended meanwhile."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from workers.host.errors import SiteAway, SiteBroken, Stopped

logger = logging.getLogger(__name__)

T = TypeVar("T")
# What was measured is worth a long wait for its site.
PATIENCE_SECONDS = 24 * 3600
BROKEN_PATIENCE_SECONDS = 20
LONGEST_PAUSE = 15.0
RAISED_AGAIN_SECONDS = 2.0


class StopRequested(BaseException):
    """A signal asks for the end. No Exception: nothing on the way may take it for a failure."""


def ask_site(act: Callable[[], T], stop: threading.Event | None = None) -> T:
    """Do it; where the site is away, try again until it is back, or `stop` is set: Stopped."""
    started = time.monotonic()
    broken_since: float | None = None
    pause = 1.0
    while True:
        try:
            return act()
        except SiteAway as error:
            now = time.monotonic()
            broken_since = (broken_since or now) if isinstance(error, SiteBroken) else None
            broken_for = now - broken_since if broken_since else 0.0
            if now - started > PATIENCE_SECONDS or broken_for > BROKEN_PATIENCE_SECONDS:
                raise
            logger.warning("%s Trying again.", error)
            if stop is None:
                time.sleep(pause)
            elif stop.wait(pause):
                raise Stopped from error
            pause = min(2 * pause, LONGEST_PAUSE)


def try_until_answered(act: Callable[[], T]) -> T:
    """Do it; where the site is away, try again until it is back."""
    pause = 0.5
    while True:
        try:
            return act()
        except SiteAway as error:
            logger.warning("%s Trying again in %.0f s.", error, pause)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


@contextmanager
def ending_signals() -> Iterator[None]:
    """Inside, Ctrl-C and a polite kill raise StopRequested; once inside is left, they do nothing more."""

    def end(_number: int, _frame: FrameType | None) -> None:
        _ignore_signals()
        # Python drops what is raised in a callback, those of a fork among them: then it is raised again.
        signal.setitimer(signal.ITIMER_REAL, RAISED_AGAIN_SECONDS, RAISED_AGAIN_SECONDS)
        raise StopRequested

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, end)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _ignore_signals()


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
