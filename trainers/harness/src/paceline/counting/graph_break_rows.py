"""Where compiled code was left at graph breaks: place, reason, and how often per step."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from ..phase_names import UNATTRIBUTED
from .call_tree import CallNode, ThreadProfile
from .compilation import GraphBreak
from .profile_rows import printable_name, relative_file

ROW_LIMIT = 50
REASON_LIMIT = 200
# Where the compiler goes on after a graph break: a function of its own, named after the place.
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")

Place = tuple[str, int, str]


def graph_breaks_by_phase(profiles: Iterable[ThreadProfile], steps: int) -> dict[str, float]:
    """Return by phase how often per step compiled code went on behind a graph break."""
    numbers: defaultdict[str, int] = defaultdict(int)
    for call, _ in _resumed_calls(profiles):
        numbers[call.phase.path or UNATTRIBUTED] += call.calls
    return {path: number / steps for path, number in numbers.items() if number}


def graph_break_rows(
    profiles: Iterable[ThreadProfile], reasons: Sequence[GraphBreak], folder: Path, steps: int
) -> list[dict[str, Any]]:
    """Return the places of graph breaks, the most frequent first, those that were only met before last."""
    numbers: defaultdict[Place, int] = defaultdict(int)
    for call, place in _resumed_calls(profiles):
        numbers[place] += call.calls
    causes: dict[Place, str] = {}
    for found in reasons:
        # The frame that goes on may be a caller of the one that broke the graph.
        for file, line, function in found.frames:
            causes.setdefault((file, line, function), found.reason)
        if found.frames and not numbers.keys() & set(found.frames):
            numbers[found.frames[-1]] += 0
    ordered = sorted(numbers, key=lambda place: (-numbers[place], place))
    return [
        {
            "function": printable_name(place[2])[:REASON_LIMIT],
            "file": relative_file(place[0], folder),
            "line": place[1],
            "breaks": numbers[place] / steps,
            "reason": printable_name(causes.get(place, ""))[:REASON_LIMIT] or None,
        }
        for place in ordered[:ROW_LIMIT]
    ]


def _resumed_calls(profiles: Iterable[ThreadProfile]) -> list[tuple[CallNode, Place]]:
    calls = [call for profile in profiles for call in profile.calls if not call.is_harness and call.calls]
    found = []
    for call in calls:
        resumed = _RESUMED.fullmatch(call.key.co_name) if isinstance(call.key, CodeType) else None
        if resumed and isinstance(call.key, CodeType):
            found.append((call, (call.key.co_filename, int(resumed[2]), resumed[1])))
    return found
