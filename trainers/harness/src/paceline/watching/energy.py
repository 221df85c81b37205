"""The energy that a device has used, from its own counter: read on the sampler's grid, given for a window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

# Beyond so many readings every second one is dropped: a counter loses nothing by that.
READINGS_LIMIT = 20_000
# A window that holds fewer readings says nothing: its two ends are interpolated.
FEWEST_READINGS = 3

Reading = tuple[float, float]


class EnergyMeter:
    """Readings of one device's counter, in joules, by seconds after the start of the process."""

    def __init__(self) -> None:
        self._readings: list[Reading] = []

    def add_reading(self, moment: float, joules: float) -> None:
        """Add one reading; they come in order."""
        self._readings.append((moment, joules))
        if len(self._readings) > READINGS_LIMIT:
            del self._readings[1:-1:2]

    def joules_between(self, window: tuple[float, float]) -> float | None:
        """Return what was used in the window; None where it wasn't read around it, or the counter fell."""
        start, end = window
        inside = sum(start <= moment <= end for moment, _ in self._readings)
        first, last = self._read_at(start), self._read_at(end)
        if first is None or last is None or inside < FEWEST_READINGS or last < first:
            return None
        return last - first

    def _read_at(self, moment: float) -> float | None:
        place = bisect_left(self._readings, (moment, float("-inf")))
        if place < len(self._readings) and self._readings[place][0] == moment:
            return self._readings[place][1]
        if place in (0, len(self._readings)):
            return None
        (before, low), (after, high) = self._readings[place - 1 : place + 1]
        return low + (high - low) * (moment - before) / (after - before)


def sum_energies(energies: Sequence[float | None]) -> float | None:
    """Return the sum; None where there are none, or where one of them isn't known."""
    known = [energy for energy in energies if energy is not None]
    return sum(known) if known and len(known) == len(energies) else None
