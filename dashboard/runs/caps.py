"""What whoever runs the site allows, however much a manifest or a push asks for."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from paceline.manifest import Benchmark, ManifestError

from dashboard.models import Project, Run
from dashboard.name_lengths import LONGEST_KEY
from dashboard.repositories import CommitFacts

# Of a commit, however it is described, the benchmarks that are measured.
CommitBenchmarks = tuple[object, list[Benchmark]]


class TooManyRuns(Exception):  # noqa: N818 - reads as a fact
    """More runs are asked for than are allowed; the message is one sentence."""


def check_benchmarks(benchmarks: Sequence[Benchmark], facts: CommitFacts) -> None:
    """Refuse what one commit may not ask for; raises ManifestError."""
    check_limits(benchmarks, facts.hash[:10], f"Commit {facts.hash[:10]}")


def check_limits(benchmarks: Sequence[Benchmark], where: str, subject: str) -> None:
    """Refuse what a manifest may not ask for; `where` and `subject` name it. Raises ManifestError."""
    for benchmark in benchmarks:
        for case in benchmark.cases:
            if len(case.key) > LONGEST_KEY:
                raise ManifestError(
                    f"A case of {benchmark.name} at {where} has {len(case.key)} characters of "
                    f"parameters, at most {LONGEST_KEY} are allowed."
                )
        for key, asked, allowed, variable in (
            ("time_limit", benchmark.time_limit, settings.PACELINE_MOST_SECONDS, "PACELINE_MOST_SECONDS"),
            (
                "repetitions",
                benchmark.repetitions,
                settings.PACELINE_MOST_REPETITIONS,
                "PACELINE_MOST_REPETITIONS",
            ),
        ):
            if asked > allowed:
                raise ManifestError(
                    f"benchmarks.{benchmark.name}.{key} is {asked} at {where}, "
                    f"this site allows {allowed} ({variable})."
                )
    cases = count_cases(benchmarks)
    if cases > settings.PACELINE_MOST_CASES:
        raise ManifestError(
            f"{subject} has {cases} cases, this site measures {settings.PACELINE_MOST_CASES} "
            "of a commit at most (PACELINE_MOST_CASES); choose some benchmarks."
        )


def count_cases(benchmarks: Sequence[Benchmark]) -> int:
    return sum(len(benchmark.cases) for benchmark in benchmarks)


def check_runs(project: Project, wanted: Sequence[CommitBenchmarks]) -> None:
    """Refuse more runs than a trigger may ask for, or than may wait; raises TooManyRuns."""
    asked = sum(count_cases(benchmarks) for _, benchmarks in wanted)
    if asked > settings.PACELINE_MOST_RUNS:
        raise TooManyRuns(
            f"{asked} runs are asked for, this site takes {settings.PACELINE_MOST_RUNS} at once "
            "(PACELINE_MOST_RUNS); ask for fewer commits or benchmarks."
        )
    waiting = Run.objects.filter(configuration__case__project=project, state=Run.State.REQUESTED).count()
    if waiting + asked > settings.PACELINE_MOST_WAITING:
        raise TooManyRuns(
            f"{waiting} runs of this project wait already, with {asked} more they are over the "
            f"{settings.PACELINE_MOST_WAITING} that may (PACELINE_MOST_WAITING)."
        )
