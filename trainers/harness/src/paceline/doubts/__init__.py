"""Doubts about a run, told as warnings: what was seen, and what to do about it.

A warning that taints keeps the run out of judgement, so the thresholds for tainting are wide: a machine
that is merely busy makes a point less certain, and its interval already says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..benchmarks import Benchmark
from ..measurement import Timed
from . import machine, results, steadiness
from .warning import Raw, Warnings


def find(raw: Raw, timed: Sequence[Timed], counted: Sequence[Raw], benchmark: Benchmark) -> Warnings:
    """Return the document's warnings, those that taint first."""
    found = [
        *steadiness.doubts(raw),
        *machine.doubts(raw, timed),
        *results.doubts(raw, timed, counted, benchmark),
    ]
    return sorted(found, key=lambda one: not one["taints"])
