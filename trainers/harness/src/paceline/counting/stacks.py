"""What the threads' call trees add up to: rows per function, calls per phase, stacks for a flame graph."""

from __future__ import annotations

import math
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from ..document import UNATTRIBUTED
from .functions import Call, Key, ThreadProfile

BUILT_IN = "(built-in)"
NAME_LIMIT = 200
# Bounds of what one document carries; see the harness's README.
STACK_LIMIT = 600
DEPTH_LIMIT = 64
TEXT_LIMIT = 400_000

Place = tuple[str, str, int]
Row = dict[str, Any]
# Where dynamo goes on after a graph break: a function of its own, named by dynamo.
RESUMED = "torch_dynamo_resume_in_"


def functions(profiles: Iterable[ThreadProfile], folder: Path, steps: int) -> list[Row]:
    """Return one row per function: calls by phase, own and cumulative seconds, all per step."""
    numbers: defaultdict[Place, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    times: defaultdict[Place, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for profile in profiles:
        for call, whole in _wholes(profile):
            at = place(call.key, folder)
            numbers[at][call.phase.path or UNATTRIBUTED] += call.calls
            times[at] = times[at][0] + call.own, times[at][1] + whole
    return [
        {
            "function": at[0],
            "file": at[1],
            "line": at[2],
            "calls": {path: number / steps for path, number in found.items()},
            "self": times[at][0] / steps,
            "cumulative": times[at][1] / steps,
        }
        for at, found in numbers.items()
    ]


def calls(profiles: Iterable[ThreadProfile], steps: int) -> dict[str, float]:
    """Return the function calls per step by phase."""
    return _by_phase((call for profile in profiles for call in profile.calls), steps)


def graph_breaks(profiles: Iterable[ThreadProfile], steps: int) -> dict[str, float]:
    """Return by phase how often per step compiled code went on behind a graph break."""
    return _by_phase(
        (call for profile in profiles for call in profile.calls if _name(call.key).startswith(RESUMED)), steps
    )


def stacks(profiles: Iterable[ThreadProfile], folder: Path, steps: int) -> dict[str, Any]:
    """Return the heaviest stacks as `rows`, outermost frame first, and the sums of all others as `rest`."""
    found, others = _stacks(profiles, folder)
    ordered = sorted(found.items(), key=lambda pair: (-pair[1][1], pair[0]))
    rows: list[Row] = []
    size = 0
    for (stack, path), (number, own) in ordered:
        frames = [spell(*one) for one in stack]
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
Stacks = dict[tuple[tuple[Place, ...], str], Sums]


def _stacks(profiles: Iterable[ThreadProfile], folder: Path) -> tuple[Stacks, list[Sums]]:
    """Return calls and own seconds by stack and phase, and those of calls that no stack is shown for."""
    found: Stacks = {}
    others: list[Sums] = []
    for profile in profiles:
        around: dict[Call | None, tuple[Place, ...]] = {}
        for call in profile.calls:
            stack = around.get(call.parent, ())
            if not call.hidden:
                stack = (*stack, place(call.key, folder))
            around[call] = stack
            if call.hidden or not (call.calls or call.own):
                continue
            if call.flat or len(stack) > DEPTH_LIMIT:
                others.append((call.calls, call.own))
            else:
                number, own = found.get((stack, call.phase.path), (0, 0.0))
                found[stack, call.phase.path] = number + call.calls, own + call.own
    return found, others


def _by_phase(found: Iterable[Call], steps: int) -> dict[str, float]:
    numbers: defaultdict[str, int] = defaultdict(int)
    for call in found:
        if not call.hidden:
            numbers[call.phase.path or UNATTRIBUTED] += call.calls
    return {path: number / steps for path, number in numbers.items() if number}


def _wholes(profile: ThreadProfile) -> Iterator[tuple[Call, float]]:
    """Yield each call of the program with the seconds that it adds to its function's cumulative time.

    A function that calls itself is inside its own outermost call, so all others add nothing.
    """
    totals: defaultdict[Call, float] = defaultdict(float)
    for call in reversed(profile.calls):
        totals[call] += call.own + call.foreign
        if call.parent is not None:
            totals[call.parent] += totals[call]
    above: dict[Call, frozenset[Key]] = {}
    for call in profile.calls:
        around = above.get(call.parent, frozenset()) if call.parent is not None else frozenset()
        above[call] = around if call.key in around else around | {call.key}
        if not call.hidden:
            yield call, 0.0 if call.key in around else totals[call]


def _name(key: Key) -> str:
    if isinstance(key, CodeType):
        return key.co_name
    return key if isinstance(key, str) else f"{key.__module__}.{key.__qualname__}"


def place(key: Key, folder: Path) -> Place:
    """Return the function's name, file and line; the file is relative to the folder when inside it.

    Files of installed packages and of Python itself start with `site-packages/` and `python/`, so that
    profiles of two environments can be subtracted.
    """
    if isinstance(key, CodeType):
        return _clean(key.co_qualname)[:NAME_LIMIT], _file(key.co_filename, folder), key.co_firstlineno
    return _clean(_name(key).removeprefix("builtins."))[:NAME_LIMIT], BUILT_IN, 0


def spell(function: str, file: str, line: int) -> str:
    """Spell a frame of a stack: `Snake.step environment.py:40`, or `math.sqrt (built-in)`."""
    where = file if file == BUILT_IN else f"{file[-100:]}:{line}"
    return f"{function[:150]} {where}"


def _clean(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)


@cache
def _file(name: str, folder: Path) -> str:
    path = Path(name)
    for root, prefix in _roots(folder):
        if path.is_relative_to(root):
            return _clean(prefix + path.relative_to(root).as_posix())[-NAME_LIMIT:]
    return _clean(name)[-NAME_LIMIT:] or "(unknown)"


@cache
def _roots(folder: Path) -> list[tuple[Path, str]]:
    paths = sysconfig.get_paths()
    packages = [(Path(paths[kind]), "site-packages/") for kind in ("purelib", "platlib")]
    standard = [(Path(paths[kind]), "python/") for kind in ("stdlib", "platstdlib")]
    # An environment may lie inside the folder, and packages inside the standard library's folder.
    return [*packages, *standard, (folder, "")]
