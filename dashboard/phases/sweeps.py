"""Which phases bend the line of a sweep: what each did to a scaling exponent, or to a projected time.

An exponent is a sum of the logarithms of the sweep's times, each with a weight: the least-squares slope over
the logarithms of its values. A phase's part in a difference of logarithms is its part in the difference of
times over their logarithmic mean; these parts add up, whatever the sizes (the additive logarithmic mean
Divisia index, Ang, Energy Policy 32 (2004); here it is the Aumann-Shapley value as well).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from dashboard.metric_scale import MetricScale
from dashboard.models import Document
from dashboard.phases.paths import is_in_phase

EXPONENT = "scaling_exponent"
STEP_TIME = "scaling_exponent_step_time"
PROJECTED = "projected_time"


class SeriesLike(Protocol):
    @property
    def metric(self) -> MetricScale: ...
    @property
    def phase(self) -> str: ...


# Own seconds of each phase, by the value of the swept parameter; per step where the metric is.
Sweep = Mapping[float, Mapping[str, float]]
Points = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a metric is read off the line of a sweep: its slope, or its height at `amount`.

    `phase`: whose line it is; empty for the whole loop's.
    """

    parameter: str
    phase: str = ""
    per_step: bool = False
    amount: float | None = None

    def times(self, points: Points) -> Sweep:
        """Of each value the repetition that counts, the fastest; only the phase that is read, and inside."""
        fastest: dict[float, tuple[float, Mapping[str, float]]] = {}
        for point in points:
            if point["value"] <= 0 or point["steps"] <= 0:
                continue
            own = own_times(point["phases"])
            inside = {path: taken for path, taken in own.items() if is_in_phase(path, self.phase)}
            steps = point["steps"] if self.per_step else 1
            times = {path: taken / steps for path, taken in inside.items()}
            taken = math.fsum(times.values())
            if taken > 0 and taken < fastest.get(point["value"], (math.inf,))[0]:
                fastest[point["value"]] = taken, times
        return {value: times for value, (_, times) in fastest.items()}

    def weights(self, values: Sequence[float]) -> dict[float, float]:
        """What the logarithm of each value's time counts for in the metric (or in its logarithm)."""
        logs = {value: math.log(value) for value in values}
        middle = math.fsum(logs.values()) / len(logs)
        spread = math.fsum((log - middle) ** 2 for log in logs.values())
        if self.amount is None:
            return {value: (log - middle) / spread for value, log in logs.items()}
        reach = math.log(self.amount) - middle
        return {value: 1 / len(logs) + reach * (log - middle) / spread for value, log in logs.items()}

    def parts(self, before: Sweep, after: Sweep) -> dict[str, float]:
        """What each phase added to the metric (or to its logarithm) from one sweep to the other.

        They add up to the difference. The sweeps share two values at least, at which both took time.
        """
        shared = sorted(before.keys() & after.keys())
        weights = self.weights(shared)
        parts: defaultdict[str, float] = defaultdict(float)
        for value in shared:
            old, new = before[value], after[value]
            mean = logarithmic_mean(time_at(before, value), time_at(after, value))
            for path in old.keys() | new.keys():
                parts[path] += weights[value] * (new.get(path, 0.0) - old.get(path, 0.0)) / mean
        return dict(parts)


def make_reading(series: SeriesLike, parameter: str, amount: float | None) -> Reading | None:
    """How the series' metric is read off a sweep; None where it isn't.

    `amount` is that of the job, where it is projected along the sweep's line.
    """
    name = series.metric.name
    if name in (EXPONENT, STEP_TIME):
        return Reading(parameter, series.phase, per_step=name == STEP_TIME)
    return Reading(parameter, amount=amount) if name == PROJECTED and amount else None


def may_be_read_off_sweep(series: SeriesLike) -> bool:
    """True for an exponent, and a time that may be projected along a sweep; neither is one of a step."""
    return series.metric.is_exponent or series.metric.name == PROJECTED


def is_read_off_sweep(series: SeriesLike, runs: Sequence[int]) -> bool:
    """True where it is; a time may be projected from the measured rate instead: the runs say so."""
    if series.metric.name != PROJECTED:
        return series.metric.is_exponent
    return Document.objects.filter(run__in=runs, body__job__from="scaling").exists()


def own_times(phases: Mapping[str, float]) -> dict[str, float]:
    """Of phases with those nested in them: each without what the ones inside it took."""
    times = dict(phases)
    for path, taken in phases.items():
        outer = path.rpartition("/")[0]
        while outer and outer not in phases:
            outer = outer.rpartition("/")[0]
        if outer:
            times[outer] -= taken
    return {path: max(0.0, taken) for path, taken in times.items()}


def logarithmic_mean(first: float, second: float) -> float:
    """Of two positive numbers."""
    # Near each other the quotient loses its digits; there it is the geometric mean.
    if abs(first - second) <= 1e-6 * first:
        return math.sqrt(first * second)
    return (first - second) / math.log(first / second)


@dataclass(frozen=True, slots=True)
class ComparedSweeps:
    """Two sweeps of a metric that is read off them."""

    reading: Reading
    before: Sweep
    after: Sweep

    @property
    def parts(self) -> dict[str, float]:
        """What each phase added to the metric, or to its logarithm."""
        return self.reading.parts(self.before, self.after)

    @property
    def largest(self) -> float:
        """The largest value that both have."""
        return max(self.before.keys() & self.after.keys())

    @property
    def at_largest(self) -> dict[str, tuple[float, float]]:
        """Own seconds before and after by phase at that value: of the whole loop, or of a step of it."""
        old, new = self.before[self.largest], self.after[self.largest]
        return {path: (old.get(path, 0.0), new.get(path, 0.0)) for path in sorted(old.keys() | new.keys())}

    @property
    def at(self) -> str:
        """What those seconds are of: `the whole loop with episodes 1,024`."""
        what = "a step" if self.reading.per_step else "the whole loop"
        return f"{what} with {self.reading.parameter} {self.largest:,g}"


def compare_sweeps(reading: Reading, before: Sweep, after: Sweep) -> ComparedSweeps | None:
    """By the values at which both took time; None where these are too few for a line."""
    timed = [
        value for value in before.keys() & after.keys() if time_at(before, value) and time_at(after, value)
    ]
    if len(timed) < 2:
        return None
    return ComparedSweeps(
        reading, {value: before[value] for value in timed}, {value: after[value] for value in timed}
    )


def time_at(sweep: Sweep, value: float) -> float:
    return math.fsum(sweep[value].values())


def compare_runs(series: SeriesLike, good: Sequence[int], bad: Sequence[int]) -> ComparedSweeps | None:
    """By the documents of runs; None where the metric isn't read off a sweep, or a side has no such sweep.

    Runs that swept something else, or with other parameters, aren't compared.
    """
    if not may_be_read_off_sweep(series):
        return None
    rows = Document.objects.filter(run__in=[*good, *bad]).values_list("run_id", "body__scaling", "body__job")
    known = {run: (swept, job or {}) for run, swept, job in rows if swept}
    first = next((known[run] for run in bad if run in known), None)
    if first is None:
        return None
    swept, job = first
    amount = job["amount"] if job.get("from") == "scaling" else None
    reading = make_reading(series, swept["parameter"], amount)
    if reading is None:
        return None
    alike = {run: sweep["points"] for run, (sweep, _) in known.items() if is_same_sweep(sweep, swept)}
    sides = [[reading.times(alike[run]) for run in runs if run in alike] for runs in (good, bad)]
    if not all(sides):
        return None
    return compare_sweeps(reading, median_sweep(sides[0]), median_sweep(sides[1]))


def is_same_sweep(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return all(first.get(name) == second.get(name) for name in ("parameter", "params"))


def median_sweep(sweeps: Sequence[Sweep]) -> Sweep:
    """The median of each phase at each value that all of them have; what one lacks took 0 there."""
    values = set.intersection(*(set(sweep) for sweep in sweeps))
    return {
        value: {
            path: float(median(sweep[value].get(path, 0.0) for sweep in sweeps))
            for path in sorted({path for sweep in sweeps for path in sweep[value]})
        }
        for value in sorted(values)
    }
