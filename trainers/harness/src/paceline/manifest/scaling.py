"""Scaling: one parameter swept over several values, each in fresh processes that run their whole loop.

A time that is proportional to a power of the parameter is a straight line in logarithms; the power is its
slope. Of one value's repetitions the fastest counts, since other work on the machine only ever adds time,
and the interval takes the values as its samples: repetitions share their value's distance from the line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..phase_names import UNATTRIBUTED
from ..statistics import FittedLine, fit_line
from .toml_table import Scalar, TomlTable

VALUES_LIMIT = 20
REPETITIONS_LIMIT = 10
PHASES_LIMIT = 100
# Over less than this, what is fitted is the noise.
LEAST_SPREAD = 1.5
# A shorter time says more about the clock and about noise than about growth.
SHORTEST_SECONDS = 0.001

TimeOfPoint = Callable[["SweepPoint"], float | None]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The values of a parameter to measure, how often each, and the other parameters of the sweep."""

    parameter: str
    values: tuple[float, ...]
    repetitions: int
    params: Mapping[str, Scalar]


def parse_sweep(table: TomlTable | None) -> Sweep | None:
    """Read the manifest's table `scaling`; raises ManifestError."""
    if table is None:
        return None
    parameter = table.required_string("parameter")
    values = table.required_numbers("values")
    sweep = Sweep(
        parameter=parameter,
        values=tuple(sorted(values)),
        repetitions=table.integer("repetitions", 2, minimum=1, maximum=REPETITIONS_LIMIT),
        params=table.scalars("params") or {},
    )
    table.refuse_unread_keys()
    if not (parameter.isascii() and parameter.isidentifier()):
        raise table.error("parameter", f"is {parameter!r}, must be a parameter of the script")
    if parameter in sweep.params:
        raise table.error(f"params.{parameter}", "is the swept parameter itself")
    if not 3 <= len(set(values)) == len(values) <= VALUES_LIMIT:
        raise table.error("values", f"must be 3 to {VALUES_LIMIT} different numbers")
    if min(values) <= 0:
        raise table.error("values", f"has {min(values):g}, must be above 0")
    if max(values) < LEAST_SPREAD * min(values):
        raise table.error("values", f"must differ by a factor of {LEAST_SPREAD} at least")
    return sweep


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One process that ran its whole loop: steps, seconds, and seconds by the main thread's phases.

    `waited` is the share of the time in which that thread waited for a processor.
    """

    value: float
    repetition: int
    steps: int
    seconds: float
    phases: Mapping[str, float]
    waited: float = 0.0


def make_point(value: float, repetition: int, result: Mapping[str, Any]) -> SweepPoint:
    """Return the point that a process measured; what its outermost phases leave is (unattributed)."""
    phases = dict(result["phases"])
    outermost = math.fsum(seconds for path, seconds in phases.items() if "/" not in path)
    rest = max(0.0, result["seconds"] - outermost)
    times = {**phases, UNATTRIBUTED: rest}
    return SweepPoint(value, repetition, result["steps"], result["seconds"], times, result.get("waited", 0.0))


def sweep_order(sweep: Sweep) -> Iterator[tuple[float, int]]:
    """Yield (value, repetition), upwards and downwards in turn: a machine that drifts bends no line."""
    for repetition in range(sweep.repetitions):
        values = sweep.values if repetition % 2 == 0 else sweep.values[::-1]
        yield from ((value, repetition) for value in values)


def fit_power_law(points: Sequence[SweepPoint], time: TimeOfPoint) -> FittedLine | None:
    """Return the line through (log value, log time), or None where it is too short to be measured."""
    fastest: dict[float, float] = {}
    for point in points:
        seconds = time(point)
        if seconds is None or seconds <= 0:
            return None
        fastest[point.value] = min(seconds, fastest.get(point.value, math.inf))
    return fit_line([(math.log(value), math.log(seconds)) for value, seconds in fastest.items()])


def loop_seconds(point: SweepPoint) -> float | None:
    """Return the loop's time, None where it is too short."""
    return _long_enough(point.seconds)


def fit_exponents(points: Sequence[SweepPoint]) -> list[dict[str, Any]]:
    """Return the document's exponents: of the whole loop, of its steps, and of each long enough phase."""
    times: dict[tuple[str, str | None], TimeOfPoint] = {
        ("scaling_exponent", None): loop_seconds,
        ("scaling_exponent_step_time", None): _step_time,
        ("scaling_exponent_steps", None): _step_count,
        **{("scaling_exponent", path): _phase_seconds(path) for path in _longest_phases(points)},
    }
    lines = ((key, fit_power_law(points, time), time) for key, time in times.items())
    return [_exponent_row(key, line, points, time) for key, line, time in lines if line is not None]


def _exponent_row(
    key: tuple[str, str | None], line: FittedLine, points: Sequence[SweepPoint], time: TimeOfPoint
) -> dict[str, Any]:
    low, high = line.slope_interval()
    by_repetition = [
        fit_power_law([point for point in points if point.repetition == repetition], time)
        for repetition in sorted({point.repetition for point in points})
    ]
    return {
        "name": key[0],
        "phase": key[1],
        "value": line.slope,
        "low": low,
        "high": high,
        "points": len(points),
        "samples": [line.slope for line in by_repetition if line is not None],
    }


def _longest_phases(points: Sequence[SweepPoint]) -> list[str]:
    largest = max(points, key=lambda point: point.value).phases
    return sorted(largest, key=lambda path: -largest[path])[:PHASES_LIMIT]


def _long_enough(seconds: float | None) -> float | None:
    return seconds if seconds is not None and seconds >= SHORTEST_SECONDS else None


def _step_time(point: SweepPoint) -> float | None:
    return point.seconds / point.steps if loop_seconds(point) else None


def _step_count(point: SweepPoint) -> float:
    return float(point.steps)


def _phase_seconds(path: str) -> TimeOfPoint:
    return lambda point: _long_enough(point.phases.get(path))
