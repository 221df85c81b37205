"""A manifest that the site keeps for a project: checked as a commit's is, and shown before it is kept."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from math import ceil

from paceline.manifest import FILE_NAME, Benchmark, ManifestError, decode_manifest, parse_manifest

from dashboard.models.projects import case_name
from dashboard.project_setup.errors import SetupError
from dashboard.runs.caps import check_limits

MOST_DIFFERENCES = 400
CONTEXT_LINES = 3
# What a manifest begins as where there is none.
EXAMPLE = """\
# Which standard training runs are measured, and how. The harness' page tells of every key.

[benchmarks.train]
version = 1            # raise it when what is measured changes
script = "train.py"    # a file of the repository
warmup_steps = 100     # left out of the statistics
steps = 1000           # measured
repetitions = 5
auto = true            # measure the script as it is, by what it calls
"""


@dataclass(frozen=True, slots=True)
class PlannedBenchmark:
    """A benchmark as a manifest has it. `longest_seconds`: what one run of it may take."""

    name: str
    script: str
    cases: tuple[str, ...]
    repetitions: int
    steps: int
    longest_seconds: int


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """`sign` is `+`, `-`, `@` or empty."""

    sign: str
    text: str


def read_manifest_text(written: str) -> str:
    """The text of a form's field as a file has it. Raises SetupError."""
    text = written.replace("\r\n", "\n")
    if "\0" in text:
        raise SetupError(f"{FILE_NAME}: holds a NUL, which no text has.", "manifest")
    try:
        return decode_manifest(text.encode("utf-8", "surrogatepass"), FILE_NAME)
    except ManifestError as error:
        raise SetupError(error.sentence, "manifest") from error
    except UnicodeEncodeError as error:
        raise SetupError(f"{error}.", "manifest") from error


def plan_benchmarks(text: str, where: str = FILE_NAME) -> list[PlannedBenchmark]:
    """The benchmarks of a manifest, within what this site allows. Raises SetupError with the wrong path."""
    try:
        benchmarks = list(parse_manifest(text, where).benchmarks.values())
        check_limits(benchmarks, where, "It")
    except ManifestError as error:
        raise SetupError(error.sentence, "manifest") from error
    return [describe_benchmark(benchmark) for benchmark in benchmarks]


def describe_benchmark(benchmark: Benchmark) -> PlannedBenchmark:
    return PlannedBenchmark(
        name=benchmark.name,
        script=benchmark.script,
        cases=tuple(case_name(benchmark.name, case.key) for case in benchmark.cases),
        repetitions=benchmark.repetitions,
        steps=benchmark.steps,
        longest_seconds=ceil(benchmark.time_limit),
    )


def compare_texts(before: str, after: str) -> list[DifferenceLine]:
    """The lines that differ, with some around them; bounded."""
    rows = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT_LINES)
    lines = [row for row in rows if not row.startswith(("---", "+++"))]
    return [
        DifferenceLine(row[:1].strip(), "" if row.startswith("@@") else row[1:])
        for row in lines[:MOST_DIFFERENCES]
    ]
