"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(happens: Callable[[], T], seconds: float = 60) -> T:
    """The first truthy answer; AssertionError where none comes in time."""
    end = time.monotonic() + seconds
    while True:
        if answer := happens():
            return answer
        assert time.monotonic() < end, f"it did not happen within {seconds} s"
        time.sleep(0.05)
