"""The full job: how long it would take, from the measured rate or from the scaling fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import scaling
from .fields import Fields
from .statistics import median, median_interval

STEPS = "steps"
# The logarithm of the longest time that is told: far beyond it an interval is only a word for "unknown".
_LONGEST = math.log(1e15)


@dataclass(frozen=True, slots=True)
class Job:
    """So many units of work; the unit is `steps`, the swept parameter, or a count that the code reports."""

    amount: float
    unit: str


def parse(fields: Fields | None) -> Job | None:
    """Read the manifest's table `job`; raises ManifestError."""
    if fields is None:
        return None
    unit = fields.required_text("unit")
    amount = fields.required_number("amount")
    fields.finish()
    if not unit.isprintable() or len(unit) > 100:
        raise fields.error("unit", "must be a printable name of at most 100 characters")
    if amount <= 0:
        raise fields.error("amount", f"is {amount:g}, must be above 0")
    return Job(amount, unit)


def project(
    job: Job,
    repetitions: Sequence[Mapping[str, Any]],
    sweep: scaling.Sweep | None,
    points: Sequence[scaling.Point],
) -> dict[str, Any] | None:
    """Return the document's job and `samples`, or None where the run didn't measure the job's unit."""
    if sweep is not None and job.unit == sweep.parameter:
        found = _from_scaling(job, points)
    else:
        found = _from_rate(job, repetitions)
    return found and {"amount": job.amount, "unit": job.unit, **found}


def _from_scaling(job: Job, points: Sequence[scaling.Point]) -> dict[str, Any] | None:
    at = math.log(job.amount)
    fitted = scaling.fit(points, scaling.seconds)
    if fitted is None:
        return None
    seconds, low, high = (math.exp(min(bound, _LONGEST)) for bound in fitted.predict(at))
    return {"seconds": seconds, "low": low, "high": high, "from": "scaling", "samples": [seconds]}


def _from_rate(job: Job, repetitions: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    rates = [_rate(job.unit, row) for row in repetitions]
    if not all(rates):
        return None
    samples = [job.amount / rate for rate in rates]
    low, high = median_interval(samples) or (None, None)
    return {"seconds": median(samples), "low": low, "high": high, "from": "rate", "samples": samples}


def _rate(unit: str, repetition: Mapping[str, Any]) -> float:
    """Return the repetition's units per second, 0 where it reported none."""
    per_step = 1.0 if unit == STEPS else float(repetition["counts"].get(unit, 0))
    return max(0.0, per_step * float(repetition["throughput"]))
