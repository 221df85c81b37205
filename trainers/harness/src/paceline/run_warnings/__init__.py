"""Warnings about a run: what was seen, and what to do about it.

A warning that taints keeps the run out of judgement, so the thresholds for tainting are wide: a machine
that is merely busy makes a point less certain, and its interval already says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..manifest.benchmarks import Benchmark
from ..measurement import ProfiledRepetition, TimedRepetition
from ..watching.measurement_errors import TooFewStepsError
from . import device_use, devices, machine, results, stability
from .warning import Raw, Warnings


def find_warnings(
    raw: Raw,
    timed: Sequence[TimedRepetition],
    counted: Sequence[Raw],
    benchmark: Benchmark,
    profiled: ProfiledRepetition | None = None,
    uncounted: TooFewStepsError | None = None,
) -> Warnings:
    """Return the document's warnings, those that taint first."""
    warnings = [
        *stability.stability_warnings(raw),
        *machine.machine_warnings(raw),
        *devices.device_warnings(raw, timed),
        *device_use.device_use_warnings(raw, profiled),
        *results.result_warnings(raw, timed, counted, benchmark),
        *results.counting_warnings(uncounted),
    ]
    return sorted(warnings, key=lambda warning: not warning["taints"])
