"""A fixed piece of arithmetic, timed: what this machine is worth right now."""

from __future__ import annotations

from time import perf_counter

from ..statistics import median

LOOPS = 5
ROUNDS = 100_000


def measure_calibration() -> float:
    """Return the median seconds of one of five equal loops, about 50 ms in all."""
    return median([_time_loop() for _ in range(LOOPS)])


def _time_loop() -> float:
    started = perf_counter()
    value = 1
    for _ in range(ROUNDS):
        value = (value * 1103515245 + 12345) % 2147483648
    return perf_counter() - started
