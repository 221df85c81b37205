"""The full job: how long it would take, from the measured rate or from the scaling fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..statistics import median, median_interval
from . import scaling
from .toml_table import TomlTable

STEPS = "steps"
# The logarithm of the longest time that is reported: far beyond it an interval is only a word for "unknown".
_LONGEST = math.log(1e15)


@dataclass(frozen=True, slots=True)
class Job:
    """So many units of work; the unit is `steps`, the swept parameter, or a count that the code reports."""

    amount: float
    unit: str


def parse_job(table: TomlTable | None) -> Job | None:
    """Read the manifest's table `job`; raises ManifestError."""
    if table is None:
        return None
    unit = table.required_string("unit")
    amount = table.required_number("amount")
    table.refuse_unread_keys()
    if not unit.isprintable() or len(unit) > 100:
        raise table.error("unit", "must be a printable name of at most 100 characters")
    if amount <= 0:
        raise table.error("amount", f"is {amount:g}, must be above 0")
    return Job(amount, unit)


def project_job(
    job: Job,
    repetitions: Sequence[Mapping[str, Any]],
    sweep: scaling.Sweep | None,
    points: Sequence[scaling.SweepPoint],
) -> dict[str, Any] | None:
    """Return the document's job and `samples`, or None where the run didn't measure the job's unit."""
    if sweep is not None and job.unit == sweep.parameter:
        projected = _project_from_scaling(job, points)
    else:
        projected = _project_from_rate(job, repetitions)
    return projected and {"amount": job.amount, "unit": job.unit, **projected}


def _project_from_scaling(job: Job, points: Sequence[scaling.SweepPoint]) -> dict[str, Any] | None:
    line = scaling.fit_power_law(points, scaling.loop_seconds)
    if line is None:
        return None
    seconds, low, high = (math.exp(min(bound, _LONGEST)) for bound in line.predict(math.log(job.amount)))
    return {"seconds": seconds, "low": low, "high": high, "from": "scaling", "samples": [seconds]}


def _project_from_rate(job: Job, repetitions: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    rates = [_units_per_second(job.unit, row) for row in repetitions]
    if not all(rates):
        return None
    samples = [job.amount / rate for rate in rates]
    low, high = median_interval(samples) or (None, None)
    return {"seconds": median(samples), "low": low, "high": high, "from": "rate", "samples": samples}


def _units_per_second(unit: str, repetition: Mapping[str, Any]) -> float:
    """Return the repetition's units per second, 0 where it reported none."""
    per_step = 1.0 if unit == STEPS else float(repetition["counts"].get(unit, 0))
    return max(0.0, per_step * float(repetition["throughput"]))
