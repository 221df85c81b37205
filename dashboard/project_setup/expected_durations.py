"""How long measuring will take: as the same cases took before; else what their time limits allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dashboard.project_setup.manifests import PlannedBenchmark

# So much of a measurement must be behind it before that tells how long the rest will take.
LEAST_PROGRESS = 0.1


def seconds_left_by_progress(progress: float, elapsed: float) -> float | None:
    """Of a measurement whose share `progress` took `elapsed` seconds; None where that is too little."""
    return elapsed * (1 - progress) / progress if progress >= LEAST_PROGRESS else None


@dataclass(frozen=True, slots=True)
class ExpectedDuration:
    """Of one commit's runs on one machine: of `known` cases, whose runs took `seconds` before, and of
    `unknown` ones, which may take `longest_seconds`; 0 where no time limit is known either.
    """

    known: int = 0
    seconds: float = 0.0
    unknown: int = 0
    longest_seconds: float = 0.0

    def __add__(self, other: ExpectedDuration) -> ExpectedDuration:
        return ExpectedDuration(
            self.known + other.known,
            self.seconds + other.seconds,
            self.unknown + other.unknown,
            self.longest_seconds + other.longest_seconds,
        )


def expect_benchmark(benchmark: PlannedBenchmark, durations: Mapping[str, float]) -> ExpectedDuration:
    """`durations`: seconds by the case's name."""
    known = [durations[case] for case in benchmark.cases if case in durations]
    unknown = len(benchmark.cases) - len(known)
    return ExpectedDuration(len(known), sum(known), unknown, unknown * benchmark.longest_seconds)


def expect_benchmarks(
    benchmarks: Iterable[PlannedBenchmark], durations: Mapping[str, float]
) -> ExpectedDuration:
    return sum((expect_benchmark(benchmark, durations) for benchmark in benchmarks), ExpectedDuration())
