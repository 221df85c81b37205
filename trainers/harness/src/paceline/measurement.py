"""What a measurement is asked for, and what it left: the repetitions and what was seen beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .manifest import scaling
from .manifest.benchmarks import Benchmark, Case
from .timeline.profiler_errors import ProfilerError
from .watching.measurement_errors import TooFewStepsError
from .watching.sampler import Sampler


@dataclass(frozen=True, slots=True)
class MeasurementRequest:
    """A case of a benchmark to measure, seen from the manifest's folder."""

    benchmark: Benchmark
    case: Case
    folder: Path
    quick: bool
    arguments: tuple[str, ...] | None = None  # passed verbatim, instead of the case's parameters
    keep_running: bool = False  # the script runs to its own end, also without the harness
    turns: Path | None = None  # this side's pipe, where the steps take turns with another measurement's
    profile_device: bool = False  # one more repetition, profiled
    trace: Path | None = None  # where its trace is to be kept
    counted: Path | None = None  # a commit that was counted before, with its document
    hash_seed: int | None = None  # of Python's hashes, instead of the benchmark's seed


@dataclass(frozen=True, slots=True)
class TimedRepetition:
    """One timed repetition: the process's own result, and what was seen of it from outside."""

    index: int
    result: Mapping[str, Any]
    environment: Mapping[str, Any]
    started: float
    took: float
    calibration_before: float
    calibration_after: float
    sampler: Sampler
    step: Mapping[str, Any] | None = None  # what ended a step
    status: int = 0  # that of the script, which may fail behind its window
    ranks: Sequence[Mapping[str, Any]] = ()  # every rank's own result, where there are several
    ran: float = 0.0  # seconds from the process's start to its end; `took` has the calibration too

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of the measured window, in seconds after the process was started."""
        window = self.result["window"]
        return window["start"] - self.started, window["end"] - self.started

    @property
    def waited(self) -> float:
        """The share of the window in which the thread waited for a processor that others can have had."""
        return float(self.result["waited"])

    @property
    def stolen(self) -> float | None:
        """The share of all processors' time in the window that a virtual machine's host gave to others."""
        share: float | None = self.result.get("stolen")
        return share


@dataclass(frozen=True, slots=True)
class CountedCommit:
    """A commit that was counted, by its hash, and its document."""

    commit: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CountingInputs:
    """What the counting depends on: its key, what an earlier one shares with it, and whether that repeats.

    `taken_from` is that one where its counters are taken over.
    """

    key: str = ""
    taken_from: CountedCommit | None = None
    same_as: CountedCommit | None = None


@dataclass(frozen=True, slots=True)
class LearningProcess:
    """What one process with another seed learned; nothing else of it is looked at."""

    seed: int
    quality: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ProfiledRepetition:
    """What the profiled repetition left: the document's `device_profile`, or one sentence why there is none.

    `error` is what CUPTI or Kineto complained of, where kernels are missing; `unwritten` is why the trace
    wasn't kept.
    """

    profile: Mapping[str, Any] | None = None
    problem: str = ""
    error: ProfilerError | None = None
    unwritten: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """All results of a run: its repetitions, those set aside, the countings and the sweep's points.

    `learned` is what other seeds led to, for the guard; `profiled` is None where nothing was to be profiled;
    `uncounted` is why nothing was counted; `stages` are seconds of what isn't timed.
    """

    request: MeasurementRequest
    timed: Sequence[TimedRepetition]
    set_aside: Sequence[TimedRepetition]
    counted: Sequence[Mapping[str, Any]]
    points: Sequence[scaling.SweepPoint]
    driver: str | None
    created: str
    learned: Sequence[LearningProcess] = ()
    profiled: ProfiledRepetition | None = None
    uncounted: TooFewStepsError | None = None
    inputs: CountingInputs = CountingInputs()
    stages: Mapping[str, float] = field(default_factory=dict)
    began: float = 0.0
