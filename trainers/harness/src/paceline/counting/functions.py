"""Function calls of one thread as a tree of stacks: a profile callback that doesn't bill its own time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any

from ..measured.phase_nodes import PhaseNode, ThreadState

# Frames of the harness and of what runs the script; what they call into the program counts all the same.
OURS = (f"{Path(__file__).parent.parent}{os.sep}", "<frozen runpy>")
# Its Python functions are ours where the marks ask for the thread, and the program's everywhere else.
THREADING = threading.__file__
# Wrappers of the program's built-in functions call them from here.
PASSING = f"{OURS[0]}auto{os.sep}passing.py"
# Distinct stacks kept in one process; calls on stacks that come later are counted by function only.
STACK_LIMIT = 20_000

# A built-in method is bound anew for every call, so it is known by its name and never kept.
Key = CodeType | BuiltinFunctionType | str
Callback = Callable[[FrameType, str, Any], None]


class Call:
    """One function at one place of the call tree and in one phase: calls, and own seconds.

    A flat call has no place: there is one per function and phase. `foreign` is the time that a caller in
    the tree spent in flat calls.
    """

    __slots__ = ("calls", "children", "flat", "foreign", "hidden", "key", "others", "own", "parent", "phase")

    def __init__(self, key: Key, phase: PhaseNode, parent: Call | None, *, hidden: bool) -> None:
        self.key = key
        self.phase = phase
        self.parent = parent
        self.hidden = hidden
        self.flat = False
        self.calls = 0
        self.own = self.foreign = 0.0
        self.children: dict[int | str, Call] = {}
        self.others: dict[PhaseNode, dict[int | str, Call]] = {}

    def inside(self, phase: PhaseNode) -> dict[int | str, Call]:
        """Return the calls made from here while the phase was the innermost open one."""
        return self.children if phase is self.phase else self.others.setdefault(phase, {})


class Switch:
    """What all threads' profiles share: whether they count, and how many stacks may still come."""

    def __init__(self) -> None:
        self.on = False
        self.room = STACK_LIMIT
        # Called by the events of threads while nothing is counted here.
        self.idle: Callable[[], None] | None = None


class ThreadProfile:
    """Counts the calls of the thread whose state it is given, while the switch is on."""

    def __init__(self, state: ThreadState, switch: Switch) -> None:
        self._state = state
        self._switch = switch
        self._root = Call("", state.root, None, hidden=True)
        self._stack = [self._root]
        self._flat: dict[tuple[int | str, PhaseNode], Call] = {}
        # Where the open calls left the tree: the caller, the depth of the stack there, and the moment.
        self._left: tuple[Call, int, float] | None = None
        self._last = perf_counter()
        # Callers stand before what they called.
        self.calls: list[Call] = []

    def callback(self, frame: FrameType, event: str, arg: Any) -> None:
        """Take one event of `sys.setprofile`."""
        if not self._switch.on:
            if self._switch.idle is not None:
                self._switch.idle()
            return
        now = perf_counter()
        stack = self._stack
        caller = stack[-1]
        caller.own += now - self._last
        if event == "call":
            if caller is self._root:
                caller = self._land(frame.f_back, now)
            code = frame.f_code
            # By identity: the hash of a code object reads all of its constants.
            place = id(code)
            phase = self._state.node
            children = caller.children if phase is caller.phase else caller.inside(phase)
            call = children.get(place) or self._add(place, code, phase, now)
            call.calls += 1
            stack.append(call)
        elif event == "c_call":
            if caller is self._root:
                caller = self._land(frame, now)
            key = arg.__qualname__ if arg.__module__ is None else arg
            place = key if key is not arg else id(arg)
            phase = self._state.node
            children = caller.children if phase is caller.phase else caller.inside(phase)
            call = children.get(place) or self._add(place, key, phase, now)
            call.calls += 1
            stack.append(call)
        elif len(stack) > 1:
            stack.pop()
            if self._left is not None and len(stack) <= self._left[1]:
                self._come_back(now)
        else:
            self._land(frame.f_back if event == "return" else frame, now)
        # The time from here to the next event is the program's; what lies between is ours.
        self._last = perf_counter()

    def restart(self) -> None:
        """Forget the open calls, after events were missed; the next event tells where the thread stands."""
        self._stack = [self._root]
        self._left = None
        self._last = perf_counter()

    def _land(self, frame: FrameType | None, now: float) -> Call:
        """Stand in a frame that was entered before the window began; that is no call."""
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        phase = self._state.root
        for entered in reversed(frames):
            code = entered.f_code
            known = self._stack[-1].inside(phase).get(id(code))
            self._stack.append(known or self._add(id(code), code, phase, now))
        return self._stack[-1]

    def _add(self, place: int | str, key: Key, phase: PhaseNode, now: float) -> Call:
        """Make the call that the innermost open one makes for the first time."""
        caller = self._stack[-1]
        if isinstance(key, CodeType):
            hidden = key.co_filename.startswith(OURS) or (
                key.co_filename == THREADING and caller.hidden and isinstance(caller.key, CodeType)
            )
        else:
            hidden = caller.hidden and not (
                isinstance(caller.key, CodeType) and caller.key.co_filename == PASSING
            )
        if caller.flat or self._switch.room <= 0:
            return self._add_flat(place, Call(key, phase, None, hidden=hidden), now)
        call = caller.inside(phase)[place] = Call(key, phase, caller, hidden=hidden)
        self._switch.room -= 1
        self.calls.append(call)
        return call

    def _add_flat(self, place: int | str, made: Call, now: float) -> Call:
        caller = self._stack[-1]
        call = self._flat.get((place, made.phase))
        if call is None:
            call = self._flat[place, made.phase] = made
            call.flat = True
            self.calls.append(call)
        if caller.flat:
            caller.inside(call.phase)[place] = call
        else:
            # Not kept with the caller: each time that the tree is left, it is noted here.
            self._left = caller, len(self._stack), now
        return call

    def _come_back(self, now: float) -> None:
        if self._left is not None:
            caller, _, since = self._left
            caller.foreign += now - since
            self._left = None


# All that runs inside the callback.
CODES = tuple(
    value.__code__
    for kind in (Call, ThreadProfile)
    for value in vars(kind).values()
    if hasattr(value, "__code__")
)
