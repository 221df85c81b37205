"""Sums over the threads' call trees: rows per function, calls per phase, stacks for a flame graph."""

from __future__ import annotations

import math
import re
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from ..phase_names import UNATTRIBUTED
from .call_tree import CallNode, Key, ThreadProfile

BUILT_IN = "(built-in)"
NAME_LIMIT = 200
# Bounds of what one document carries; see the harness's README.
STACK_LIMIT = 600
DEPTH_LIMIT = 64
TEXT_LIMIT = 400_000
# What the module `tempfile` puts into a name.
_RANDOM_PART = re.compile(r"(?<=[/_.-])[a-z0-9_]{8}(?=[.][a-z]+$)")
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")

SourceLocation = tuple[str, str, int]
Row = dict[str, Any]


def function_rows(profiles: Iterable[ThreadProfile], folder: Path, steps: int) -> list[Row]:
    """Return one row per function: calls by phase, own and cumulative seconds, all per step."""
    numbers: defaultdict[SourceLocation, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    times: defaultdict[SourceLocation, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for profile in profiles:
        for call, cumulative in _cumulative_seconds(profile):
            location = source_location(call.key, folder)
            numbers[location][call.phase.path or UNATTRIBUTED] += call.calls
            times[location] = times[location][0] + call.own, times[location][1] + cumulative
    return [
        {
            "function": location[0],
            "file": location[1],
            "line": location[2],
            "calls": {path: number / steps for path, number in by_phase.items()},
            "self": times[location][0] / steps,
            "cumulative": times[location][1] / steps,
        }
        for location, by_phase in numbers.items()
    ]


def calls_by_phase(profiles: Iterable[ThreadProfile], steps: int) -> dict[str, float]:
    """Return the function calls per step by phase."""
    return _calls_per_step((call for profile in profiles for call in profile.calls), steps)


def stack_rows(profiles: Iterable[ThreadProfile], folder: Path, steps: int) -> dict[str, Any]:
    """Return the heaviest stacks as `rows`, outermost frame first, and the sums of all others as `rest`."""
    sums, others = _sums_by_stack(profiles, folder)
    ordered = sorted(sums.items(), key=lambda pair: (-pair[1][1], pair[0]))
    rows: list[Row] = []
    size = 0
    for (stack, path), (number, own) in ordered:
        frames = [format_frame(*location) for location in stack]
        size += sum(map(len, frames))
        if len(rows) < STACK_LIMIT and size <= TEXT_LIMIT:
            row = {"stack": frames, "phase": path or None, "calls": number / steps, "self": own / steps}
            rows.append(row)
        else:
            others.append((number, own))
    rest = {
        "stacks": len(others),
        "calls": sum(number for number, _ in others) / steps,
        "self": math.fsum(own for _, own in others) / steps,
    }
    return {"rows": rows, "rest": rest}


Sums = tuple[int, float]
Stacks = dict[tuple[tuple[SourceLocation, ...], str], Sums]


def _sums_by_stack(profiles: Iterable[ThreadProfile], folder: Path) -> tuple[Stacks, list[Sums]]:
    """Return calls and own seconds by stack and phase, and those of calls that no stack is shown for."""
    sums: Stacks = {}
    others: list[Sums] = []
    for profile in profiles:
        around: dict[CallNode | None, tuple[SourceLocation, ...]] = {}
        for call in profile.calls:
            stack = around.get(call.parent, ())
            if not call.is_harness:
                stack = (*stack, source_location(call.key, folder))
            around[call] = stack
            if call.is_harness or not (call.calls or call.own):
                continue
            if call.is_flat or len(stack) > DEPTH_LIMIT:
                others.append((call.calls, call.own))
            else:
                number, own = sums.get((stack, call.phase.path), (0, 0.0))
                sums[stack, call.phase.path] = number + call.calls, own + call.own
    return sums, others


def _calls_per_step(calls: Iterable[CallNode], steps: int) -> dict[str, float]:
    numbers: defaultdict[str, int] = defaultdict(int)
    for call in calls:
        if not call.is_harness:
            numbers[call.phase.path or UNATTRIBUTED] += call.calls
    return {path: number / steps for path, number in numbers.items() if number}


def _cumulative_seconds(profile: ThreadProfile) -> Iterator[tuple[CallNode, float]]:
    """Yield each call of the program with the seconds that it adds to its function's cumulative time.

    A function that calls itself is inside its own outermost call, so all others add nothing.
    """
    totals: defaultdict[CallNode, float] = defaultdict(float)
    for call in reversed(profile.calls):
        totals[call] += call.own + call.seconds_in_flat_calls
        if call.parent is not None:
            totals[call.parent] += totals[call]
    above: dict[CallNode, frozenset[Key]] = {}
    for call in profile.calls:
        around = above.get(call.parent, frozenset()) if call.parent is not None else frozenset()
        above[call] = around if call.key in around else around | {call.key}
        if not call.is_harness:
            yield call, 0.0 if call.key in around else totals[call]


def _qualified_name(key: Key) -> str:
    if isinstance(key, CodeType):
        return key.co_name
    return key if isinstance(key, str) else f"{key.__module__}.{key.__qualname__}"


def source_location(key: Key, folder: Path) -> SourceLocation:
    """Return the function's name, file and line; the file is relative to the folder when inside it.

    Files of installed packages and of Python itself start with `site-packages/` and `python/`, so that
    profiles of two environments can be subtracted.
    """
    if isinstance(key, CodeType):
        name = printable_name(key.co_qualname)[:NAME_LIMIT]
        return name, relative_file(key.co_filename, folder), key.co_firstlineno
    return printable_name(_qualified_name(key).removeprefix("builtins."))[:NAME_LIMIT], BUILT_IN, 0


def format_frame(function: str, file: str, line: int) -> str:
    """Spell a frame of a stack: `Snake.step environment.py:40`, or `math.sqrt (built-in)`."""
    where = file if file == BUILT_IN else f"{file[-100:]}:{line}"
    return f"{function[:150]} {where}"


def printable_name(name: str) -> str:
    """Return the name with a question mark for what can't be shown."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


@cache
def relative_file(name: str, folder: Path) -> str:
    """Return the file's name as `source_location` does."""
    path = Path(name)
    for root, prefix in _file_roots(folder):
        if path.is_relative_to(root):
            return printable_name(prefix + path.relative_to(root).as_posix())[-NAME_LIMIT:]
    if path.parent == Path(tempfile.gettempdir()):
        # Code that was generated, as PyTorch Geometric's: its file has another name in each process.
        name = _RANDOM_PART.sub("*", name)
    # Packages of the system or the user, which an environment may see besides its own.
    installed = _PACKAGES.split(name)[1:]
    shown = f"site-packages/{installed[-1]}" if installed else name
    return printable_name(shown)[-NAME_LIMIT:] or "(unknown)"


@cache
def _file_roots(folder: Path) -> list[tuple[Path, str]]:
    paths = sysconfig.get_paths()
    packages = [(Path(paths[kind]), "site-packages/") for kind in ("purelib", "platlib")]
    standard = [(Path(paths[kind]), "python/") for kind in ("stdlib", "platstdlib")]
    # An environment may lie inside the folder, and packages inside the standard library's folder.
    return [*packages, *standard, (folder, "")]
