"""Phases out of a Chrome trace, as torch.profiler, Perfetto and many others write it; gzip will do."""

from __future__ import annotations

import gzip
import heapq
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from dashboard.imports import units
from dashboard.imports.json_file import ReportProgress, locate_commit
from dashboard.imports.results import (
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportOrigin,
    ImportRefused,
    printable_text,
)
from dashboard.name_lengths import LONGEST_PHASE

LONGEST_TRACE = 1 << 30
LONGEST_NAME = 60
MOST_PHASES = 200
MICROSECOND = 1e-6
# What torch.profiler calls its steps, and the category of record_function: the user's own phases.
STEP = re.compile(r"ProfilerStep#\d+")
ANNOTATION = "user_annotation"
# It draws its whole recording as one span, on a thread of its own: nothing that was run.
RECORDING = "Trace"


@dataclass(frozen=True, slots=True)
class Span:
    """A named stretch of one thread, in microseconds."""

    start: float
    end: float
    name: str


def read_chrome_trace(
    path: Path, origin: ImportOrigin, report_progress: ReportProgress = None
) -> ImportedResults:
    """The phases of a trace of the commit that `origin` names; raises ImportRefused."""
    events = _load_events(path)
    commit, date = locate_commit(origin, path)
    results = ImportedResults()
    threads = _collect_spans(path, events)
    spans, steps = _choose_thread(threads)
    if not spans:
        raise ImportRefused(f"{path}: traceEvents holds no span with a name, a time and a duration.")
    values = tuple(_measure_phases(spans, steps, results))
    benchmark, pool = origin.benchmark or "trace", origin.pool or "imported"
    results.runs = [ImportedRun(commit, date, benchmark, {}, pool, values)]
    if report_progress:
        report_progress(1, 1)
    return results


def _load_events(path: Path) -> list[Any]:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            text = (gzip.GzipFile(fileobj=file) if packed else file).read(LONGEST_TRACE + 1)
        if len(text) > LONGEST_TRACE:
            raise ImportRefused(f"{path} has more than {LONGEST_TRACE >> 20} MiB.")
        trace = json.loads(text)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ImportRefused(f"{path} can't be read: {reason}.") from error
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise ImportRefused(f"{path}: traceEvents isn't a list.")
    return events


def _collect_spans(path: Path, events: Iterable[Any]) -> dict[tuple[str, str], list[tuple[Span, str]]]:
    """Of each (process, thread) its spans with their categories: complete events, and pairs of B and E."""
    threads: dict[tuple[str, str], list[tuple[Span, str]]] = defaultdict(list)
    began: dict[tuple[str, str], list[tuple[float, str, str]]] = defaultdict(list)
    for index, event in enumerate(events):
        if not isinstance(event, Mapping) or event.get("ph") not in ("X", "B", "E"):
            continue
        if event.get("cat") == RECORDING:
            continue
        thread = (str(event.get("pid")), str(event.get("tid")))
        start = _read_time(path, event, index, "ts")
        if event["ph"] == "X":
            end = start + _read_time(path, event, index, "dur")
            threads[thread].append((Span(start, end, str(event.get("name", ""))), str(event.get("cat", ""))))
        elif event["ph"] == "B":
            began[thread].append((start, str(event.get("name", "")), str(event.get("cat", ""))))
        elif began[thread]:
            since, name, category = began[thread].pop()
            threads[thread].append((Span(since, start, name), category))
    return threads


def _read_time(path: Path, event: Mapping[str, Any], index: int, name: str) -> float:
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ImportRefused(f"{path}: traceEvents[{index}].{name} is {value!r}, not a time.")
    return float(value)


def _choose_thread(threads: Mapping[tuple[str, str], list[tuple[Span, str]]]) -> tuple[list[Span], int]:
    """The spans that are phases, of one thread, and how many steps they are of.

    Of torch.profiler: within its steps what record_function names. Else: all spans of the thread that is
    busiest, as of one step.
    """
    stepped = {
        thread: [span for span, _ in spans if STEP.fullmatch(span.name)] for thread, spans in threads.items()
    }
    thread, steps = max(stepped.items(), key=lambda item: len(item[1]), default=(("", ""), []))
    if steps:
        marked = [
            span
            for span, category in threads[thread]
            if category == ANNOTATION and any(step.start <= span.start < step.end for step in steps)
        ]
        return sorted({*marked, *steps}, key=_nesting_order), len(steps)
    busiest = max(threads.values(), key=lambda spans: _covered_time(span for span, _ in spans), default=[])
    return sorted((span for span, _ in busiest if span.name), key=_nesting_order), 0


def _nesting_order(span: Span) -> tuple[float, float]:
    return (span.start, -span.end)


def _covered_time(spans: Iterable[Span]) -> float:
    covered, until = 0.0, -math.inf
    for span in sorted(spans, key=_nesting_order):
        covered += max(0.0, span.end - max(span.start, until))
        until = max(until, span.end)
    return covered


def _measure_phases(spans: list[Span], steps: int, results: ImportedResults) -> Iterator[ImportedValue]:
    times: dict[str, float] = defaultdict(float)
    for phase, span in _nest_spans(spans):
        times[phase] += span.end - span.start
    step_seconds = times.pop("", None)
    if step_seconds is None:
        step_seconds = max(span.end for span in spans) - spans[0].start
    count = steps or 1
    yield ImportedValue(units.standard_metric("step_time"), step_seconds * MICROSECOND / count)
    metric = units.standard_metric("phase_time")
    for phase, time in heapq.nlargest(MOST_PHASES, times.items(), key=itemgetter(1)):
        yield ImportedValue(metric, time * MICROSECOND / count, phase=phase)
    if len(times) > MOST_PHASES:
        results.skipped["shorter than the 200 longest phases"] += len(times) - MOST_PHASES


def _nest_spans(spans: list[Span]) -> Iterator[tuple[str, Span]]:
    """Each span with its path: the names of those around it; a step has an empty one."""
    around: list[tuple[Span, str]] = []
    for span in spans:
        while around and around[-1][0].end <= span.start:
            around.pop()
        outer = around[-1][1] if around else ""
        if STEP.fullmatch(span.name):
            path = ""
        else:
            # A slash nests phases: within a name it would make two of one.
            name = printable_text(span.name.replace("/", "-"), LONGEST_NAME)
            path = printable_text(f"{outer}/{name}" if outer else name, LONGEST_PHASE)
        around.append((span, path))
        yield path, span
