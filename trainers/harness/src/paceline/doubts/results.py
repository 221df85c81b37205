"""Doubts about what was found: counters, learning, limits, the sweep and the job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .. import counters, metrics
from ..benchmarks import Benchmark, Guard
from ..measured.processor import CONTENTION_SHARE
from ..measurement import Timed
from ..statistics import mean
from ..units import format_amount
from .warning import Found, Raw, warning

UNCERTAIN = 0.5  # of an exponent: the difference between linear and n log n, or worse


def doubts(raw: Raw, timed: Sequence[Timed], counted: Sequence[Raw], benchmark: Benchmark) -> Found:
    """Yield what the run's results leave open, and what they cross."""
    yield from _inexact(counted)
    yield from _guards(raw["repetitions"], benchmark.guard)
    yield from _dropped(timed)
    yield from _limits(raw)
    yield from _scaling(raw)
    if benchmark.job is not None and "job" not in raw:
        yield from _unprojected(benchmark.job.unit)


def _inexact(counted: Sequence[Raw]) -> Found:
    names = counters.inexact(counted)
    if names:
        yield warning(
            "counters_inexact",
            f"two countings differ in {', '.join(names)}",
            "seed every random generator, and look for work that depends on time or on threads",
        )


def _guards(repetitions: Sequence[Raw], guards: Mapping[str, Guard]) -> Found:
    for name, guard in guards.items():
        values = [row["quality"][name] for row in repetitions if name in row["quality"]]
        if not values:
            yield warning(
                "quality_missing",
                f"the benchmark has a guard on {name} but never reported it",
                f'call paceline.quality("{name}", value) after the loop',
                taints=True,
            )
        elif (bound := _violated(guard, mean(values))) is not None:
            yield warning(
                "quality_below_guard",
                f"{name} is {mean(values):.4g}, its guard is {bound}",
                "a speed that is reached without learning is no speed: look at what changed",
                taints=True,
            )


def _violated(guard: Guard, value: float) -> str | None:
    if guard.minimum is not None and value < guard.minimum:
        return f"at least {guard.minimum:g}"
    if guard.maximum is not None and value > guard.maximum:
        return f"at most {guard.maximum:g}"
    return None


def _dropped(timed: Sequence[Timed]) -> Found:
    if any(one.result["dropped_phases"] for one in timed):
        yield warning(
            "too_many_phases",
            "the code has more phases than are kept apart; the others' time is in the phases around them",
            "name phases by kind of work, not by data",
        )


def _limits(raw: Raw) -> Found:
    on_device = raw["environment"]["path"] == "cuda"
    for row in raw["limits"]:
        name = f"{row['metric']}:{row['phase']}" if row["phase"] else row["metric"]
        if row["crossed"]:
            below = row["minimum"] is not None and row["value"] < row["minimum"]
            known = metrics.describe_metric(row["metric"])
            unit = known.unit if known else "1"
            bound = format_amount(row["minimum" if below else "maximum"], unit)
            yield warning(
                "limit_crossed",
                f"{name} is {format_amount(row['value'], unit)}, "
                f"its limit is at {'least' if below else 'most'} {bound}",
                "look at what changed; if this is right now, move the limit in the manifest",
            )
        elif row["value"] is None and (
            on_device or not name.startswith(("gpu_", "device_", "phase_device_"))
        ):
            yield warning(
                "limit_not_measured",
                f"there is a limit on {name}, which wasn't measured",
                "check the name of the metric and of its phase, and that the code reports it",
            )


def _scaling(raw: Raw) -> Found:
    names = {row["name"] for row in raw.get("scaling", {}).get("exponents", ())}
    if "scaling" in raw and "scaling_exponent" not in names:
        shortest = min(row["seconds"] for row in raw["scaling"]["points"])
        yield warning(
            "scaling_too_short",
            f"the sweep's shortest loop took {shortest * 1000:.2g} ms, too little to be timed",
            "sweep over larger values",
        )
    yield from _swept_beside_others(raw.get("scaling", {}).get("points", ()))
    for row in raw.get("scaling", {}).get("exponents", ()):
        if (row["name"], row["phase"]) == ("scaling_exponent", None) and row["high"] - row["low"] > UNCERTAIN:
            yield warning(
                "scaling_uncertain",
                f"the scaling exponent lies anywhere between {row['low']:.2f} and {row['high']:.2f}",
                "sweep over more values, larger ones, with more repetitions, on a quieter machine",
            )


def _swept_beside_others(points: Sequence[Raw]) -> Found:
    """Of each value the repetition that counts, the fastest: a sweep is watched by nothing else."""
    fastest: dict[float, Raw] = {}
    for one in points:
        if one["seconds"] < fastest.get(one["value"], {"seconds": math.inf})["seconds"]:
            fastest[one["value"]] = one
    waited = {value: one.get("waited", 0.0) for value, one in fastest.items()}
    worst = max(waited, key=lambda value: waited[value], default=None)
    if worst is not None and waited[worst] > CONTENTION_SHARE:
        yield warning(
            "scaling_contention",
            f"the sweep's loop with {worst:g} waited for a processor for {waited[worst]:.0%} of its time",
            "end other work on the machine while it measures",
        )


def _unprojected(unit: str) -> Found:
    yield warning(
        "job_not_projected",
        f"the full job isn't projected: nothing said how many {unit} a second are done",
        f'report them by paceline.count("{unit}"), or sweep over that parameter',
    )
