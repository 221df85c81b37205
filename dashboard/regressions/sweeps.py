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
from typing import Any

from dashboard.models import Document, Series
from dashboard.regressions.phases import holds

EXPONENT = "scaling_exponent"
STEP_TIME = "scaling_exponent_step_time"
PROJECTED = "projected_time"

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
            inside = {path: one for path, one in own(point["phases"]).items() if holds(self.phase, path)}
            steps = point["steps"] if self.per_step else 1
            times = {path: one / steps for path, one in inside.items()}
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
            mean = logarithmic_mean(sum_of(before, value), sum_of(after, value))
            for path in old.keys() | new.keys():
                parts[path] += weights[value] * (new.get(path, 0.0) - old.get(path, 0.0)) / mean
        return dict(parts)


def reading(series: Series, parameter: str, amount: float | None) -> Reading | None:
    """How the series' metric is read off a sweep; None where it isn't.

    `amount` is that of the job, where it is projected along the sweep's line.
    """
    name = series.metric.name
    if name in (EXPONENT, STEP_TIME):
        return Reading(parameter, series.phase, per_step=name == STEP_TIME)
    return Reading(parameter, amount=amount) if name == PROJECTED and amount else None


def may_be_read(series: Series) -> bool:
    """Is it an exponent, or a time that may be projected along a sweep? Neither is one of a step."""
    return series.metric.is_exponent or series.metric.name == PROJECTED


def is_read(series: Series, runs: Sequence[int]) -> bool:
    """Is it read off a sweep? A time may be projected from the measured rate instead: the runs say so."""
    if series.metric.name != PROJECTED:
        return series.metric.is_exponent
    return Document.objects.filter(run__in=runs, body__job__from="scaling").exists()


def own(phases: Mapping[str, float]) -> dict[str, float]:
    """Of phases with those nested in them: each without what the ones inside it took."""
    times = dict(phases)
    for path, taken in phases.items():
        outer = path.rpartition("/")[0]
        while outer and outer not in phases:
            outer = outer.rpartition("/")[0]
        if outer:
            times[outer] -= taken
    return {path: max(0.0, taken) for path, taken in times.items()}


def logarithmic_mean(one: float, other: float) -> float:
    """Of two positive numbers."""
    # Near each other the quotient loses its digits; there it is the geometric mean.
    if abs(one - other) <= 1e-6 * one:
        return math.sqrt(one * other)
    return (one - other) / math.log(one / other)


@dataclass(frozen=True, slots=True)
class Compared:
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


def compare(reading: Reading, before: Sweep, after: Sweep) -> Compared | None:
    """By the values at which both took time; None where these are too few for a line."""
    timed = [
        value for value in before.keys() & after.keys() if sum_of(before, value) and sum_of(after, value)
    ]
    if len(timed) < 2:
        return None
    return Compared(reading, {one: before[one] for one in timed}, {one: after[one] for one in timed})


def sum_of(sweep: Sweep, value: float) -> float:
    return math.fsum(sweep[value].values())


def between(series: Series, good: Sequence[int], bad: Sequence[int]) -> Compared | None:
    """By the documents of runs; None where the metric isn't read off a sweep, or a side has no such sweep.

    Runs that swept something else, or with other parameters, aren't compared.
    """
    if not may_be_read(series):
        return None
    rows = Document.objects.filter(run__in=[*good, *bad]).values_list("run_id", "body__scaling", "body__job")
    known = {run: (swept, job or {}) for run, swept, job in rows if swept}
    first = next((known[run] for run in bad if run in known), None)
    if first is None:
        return None
    swept, job = first
    found = reading(series, swept["parameter"], job["amount"] if job.get("from") == "scaling" else None)
    if found is None:
        return None
    alike = {run: one["points"] for run, (one, _) in known.items() if same_sweep(one, swept)}
    sides = [[found.times(alike[run]) for run in runs if run in alike] for runs in (good, bad)]
    return compare(found, middle(sides[0]), middle(sides[1])) if all(sides) else None


def same_sweep(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in ("parameter", "params"))


def middle(sweeps: Sequence[Sweep]) -> Sweep:
    """The median of each phase at each value that all of them have; what one lacks took 0 there."""
    values = set.intersection(*(set(one) for one in sweeps))
    return {
        value: {
            path: float(median(one[value].get(path, 0.0) for one in sweeps))
            for path in sorted({path for one in sweeps for path in one[value]})
        }
        for value in sorted(values)
    }
