"""What a measurement is asked for, and what it left: the repetitions and what was seen beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import scaling
from .benchmarks import Benchmark, Case
from .watching.sampler import Sampler


@dataclass(frozen=True, slots=True)
class Request:
    """What to measure: a case of a benchmark, seen from the manifest's folder."""

    benchmark: Benchmark
    case: Case
    folder: Path
    quick: bool
    arguments: tuple[str, ...] | None = None  # passed verbatim, instead of the case's parameters
    turns: Path | None = None  # this side's pipe, where the steps take turns with another measurement's


@dataclass(frozen=True, slots=True)
class Timed:
    """One timed repetition: what the process left, and what was seen from outside."""

    index: int
    result: Mapping[str, Any]
    environment: Mapping[str, Any]
    started: float
    took: float
    calibration_before: float
    calibration_after: float
    sampler: Sampler

    @property
    def waited(self) -> float:
        """The share of the window in which the measured thread was ready and waited for a processor."""
        return float(self.result["waited"])


@dataclass(frozen=True, slots=True)
class Measurement:
    """All that a run left: its repetitions, those set aside, the countings and the sweep's points."""

    request: Request
    timed: Sequence[Timed]
    set_aside: Sequence[Timed]
    counted: Sequence[Mapping[str, Any]]
    points: Sequence[scaling.Point]
    driver: str | None
    created: str
