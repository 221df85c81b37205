"""How often something happens, from how often it did."""

from __future__ import annotations

from dataclasses import dataclass

COVERED = 0.95


@dataclass(frozen=True, slots=True)
class EventRate:
    """So many events in so many hundreds, and the interval that holds the true rate with 95 % probability."""

    rate: float
    low: float
    high: float


def estimate_rate(events: int, hundreds: float) -> EventRate | None:
    """The rate of independent events, exactly (Garwood 1936); None where nothing was watched."""
    # Not above: a process that judges nothing would wait for it.
    from scipy import special

    if hundreds <= 0:
        return None
    tail = (1 - COVERED) / 2
    low = float(special.gammaincinv(events, tail)) if events else 0.0
    high = float(special.gammaincinv(events + 1, 1 - tail))
    return EventRate(events / hundreds, low / hundreds, high / hundreds)
