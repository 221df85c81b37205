"""The processors that a benchmark is kept on."""

from __future__ import annotations

import contextlib
import os

from ..manifest.benchmarks import Benchmark


def missing_processors(benchmark: Benchmark) -> list[int]:
    """Return the processors that the manifest asks for and this process may not use."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    return sorted(set(benchmark.affinity or ()) - usable)


def pin_process(pid: int, benchmark: Benchmark) -> None:
    """Keep a process, which has just been started, and all that it will start on the chosen processors."""
    if benchmark.affinity is not None:
        # A process that has ended already is reported by its exit status.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, benchmark.affinity)
