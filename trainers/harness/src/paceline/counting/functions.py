"""Function calls of one thread, by function and phase: a profile callback that doesn't bill its own time."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

from ..measured.marks import ThreadState

BUILT_IN = "(built-in)"
PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"

Key = CodeType | str


class Row:
    """One function in one phase: calls, own and cumulative seconds. `depth` counts its open calls."""

    __slots__ = ("calls", "cumulative", "depth", "own")

    def __init__(self) -> None:
        self.calls = 0
        self.own = 0.0
        self.cumulative = 0.0
        self.depth = 0


class ThreadProfile:
    """Counts the calls of the thread whose state it is given, while the switch is on."""

    def __init__(self, state: ThreadState, switch: Switch) -> None:
        self._state = state
        self._switch = switch
        self.rows: dict[tuple[Key, str], Row] = {}
        self._stack: list[tuple[Row | None, float]] = []
        self._opaque_from: int | None = None
        self._last = perf_counter()

    def callback(self, frame: FrameType, event: str, arg: Any) -> None:
        """Take one event of `sys.setprofile`."""
        if not self._switch.on:
            return
        now = perf_counter()
        stack = self._stack
        if stack and stack[-1][0] is not None:
            stack[-1][0].own += now - self._last
        if event == "call":
            self._enter_python(frame.f_code, now)
        elif event == "c_call":
            self._enter_built_in(arg, now)
        elif len(stack) > 1:
            self._leave(now)
        else:
            self._land(frame.f_back if event == "return" else frame, now)
        # The time from here to the next event is the program's; what lies between is ours.
        self._last = perf_counter()

    def finish(self) -> None:
        """Close the calls that are still open."""
        now = perf_counter()
        while self._stack:
            self._leave(now)

    def _land(self, frame: FrameType | None, now: float) -> None:
        """Bill what follows to a function that was called before the window began."""
        while self._stack:
            self._leave(now)
        if frame is None or frame.f_code.co_filename.startswith(PACKAGE):
            return
        row = self._row(frame.f_code)
        row.depth += 1
        self._stack.append((row, now))

    def _enter_python(self, code: CodeType, now: float) -> None:
        if self._opaque_from is not None:
            self._stack.append((None, now))
        elif code.co_filename.startswith(PACKAGE):
            # Marks call back into the program (a loader's next item); a dispatch mode doesn't.
            if code.co_filename.endswith("operations.py"):
                self._opaque_from = len(self._stack)
            self._stack.append((None, now))
        else:
            self._count(code, now)

    def _enter_built_in(self, function: Any, now: float) -> None:
        if self._opaque_from is not None or (self._stack and self._stack[-1][0] is None):
            self._stack.append((None, now))
        else:
            self._count(_built_in_name(function), now)

    def _count(self, key: Key, now: float) -> None:
        row = self._row(key)
        row.calls += 1
        row.depth += 1
        self._stack.append((row, now))

    def _leave(self, now: float) -> None:
        row, entered = self._stack.pop()
        if self._opaque_from is not None and len(self._stack) <= self._opaque_from:
            self._opaque_from = None
        if row is not None:
            row.depth -= 1
            # A function that calls itself is inside its own outermost call.
            if row.depth == 0:
                row.cumulative += now - entered

    def _row(self, key: Key) -> Row:
        place = (key, self._state.node.path)
        row = self.rows.get(place)
        if row is None:
            row = self.rows[place] = Row()
        return row


class Switch:
    """Turns all threads' profiles on and off at once."""

    def __init__(self) -> None:
        self.on = False


def _built_in_name(function: Any) -> str:
    module = getattr(function, "__module__", None)
    # A method of an object has no module, its qualified name carries the type: list.append.
    return f"{module}.{function.__qualname__}" if module and module != "builtins" else function.__qualname__


def place(key: Key, folder: Path) -> tuple[str, str, int]:
    """Return the function's name, file and line; the file is relative to the folder when inside it.

    Files of installed packages and of Python itself start with `site-packages/` and `python/`, so that
    profiles of two environments can be subtracted.
    """
    if isinstance(key, str):
        return key[:200], BUILT_IN, 0
    return key.co_qualname[:200], _file(key.co_filename, folder)[-200:], key.co_firstlineno


def _file(name: str, folder: Path) -> str:
    path = Path(name)
    for root, prefix in _roots(folder):
        if path.is_relative_to(root):
            return prefix + path.relative_to(root).as_posix()
    return name or "(unknown)"


def _roots(folder: Path) -> list[tuple[Path, str]]:
    paths = sysconfig.get_paths()
    packages = [(Path(paths[kind]), "site-packages/") for kind in ("purelib", "platlib")]
    standard = [(Path(paths[kind]), "python/") for kind in ("stdlib", "platstdlib")]
    # An environment may lie inside the folder, and packages inside the standard library's folder.
    return [*packages, *standard, (folder, "")]
