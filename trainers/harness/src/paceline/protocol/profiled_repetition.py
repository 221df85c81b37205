"""The profiled repetition, seen from the harness: how many steps, and what its trace says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..manifest.benchmarks import Benchmark
from ..measurement import ProfiledRepetition
from ..timeline.device_profile import EmptyTraceError, build_device_profile
from ..timeline.profiler_errors import find_profiler_error, read_profiler_output
from ..timeline.trace_events import read_trace
from ..timeline.trace_file import TraceFileError, load_trace, write_trace
from ..watching.process import MeasuredProcess

# Where nothing was counted it isn't known how many events a step has.
UNCOUNTED_STEPS = 20
# An operation is several events: those inside it, its launches and its kernels.
EVENTS_PER_OPERATION = 6
EVENTS_WANTED = 60_000
MOST_EVENTS = 10 * EVENTS_WANTED


def choose_steps(benchmark: Benchmark, counted: Sequence[Mapping[str, Any]]) -> int:
    """Return how many steps are profiled, so that the trace stays small; 0 where one is too much."""
    operations = [counting["operations"] for counting in counted if counting["operations"] is not None]
    if not operations:
        return min(UNCOUNTED_STEPS, benchmark.counting_steps)
    per_step = math.fsum(math.fsum(tally["kinds"].values()) for tally in operations[0].values())
    events = EVENTS_PER_OPERATION * per_step + 1
    if events > MOST_EVENTS:
        return 0
    return max(1, min(benchmark.counting_steps, int(EVENTS_WANTED / events)))


def read_profile(
    process: MeasuredProcess, left: Mapping[str, Any], keep_at: Path | None
) -> ProfiledRepetition:
    """Return what the ended process, or the first of its ranks, saw; keep its trace where that is wanted."""
    results = left.get("ranks") or [left["result"]]
    result = next((result for result in results if result["trace"]), results[0])
    if not result["trace"]:
        return ProfiledRepetition(problem=result["error"] or "the profiler left no trace")
    is_rank, unwritten = "ranks" in left or left.get("rank") is not None, ""
    try:
        raw = load_trace(Path(result["trace"]))
        if keep_at is not None:
            unwritten = _keep_trace(raw, keep_at)
        trace = read_trace(raw)
        profile = build_device_profile(trace, result["busy_share"], is_rank=is_rank)
    except (TraceFileError, EmptyTraceError) as error:
        return ProfiledRepetition(problem=str(error), unwritten=unwritten)
    # Kineto has no schema: what a release writes otherwise costs the profile, never the measurement.
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        problem = f"the profiler's trace can't be read: {type(error).__name__} {error}"
        return ProfiledRepetition(problem=problem, unwritten=unwritten)
    if result["path"] == "cuda" and not trace.activities:
        found = find_profiler_error(read_profiler_output(process.output))
        sentence = found.sentence if found else "the profiler saw no kernel, and printed no reason"
        return ProfiledRepetition(problem=sentence, error=found, unwritten=unwritten)
    return ProfiledRepetition(profile, unwritten=unwritten)


def _keep_trace(raw: Mapping[str, Any], path: Path) -> str:
    """Write the trace where it is wanted; return why that failed, empty where it didn't."""
    try:
        write_trace(raw, path)
    except (OSError, ValueError) as error:
        return f"{path}: {error}"
    return ""
