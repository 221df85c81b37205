"""A trace for chrome://tracing and Perfetto: read as Kineto left it, written with so many events at most."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# What a browser still opens, and what fits into memory while it is read.
EVENT_LIMIT = 200_000
BYTES_LIMIT = 256 * 2**20

Raw = dict[str, Any]


class TraceFileError(Exception):
    """The trace can't be read; the message is one sentence."""


def load_trace(path: Path) -> Raw:
    """Read a Chrome trace; raises TraceFileError."""
    if not path.exists():
        raise TraceFileError("the profiler left no trace")
    if path.stat().st_size > BYTES_LIMIT:
        size = path.stat().st_size // 2**20
        raise TraceFileError(f"the trace has {size} MiB, at most {BYTES_LIMIT // 2**20} are read")
    try:
        # A kernel's name may be cut in the middle of a letter.
        raw = json.loads(path.read_bytes().decode(errors="replace"))
    except ValueError as error:
        raise TraceFileError(f"the profiler's trace is no JSON: {error}") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("traceEvents"), list):
        raise TraceFileError("the profiler's trace has no events")
    return raw


def limit_trace(raw: Mapping[str, Any], limit: int = EVENT_LIMIT) -> Raw:
    """Return the trace with at most so many events: names and the earliest others, and how many are cut."""
    events = [event for event in raw["traceEvents"] if isinstance(event, dict)]
    named = [event for event in events if event.get("ph") == "M"]
    others = [event for event in events if event.get("ph") != "M"]
    others.sort(key=lambda event: _start_of_event(event))
    room = max(0, limit - len(named))
    kept = {name: value for name, value in raw.items() if name != "traceEvents"}
    # Where it was measured is nobody's business to whom the trace is given.
    kept.pop("host_name", None)
    return {
        **kept,
        "traceName": "paceline",
        "eventsCut": max(0, len(others) - room),
        "traceEvents": named[:limit] + others[:room],
    }


def write_trace(raw: Mapping[str, Any], path: Path) -> None:
    """Write the trace, compressed where the file's name ends in .gz, and rename it into place."""
    data = json.dumps(limit_trace(raw), ensure_ascii=True, separators=(",", ":")).encode()
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(gzip.compress(data, 6) if path.suffix == ".gz" else data)
    partial.replace(path)


def _start_of_event(event: Mapping[str, Any]) -> float:
    start = event.get("ts", 0.0)
    return float(start) if isinstance(start, int | float) else 0.0
