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

from .document import UNATTRIBUTED
from .fields import Fields, Scalar
from .statistics import FittedLine, fit_line

VALUES_LIMIT = 20
REPETITIONS_LIMIT = 10
PHASES_LIMIT = 100
# What takes less at some value says more about the clock and about noise than about growth.
SHORTEST = 0.001

Time = Callable[["Point"], float | None]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Which values of a parameter are measured, how often each, and what else is set for it."""

    parameter: str
    values: tuple[float, ...]
    repetitions: int
    params: Mapping[str, Scalar]


def parse(fields: Fields | None) -> Sweep | None:
    """Read the manifest's table `scaling`; raises ManifestError."""
    if fields is None:
        return None
    parameter = fields.required_text("parameter")
    values = fields.required_numbers("values")
    sweep = Sweep(
        parameter=parameter,
        values=tuple(sorted(values)),
        repetitions=fields.integer("repetitions", 2, minimum=1, maximum=REPETITIONS_LIMIT),
        params=fields.scalars("params") or {},
    )
    fields.finish()
    if not (parameter.isascii() and parameter.isidentifier()):
        raise fields.error("parameter", f"is {parameter!r}, must be a parameter of the script")
    if parameter in sweep.params:
        raise fields.error(f"params.{parameter}", "is the swept parameter itself")
    if not 3 <= len(set(values)) == len(values) <= VALUES_LIMIT:
        raise fields.error("values", f"must be 3 to {VALUES_LIMIT} different numbers")
    if min(values) <= 0:
        raise fields.error("values", f"has {min(values):g}, must be above 0")
    return sweep


@dataclass(frozen=True, slots=True)
class Point:
    """One process that ran its whole loop: steps, seconds, and seconds by the main thread's phases.

    `waited` is the share of the time in which that thread waited for a processor.
    """

    value: float
    repetition: int
    steps: int
    seconds: float
    phases: Mapping[str, float]
    waited: float = 0.0


def point(value: float, repetition: int, result: Mapping[str, Any]) -> Point:
    """Return the point that a process measured; what its outermost phases leave is (unattributed)."""
    phases = dict(result["phases"])
    outermost = math.fsum(seconds for path, seconds in phases.items() if "/" not in path)
    rest = max(0.0, result["seconds"] - outermost)
    times = {**phases, UNATTRIBUTED: rest}
    return Point(value, repetition, result["steps"], result["seconds"], times, result.get("waited", 0.0))


def order(sweep: Sweep) -> Iterator[tuple[float, int]]:
    """Yield (value, repetition), upwards and downwards in turn: a machine that drifts bends no line."""
    for repetition in range(sweep.repetitions):
        values = sweep.values if repetition % 2 == 0 else sweep.values[::-1]
        yield from ((value, repetition) for value in values)


def fit(points: Sequence[Point], time: Time) -> FittedLine | None:
    """Return the line through (log value, log time), or None where it is too short to be measured."""
    fastest: dict[float, float] = {}
    for one in points:
        taken = time(one)
        if taken is None or taken <= 0:
            return None
        fastest[one.value] = min(taken, fastest.get(one.value, math.inf))
    return fit_line([(math.log(value), math.log(taken)) for value, taken in fastest.items()])


def seconds(one: Point) -> float | None:
    """Return the loop's time, None where it is too short."""
    return _long_enough(one.seconds)


def exponents(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the document's exponents: of the whole loop, of its steps, and of each long enough phase."""
    times: dict[tuple[str, str | None], Time] = {
        ("scaling_exponent", None): seconds,
        ("scaling_exponent_step_time", None): _step_time,
        ("scaling_exponent_steps", None): _steps,
        **{("scaling_exponent", path): _phase(path) for path in _longest_phases(points)},
    }
    found = ((place, fit(points, time), time) for place, time in times.items())
    return [_exponent(place, fitted, points, time) for place, fitted, time in found if fitted is not None]


def _exponent(
    place: tuple[str, str | None], fitted: FittedLine, points: Sequence[Point], time: Time
) -> dict[str, Any]:
    low, high = fitted.slope_interval()
    alone = [fit([one for one in points if one.repetition == at], time) for at in _repetitions(points)]
    return {
        "name": place[0],
        "phase": place[1],
        "value": fitted.slope,
        "low": low,
        "high": high,
        "points": len(points),
        "samples": [found.slope for found in alone if found is not None],
    }


def _repetitions(points: Sequence[Point]) -> list[int]:
    return sorted({one.repetition for one in points})


def _longest_phases(points: Sequence[Point]) -> list[str]:
    largest = max(points, key=lambda one: one.value).phases
    return sorted(largest, key=lambda path: -largest[path])[:PHASES_LIMIT]


def _long_enough(taken: float | None) -> float | None:
    return taken if taken is not None and taken >= SHORTEST else None


def _step_time(one: Point) -> float | None:
    return one.seconds / one.steps if seconds(one) else None


def _steps(one: Point) -> float:
    return float(one.steps)


def _phase(path: str) -> Time:
    return lambda one: _long_enough(one.phases.get(path))
