"""Function calls of one thread as a tree of stacks, from a profile callback that leaves out its own time."""

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
HARNESS_FILES = (f"{Path(__file__).parent.parent}{os.sep}", "<frozen runpy>")
# Its Python functions are ours where the marks ask for the thread, and the program's everywhere else.
THREADING_FILE = threading.__file__
# Wrappers of the program's built-in functions call them from here.
PASSTHROUGH_FILE = f"{HARNESS_FILES[0]}auto{os.sep}passthrough.py"
# Distinct stacks kept in one process; calls on stacks that come later are counted by function only.
STACK_LIMIT = 20_000

# A built-in method is bound anew for every call, so it is known by its name and never kept.
Key = CodeType | BuiltinFunctionType | str
Callback = Callable[[FrameType, str, Any], None]


class CallNode:
    """One function at one place of the call tree and in one phase: calls, and own seconds.

    A flat call has no place: there is one per function and phase. A caller in the tree sums the time that it
    spent in them.
    """

    __slots__ = (
        *("calls", "children", "is_flat", "is_harness", "key", "other_phases", "own", "parent", "phase"),
        "seconds_in_flat_calls",
    )

    def __init__(self, key: Key, phase: PhaseNode, parent: CallNode | None, *, is_harness: bool) -> None:
        self.key = key
        self.phase = phase
        self.parent = parent
        self.is_harness = is_harness
        self.is_flat = False
        self.calls = 0
        self.own = self.seconds_in_flat_calls = 0.0
        self.children: dict[int | str, CallNode] = {}
        self.other_phases: dict[PhaseNode, dict[int | str, CallNode]] = {}

    def calls_in_phase(self, phase: PhaseNode) -> dict[int | str, CallNode]:
        """Return the calls made from here while the phase was the innermost open one."""
        return self.children if phase is self.phase else self.other_phases.setdefault(phase, {})


class ProfileSwitch:
    """Shared by the profiles of all threads: whether they count, and how many stacks may still be added."""

    def __init__(self) -> None:
        self.on = False
        self.stacks_left = STACK_LIMIT
        # Called by the events of threads while nothing is counted here.
        self.on_idle_event: Callable[[], None] | None = None


class ThreadProfile:
    """Counts the calls of the thread whose state it is given, while the switch is on."""

    def __init__(self, state: ThreadState, switch: ProfileSwitch) -> None:
        self._state = state
        self._switch = switch
        self._root = CallNode("", state.root, None, is_harness=True)
        self._stack = [self._root]
        self._flat_calls: dict[tuple[int | str, PhaseNode], CallNode] = {}
        # Where the open calls left the tree: the caller, the depth of the stack there, and the moment.
        self._left_tree_at: tuple[CallNode, int, float] | None = None
        self._last = perf_counter()
        # Callers stand before what they called.
        self.calls: list[CallNode] = []

    def callback(self, frame: FrameType, event: str, arg: Any) -> None:
        """Take one event of `sys.setprofile`."""
        if not self._switch.on:
            if self._switch.on_idle_event is not None:
                self._switch.on_idle_event()
            return
        now = perf_counter()
        stack = self._stack
        caller = stack[-1]
        caller.own += now - self._last
        if event == "call":
            if caller is self._root:
                caller = self._enter_open_frames(frame.f_back, now)
            code = frame.f_code
            # By identity: the hash of a code object reads all of its constants.
            identity = id(code)
            phase = self._state.node
            children = caller.children if phase is caller.phase else caller.calls_in_phase(phase)
            call = children.get(identity) or self._add_call(identity, code, phase, now)
            call.calls += 1
            stack.append(call)
        elif event == "c_call":
            if caller is self._root:
                caller = self._enter_open_frames(frame, now)
            key = arg.__qualname__ if arg.__module__ is None else arg
            identity = key if key is not arg else id(arg)
            phase = self._state.node
            children = caller.children if phase is caller.phase else caller.calls_in_phase(phase)
            call = children.get(identity) or self._add_call(identity, key, phase, now)
            call.calls += 1
            stack.append(call)
        elif len(stack) > 1:
            stack.pop()
            if self._left_tree_at is not None and len(stack) <= self._left_tree_at[1]:
                self._return_to_tree(now)
        else:
            self._enter_open_frames(frame.f_back if event == "return" else frame, now)
        # The time from here to the next event is the program's; what lies between is ours.
        self._last = perf_counter()

    def restart(self) -> None:
        """Drop the open calls after events were missed; the next event says where the thread stands."""
        self._stack = [self._root]
        self._left_tree_at = None
        self._last = perf_counter()

    def _enter_open_frames(self, frame: FrameType | None, now: float) -> CallNode:
        """Put the frames that were entered before the window began onto the stack, without counting them."""
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        phase = self._state.root
        for entered in reversed(frames):
            code = entered.f_code
            existing = self._stack[-1].calls_in_phase(phase).get(id(code))
            self._stack.append(existing or self._add_call(id(code), code, phase, now))
        return self._stack[-1]

    def _add_call(self, identity: int | str, key: Key, phase: PhaseNode, now: float) -> CallNode:
        """Add a call that the innermost open one makes for the first time."""
        caller = self._stack[-1]
        if isinstance(key, CodeType):
            is_harness = key.co_filename.startswith(HARNESS_FILES) or (
                key.co_filename == THREADING_FILE and caller.is_harness and isinstance(caller.key, CodeType)
            )
        else:
            is_harness = caller.is_harness and not (
                isinstance(caller.key, CodeType) and caller.key.co_filename == PASSTHROUGH_FILE
            )
        if caller.is_flat or self._switch.stacks_left <= 0:
            return self._add_flat(identity, CallNode(key, phase, None, is_harness=is_harness), now)
        call = caller.calls_in_phase(phase)[identity] = CallNode(key, phase, caller, is_harness=is_harness)
        self._switch.stacks_left -= 1
        self.calls.append(call)
        return call

    def _add_flat(self, identity: int | str, created: CallNode, now: float) -> CallNode:
        caller = self._stack[-1]
        call = self._flat_calls.get((identity, created.phase))
        if call is None:
            call = self._flat_calls[identity, created.phase] = created
            call.is_flat = True
            self.calls.append(call)
        if caller.is_flat:
            caller.calls_in_phase(call.phase)[identity] = call
        else:
            # Not kept with the caller: each time that the tree is left, it is noted here.
            self._left_tree_at = caller, len(self._stack), now
        return call

    def _return_to_tree(self, now: float) -> None:
        if self._left_tree_at is not None:
            caller, _, since = self._left_tree_at
            caller.seconds_in_flat_calls += now - since
            self._left_tree_at = None


# All that runs inside the callback.
CODES = tuple(
    value.__code__
    for kind in (CallNode, ThreadProfile)
    for value in vars(kind).values()
    if hasattr(value, "__code__")
)
