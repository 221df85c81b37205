"""Telemetry of one repetition on a fixed grid, read from the harness's own process."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from ..statistics import mean
from . import nvml
from .tree import Tree

INTERVAL = 0.1
VALUES_LIMIT = 6_000
# Below this share of its range a processor or a device counts as idle.
IDLE_PERCENT = 5.0

HOST_UNITS = {"cpu_utilization": "%", "memory": "bytes", "threads": "1"}
DEVICE_UNITS = {channel.name: channel.unit for channel in nvml.CHANNELS}

Series = list[float | None]


class Sampler:
    """Samples a process tree and the devices; slot k of every channel belongs to k intervals after the start.

    A slot that was missed stays None: a late sample never moves the ones behind it.
    """

    def __init__(
        self,
        tree: Tree,
        devices: nvml.Devices,
        started: float,
        interval: float = INTERVAL,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._tree = tree
        self._devices = devices
        self._started = started
        self._interval = interval
        self._clock = clock
        self._before = started
        self.series: dict[tuple[str, int | None], Series] = {}
        self.throttling: set[tuple[int, str]] = set()
        self.strangers: set[tuple[int, int]] = set()

    def until_next(self) -> float:
        """Return the seconds until the next slot of the grid is due."""
        since = self._clock() - self._started
        return self._interval - since % self._interval

    def sample(self) -> None:
        """Read everything once, into the slot that is nearest to now."""
        now = self._clock()
        slot = round((now - self._started) / self._interval)
        reading = self._tree.read()
        elapsed, self._before = now - self._before, now
        if reading is not None:
            busy = None if reading.cpu is None or elapsed <= 0 else 100 * reading.cpu / elapsed
            self._put(slot, "cpu_utilization", None, busy)
            self._put(slot, "memory", None, reading.resident)
            self._put(slot, "threads", None, reading.threads)
        for index, readings in enumerate(self._devices.read()):
            for name, value in readings.items():
                self._put(slot, name, index, value)
        self.throttling |= self._devices.throttling()
        self.strangers |= self._devices.strangers(self._tree.pids())

    def channels(self, window: tuple[float, float]) -> list[dict[str, Any]]:
        """Return the document's telemetry; mean, peak and idle share are those of the window."""
        return [self._channel(name, index, values, window) for (name, index), values in self.series.items()]

    def peak(self, end: float) -> float | None:
        """Return the tree's largest resident memory until `end` seconds after the start."""
        values = self.series.get(("memory", None), [])[: int(end / self._interval) + 1]
        return max((value for value in values if value is not None), default=None)

    def _put(self, slot: int, name: str, device: int | None, value: float | None) -> None:
        values = self.series.setdefault((name, device), [])
        if slot >= len(values):
            values.extend([None] * (slot - len(values)))
            values.append(value)

    def _channel(
        self, name: str, index: int | None, values: Series, window: tuple[float, float]
    ) -> dict[str, Any]:
        first, last = (round(moment / self._interval) for moment in window)
        # On a fixed grid every reading stands for the same time: their mean is the time-weighted one.
        inside = [value for value in values[first : last + 1] if value is not None]
        kept, interval = _thinned(values, self._interval)
        utilization = name in ("cpu_utilization", "gpu_utilization")
        idle = sum(value < IDLE_PERCENT for value in inside)
        return {
            "channel": name,
            "device": index,
            "unit": HOST_UNITS.get(name) or DEVICE_UNITS[name],
            "start": 0.0,
            "interval": interval,
            "values": kept,
            "mean": mean(inside) if inside else None,
            "peak": max(inside, default=None),
            "idle_share": idle / len(inside) if inside and utilization else None,
        }


def _thinned(values: Series, interval: float) -> tuple[Series, float]:
    """Halve a long series until it fits; a pair's mean stands for both, a missing half for neither."""
    while len(values) > VALUES_LIMIT:
        values = [_pair(values[at : at + 2]) for at in range(0, len(values), 2)]
        interval *= 2
    return values, interval


def _pair(values: Series) -> float | None:
    present = [value for value in values if value is not None]
    return mean(present) if present else None
