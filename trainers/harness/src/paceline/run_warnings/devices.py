"""Warnings about the devices that were computed on: clocks held down, devices lost, strangers beside us."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..document_building.device_use import device_rows, is_in_use
from ..measurement import TimedRepetition
from ..watching import nvml
from ..watching.sampler import Sampler
from .warning import Raw, WarningRows, make_warning

CLOCK_CHANGE = 0.15

Seen = TypeVar("Seen", int, str)


def device_warnings(raw: Raw, timed: Sequence[TimedRepetition]) -> WarningRows:
    """Yield what disturbed the devices that were computed on, while the window was open."""
    if raw["environment"]["path"] != "cuda":
        return
    reasons = sorted(_seen_in_use(timed, lambda sampler, window: sampler.throttling(window)))
    if reasons:
        yield make_warning(
            "throttling",
            f"a device held its clock down: {', '.join(reasons)}",
            "check its cooling and power limit",
            # At full load many devices are at their power limit all the time. Were they only now and then,
            # the clock would change.
            taints=reasons != [nvml.POWER_CAP],
        )
    lost = sorted(_seen_in_use(timed, lambda sampler, _: ((index, index) for index in sampler.lost)))
    if lost:
        yield make_warning(
            "device_lost",
            f"the driver lost device {', '.join(map(str, lost))}, its readings end there",
            "look for its error in the system's log, and restart the machine",
            taints=True,
        )
    foreign = _seen_in_use(timed, lambda sampler, window: sampler.foreign_processes(window))
    if foreign:
        yield make_warning(
            "co_tenant",
            f"{len(foreign)} other process{'es' if len(foreign) > 1 else ''} computed on the device",
            "measure on a device of its own",
            taints=True,
        )
    for clocks in _clocks_by_device(timed):
        if max(clocks) > min(clocks) * (1 + CLOCK_CHANGE):
            yield make_warning(
                "clock_change",
                f"the device's clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz",
                "lock the device's clocks while measuring",
                taints=True,
            )


def _seen_in_use(
    timed: Sequence[TimedRepetition],
    find: Callable[[Sampler, tuple[float, float]], Iterable[tuple[int, Seen]]],
) -> set[Seen]:
    """Return what was found, as (device, it), of devices that a repetition computed on."""
    seen: set[Seen] = set()
    for repetition in timed:
        in_use = is_in_use(repetition)
        seen |= {what for index, what in find(repetition.sampler, repetition.window) if in_use(index)}
    return seen


def _clocks_by_device(timed: Sequence[TimedRepetition]) -> list[list[float]]:
    """Return each used device's mean clock in the windows of the repetitions."""
    clocks: dict[int, list[float]] = {}
    for row in (row for repetition in timed for row in device_rows(repetition, "gpu_sm_clock")):
        if row["mean"]:
            clocks.setdefault(row["device"], []).append(row["mean"])
    return list(clocks.values())
