"""Telemetry of one repetition on a fixed grid, read from the harness's own process."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from ..statistics import mean
from . import nvml, performance_counters
from .energy import EnergyMeter, sum_energies
from .presence_intervals import PresenceIntervals
from .process_tree import LabelUsage, ProcessTree, TreeReading

INTERVAL_SECONDS = 0.1
# What is costly to read, or changes slowly, has a grid of its own.
SLOW_INTERVAL = 1.0
# At most this share of the time goes into costly readings: a process with much memory is asked less often.
SLOW_SHARE = 0.0025
VALUES_LIMIT = 6_000
LABELS_LIMIT = 50
OTHERS = "(others)"
# Below this share of its range a processor or a device counts as idle.
IDLE_PERCENT = 5.0

HOST_UNITS = {
    "cpu_utilization": "%",
    "memory": "bytes",
    "memory_pss": "bytes",
    "threads": "1",
    "disk_read": "bytes/s",
    "disk_write": "bytes/s",
}
SLOW = frozenset({"memory_pss"})
DEVICE_UNITS = {channel.name: channel.unit for channel in nvml.CHANNELS} | performance_counters.UNITS

Series = list[float | None]


class Sampler:
    """Samples a process tree and the devices; slot k of every channel belongs to k intervals after the start.

    A slot that was missed stays None: a late sample never moves the ones behind it.
    """

    def __init__(
        self,
        tree: ProcessTree,
        devices: nvml.Devices,
        started: float,
        interval: float = INTERVAL_SECONDS,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._tree = tree
        self._devices = devices
        self._started = started
        self._interval = interval
        self._clock = clock
        self._before = started
        self._slow_due = 0.0
        self._proportional: list[tuple[float, int]] = []
        self._late = False
        self.series: dict[tuple[str, int | None], Series] = {}
        self._shares: dict[str, tuple[Series, Series]] = {}
        self._counts: dict[str, int] = {}
        self._throttling: PresenceIntervals[tuple[int, str]] = PresenceIntervals()
        self.co_tenants = nvml.CoTenants()
        self.lost: set[int] = set()
        self._meters: dict[int, EnergyMeter] = {}

    def until_next(self) -> float:
        """Return the seconds until the next slot of the grid is due."""
        since = self._clock() - self._started
        return self._interval - since % self._interval

    def sample(self, *, late: bool = False) -> None:
        """Read everything once, into the slot that is nearest to now.

        What is costly to read is read once more when the window is first called late, so that every
        repetition has it.
        """
        now = self._clock()
        first_late = late and not self._late
        self._late = late
        slot = round((now - self._started) / self._interval)
        reading = self._tree.read()
        elapsed, self._before = now - self._before, now
        if reading is not None:
            self._put_host(slot, reading, elapsed)
        for index, readings in self._devices.read():
            for name, value in readings.items():
                self._put(slot, name, index, value)
        for index, counters in self._devices.read_counters():
            for name, value in counters.items():
                # A device without counters has no channel of them.
                if value is not None:
                    self._put(slot, name, index, value)
        for index, joules in self._devices.read_energy():
            self._meters.setdefault(index, EnergyMeter()).add_reading(now - self._started, joules)
        for reason in self._devices.throttling():
            self._throttling.note(reason, now - self._started)
        self.lost |= self._devices.lost
        if first_late or now - self._started >= self._slow_due:
            self._sample_slowly(now)

    def channels(self, window: tuple[float, float]) -> list[dict[str, Any]]:
        """Return the document's telemetry; mean, peak and idle share are those of the window."""
        return [self._channel(name, index, values, window) for (name, index), values in self.series.items()]

    def processes(self, window: tuple[float, float]) -> list[dict[str, Any]]:
        """Return the document's processes: peak bytes until the window's end, mean % of a core in it."""
        first, last = self._slots("memory", window)
        total = self.series.get(("cpu_utilization", None), [])[first:last]
        readings = sum(value is not None for value in total)
        rows = []
        for name, (busy, resident) in self._shares.items():
            sizes = [value for value in resident[:last] if value is not None]
            # Where the process wasn't there it used nothing: the labels' means sum to the tree's.
            used = sum(value for value in busy[first:last] if value is not None)
            rows.append(
                {
                    "name": name,
                    "count": self._counts[name],
                    "peak_memory": max(sizes, default=None),
                    "cpu_utilization": used / readings if readings else None,
                }
            )
        return [row for row in rows if row["peak_memory"] is not None]

    def peak(self, end: float) -> float | None:
        """Return the tree's largest resident memory until `end` seconds after the start."""
        values = self.series.get(("memory", None), [])[: int(end / self._interval) + 1]
        return max((value for value in values if value is not None), default=None)

    def proportional_peak(self, window: tuple[float, float]) -> float | None:
        """Return the tree's largest proportional memory that was read within the window."""
        start, end = window
        return max((size for moment, size in self._proportional if start <= moment <= end), default=None)

    @property
    def counters_status(self) -> str:
        """Why the devices' performance counters can't be read, as a code."""
        return self._devices.counters.status

    def throttling(self, window: tuple[float, float]) -> set[tuple[int, str]]:
        """Return (device, reason) of what held a clock down in the window."""
        return self._throttling.between(*window)

    def foreign_processes(self, window: tuple[float, float]) -> set[tuple[int, int]]:
        """Return (device, process id) of other processes that computed in the window."""
        start, end = window
        # They are looked for once in SLOW_INTERVAL: a reading stands for what is around it.
        return self.co_tenants.foreign_processes(start - SLOW_INTERVAL, end + SLOW_INTERVAL)

    def find_device(self, number: int, identity: str | None) -> int | None:
        """Return NVML's index of what a measured process counts as `number`; None where unknown."""
        return self._devices.find_index(number, identity)

    def energy(self, window: tuple[float, float], devices: Sequence[int]) -> float | None:
        """Return the joules that these devices, as NVML counts them, used in the window; None if unknown."""
        meters = [self._meters.get(index) for index in devices]
        return sum_energies([meter.joules_between(window) if meter else None for meter in meters])

    def integrated_power(self, window: tuple[float, float], devices: Sequence[int]) -> float | None:
        """Return the same from the power that was sampled: its mean times the window."""
        means = []
        for index in devices:
            inside = self._values_inside("gpu_power", self.series.get(("gpu_power", index), []), window)
            means.append(mean(inside) if inside else None)
        watts = sum_energies(means)
        return None if watts is None else watts * (window[1] - window[0])

    def _put_host(self, slot: int, reading: TreeReading, elapsed: float) -> None:
        seconds = elapsed if elapsed > 0 else None
        self._put(slot, "cpu_utilization", None, _rate_per_second(reading.cpu, seconds, 100))
        self._put(slot, "memory", None, reading.resident)
        self._put(slot, "threads", None, reading.threads)
        self._put(slot, "disk_read", None, _rate_per_second(reading.read, seconds))
        self._put(slot, "disk_write", None, _rate_per_second(reading.written, seconds))
        for name, share in self._limit_labels(reading.shares).items():
            busy, resident = self._shares.setdefault(name, ([], []))
            self._counts[name] = max(share.count, self._counts.get(name, 0))
            _fill_slot(busy, slot, None if reading.cpu is None else _rate_per_second(share.cpu, seconds, 100))
            _fill_slot(resident, slot, share.resident)

    def _limit_labels(self, shares: Mapping[str, LabelUsage]) -> dict[str, LabelUsage]:
        """Return the shares by label; once there are too many labels, new ones are summed."""
        usage: dict[str, LabelUsage] = {}
        for name, share in shares.items():
            known = name in self._shares or len({*self._shares, *usage}) < LABELS_LIMIT - 1
            usage.setdefault(name if known else OTHERS, LabelUsage()).add(share)
        return usage

    def _sample_slowly(self, now: float) -> None:
        slot = round((now - self._started) / SLOW_INTERVAL)
        before = self._clock()
        proportional = self._tree.proportional_memory()
        self._put(slot, "memory_pss", None, proportional)
        if proportional is not None:
            self._proportional.append((now - self._started, proportional))
        self._devices.note_co_tenants(self.co_tenants, self._tree.pids(), now - self._started)
        cost = self._clock() - before
        due = max((slot + 1) * SLOW_INTERVAL, now - self._started + cost / SLOW_SHARE)
        # On the grid again, so that the nearest slot is always the one that was meant.
        self._slow_due = -(-due // SLOW_INTERVAL) * SLOW_INTERVAL

    def _put(self, slot: int, name: str, device: int | None, value: float | None) -> None:
        # A counter of an H100 once read as no number: a reading that was missed, and not worth the run.
        known = value if value is not None and math.isfinite(value) else None
        _fill_slot(self.series.setdefault((name, device), []), slot, known)

    def _grid(self, name: str) -> float:
        return SLOW_INTERVAL if name in SLOW else self._interval

    def _slots(self, name: str, window: tuple[float, float]) -> tuple[int, int]:
        first, last = (round(moment / self._grid(name)) for moment in window)
        return first, last + 1

    def _values_inside(self, name: str, values: Series, window: tuple[float, float]) -> list[float]:
        """Return the values of the window that tell of nothing before it."""
        first, last = self._slots(name, window)
        inside = [(slot, value) for slot, value in enumerate(values[:last]) if value is not None]
        if name in performance_counters.UNITS:
            # Each is a mean since the reading before.
            spans = ((before, slot, value) for (before, _), (slot, value) in itertools.pairwise(inside))
            start, end = (moment / self._interval for moment in window)
            return [value for before, slot, value in spans if start <= before and slot <= end]
        if name in nvml.LOOKS_BACK:
            first = math.ceil((window[0] + nvml.LOOKS_BACK[name]) / self._interval)
        return [value for slot, value in inside if slot >= first]

    def _channel(
        self, name: str, index: int | None, values: Series, window: tuple[float, float]
    ) -> dict[str, Any]:
        # On a fixed grid every reading stands for the same time: their mean is the time-weighted one.
        inside = self._values_inside(name, values, window)
        kept, interval = thin_series(values, self._grid(name), VALUES_LIMIT)
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


def _rate_per_second(amount: float | None, seconds: float | None, factor: float = 1) -> float | None:
    return None if amount is None or seconds is None else factor * amount / seconds


def _fill_slot(values: Series, slot: int, value: float | None) -> None:
    """Put a value into its slot, unless a sample that came late has filled it."""
    if slot >= len(values):
        values.extend([None] * (slot - len(values)))
        values.append(value)


def thin_series(values: Series, interval: float, most: int) -> tuple[Series, float]:
    """Halve a long series until it fits; a pair's mean stands for both, a missing half for neither."""
    while len(values) > most:
        values = [_pair_mean(values[start : start + 2]) for start in range(0, len(values), 2)]
        interval *= 2
    return values, interval


def _pair_mean(values: Series) -> float | None:
    present = [value for value in values if value is not None]
    return mean(present) if present else None
