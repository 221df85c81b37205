"""Takes the marks of the measured code: phases and laps in every thread, and the numbers that it reports."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from threading import Lock, _DummyThread, current_thread, get_ident
from time import perf_counter
from types import TracebackType
from typing import Generic, TypeVar

from ..phase_names import BACKWARD, SETUP, UNATTRIBUTED
from .phase_nodes import PhaseNode, ThreadState, bind_borders, bind_borders_with_laps

NODE_LIMIT = 400
PATH_LIMIT = 200
REPORTED_LIMIT = 100
MAIN = "main"
# With `quality.` before it, it is the name of a metric, which has 200 characters at most.
REPORTED_NAME_LIMIT = 190

NodeType = TypeVar("NodeType", bound=PhaseNode)


def stable_thread_name(name: str) -> str:
    """Return a thread's name without the number that Python gave it, so that it is the same in every run."""
    numbered = re.fullmatch(r"Thread-\d+ \((.+)\)|(.+?)[-_]\d+(?:[-_]\d+)*", name)
    stable = next(group for group in numbered.groups() if group) if numbered else name
    return printable_text(stable) or "thread"


def printable_text(text: str) -> str:
    """Return at most a hundred characters of it, without those that can't be shown."""
    return "".join(letter for letter in text if letter.isprintable())[:100]


def reported_number(value: float) -> float:
    """Return what the code reported as a float, infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


class UnrecordedPhase:
    """A phase that has no node of its own: its time stays with the phase around it."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class MarkRecorder(Generic[NodeType]):
    """Records phases, laps and reported numbers; timing and counting build on it.

    `main` is the thread that takes the steps; where several do, the first of them.
    """

    def __init__(self, node_class: type[NodeType]) -> None:
        self._node_class = node_class
        self._lock = Lock()
        self.node_count = 0
        self.dropped_phases = 0
        self.forked = False
        self.states: list[ThreadState] = []
        self._current: dict[int, ThreadState] = {}
        self.counts: defaultdict[str, float] = defaultdict(float)
        self.gauges: dict[str, tuple[float, int]] = {}
        # By `counts` or `gauges` and name: the readings so far that were no finite numbers.
        self.unusable: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.qualities: dict[str, float] = {}
        self.settings: dict[str, str] = {}
        self.main_ident = get_ident()
        self.first_thread = self.main = self._add_thread(MAIN)
        self.took_steps = False
        self.phase = self._make_phase_mark()
        self.lap = self._make_lap_mark()

    def _make_phase_mark(self) -> Callable[[str], AbstractContextManager[None]]:
        """Return the function that returns the node of a name below the thread's innermost open phase."""
        main, main_ident = self.main, self.main_ident

        def phase(name: str) -> AbstractContextManager[None]:
            # Two look-ups and no allocation: these lines are the price of a phase.
            if get_ident() == main_ident:
                try:
                    return main.node.children[name]
                except KeyError:
                    pass
            state = self._find_or_add_state()
            try:
                return state.node.children[name]
            except KeyError:
                return self._add_node(name, state)

        return phase

    def _make_lap_mark(self) -> Callable[[str], None]:
        """Return the function that bills what ran since the thread's last lap, or its phase's begin."""

        def lap(name: str) -> None:
            now, state = perf_counter(), self._find_or_add_state()
            if not state.laps:
                self.enable_laps(state)
            self.bill_lap(state.node, name, now)

        return lap

    def bill_lap(self, around: PhaseNode, name: str, ended: float) -> None:
        """Add one lap that ended inside the phase `around`; what other phases covered is not in it."""
        node = around.children.get(name) or self._add_node(name, around.state)
        if isinstance(node, PhaseNode):
            node.total += ended - around.lap_start
            node.count += 1
        around.lap_start = ended

    def enable_laps(self, state: ThreadState) -> None:
        """Let the thread's phases keep their time out of laps, from now on."""
        state.laps = True
        now, open_nodes = perf_counter(), state.open_nodes()
        for node in self.nodes(state):
            before = node.total
            if node in open_nodes:
                node.split(now, now)
            self._bind_node(node)
            # The first lap inside an open phase begins with it as well.
            node.start, node.lap_start = now, now - (node.total - before)

    def flush(self) -> None:
        """Bill the laps that were only noted so far."""

    def count(self, name: str, n: float) -> None:
        """Add to one of the code's own counters."""
        number = reported_number(n)
        with self._lock:
            if not self._accepts("count", name, self.counts):
                return
            # What is added here later must not become NaN for one odd number: the window may open behind it.
            if math.isfinite(number):
                self.counts[name] += number
            else:
                self.counts.setdefault(name, 0.0)
                self.unusable["counts", name] += 1

    def gauge(self, name: str, value: float) -> None:
        """Add one reading to a gauge's mean."""
        number = reported_number(value)
        with self._lock:
            if not self._accepts("gauge", name, self.gauges):
                return
            total, readings = self.gauges.get(name, (0.0, 0))
            if math.isfinite(number):
                self.gauges[name] = (total + number, readings + 1)
            else:
                self.gauges[name] = (total, readings)
                self.unusable["gauges", name] += 1

    def quality(self, name: str, value: float) -> None:
        """Keep a quality's last value."""
        number = reported_number(value)
        with self._lock:
            if self._accepts("quality", name, self.qualities):
                self.qualities[name] = number

    def _accepts(self, kind: str, name: str, kept: Mapping[str, object]) -> bool:
        """Whether there is room for the name; raises ValueError where no document can hold it."""
        if name in kept:
            return True
        if not isinstance(name, str) or not name or not name.isprintable() or len(name) > REPORTED_NAME_LIMIT:
            raise ValueError(
                f"a {kind}'s name must be a printable string of at most {REPORTED_NAME_LIMIT} characters, "
                f"not {name!r}"
            )
        return len(kept) < REPORTED_LIMIT

    def setting(self, name: str, value: object) -> None:
        """Keep what the code chose last."""
        key, text = printable_text(str(name)), printable_text(str(value))
        if not key:
            raise ValueError(f"a setting's name must be a printable string, not {name!r}")
        with self._lock:
            if key in self.settings or len(self.settings) < REPORTED_LIMIT:
                self.settings[key] = text

    def take_steps_in_this_thread(self) -> ThreadState:
        """Let the calling thread's phases be those of the steps and return its state.

        The first thread that takes steps becomes the main one. Those of others after it, such as each
        epoch's own, are summed with its phases under its name.
        """
        if self._is_called_by_autograd():
            return self.main
        state = self.current_state()
        if state is not self.main and not self.took_steps:
            # It may go on beside the steps, and its time is none of theirs.
            self.main.name = stable_thread_name(self.main.thread.name)
            self.main_ident, self.main = get_ident(), state
        state.name = MAIN
        self.took_steps = True
        return state

    def _is_called_by_autograd(self) -> bool:
        """Whether a thread that Python didn't start does a part of what the main one waits for.

        An optimizer that steps in gradients' hooks does so in autograd's thread for the device.
        """
        return isinstance(current_thread(), _DummyThread) and self.main.node is not self.main.root

    def _is_called_by_backward_pass(self) -> bool:
        """Whether the main thread waits in a backward pass, which on a device runs in threads of autograd's.

        What is recomputed there, and what its hooks do, the main thread does itself on the host.
        """
        return isinstance(current_thread(), _DummyThread) and any(
            node.name == BACKWARD for node in self.main.open_nodes()
        )

    def nodes(self, state: ThreadState) -> list[NodeType]:
        """Return the thread's nodes; the root isn't among them."""
        return state.nodes  # type: ignore[return-value]  # every node is made by _make_node

    def current_state(self) -> ThreadState:
        """Return the calling thread's state."""
        return self.main if current_thread() is self.main.thread else self._find_or_add_state()

    def _find_or_add_state(self) -> ThreadState:
        if self._is_called_by_backward_pass():
            return self.main
        state, thread = self._current.get(get_ident()), current_thread()
        # A thread may have the number of one that has ended.
        if state is None or state.thread is not thread:
            return self._add_thread(stable_thread_name(thread.name))
        return state

    def _add_thread(self, name: str) -> ThreadState:
        thread = current_thread()
        with self._lock:
            # Of those that took steps before, only the last one: whoever has its name now goes on with them.
            ended = (
                state
                for state in self.states
                if not state.thread.is_alive() and (state.name != MAIN or state is self.main)
            )
            unused = next((state for state in ended if state.own_name == name), None)
            # A thread per step must not fill the table: it goes on where one of its name has ended.
            state = ThreadState(name, thread) if unused is None else unused
            if unused is None:
                state.root = self._make_node("", None, state)
                self.states.append(state)
            state.thread, state.ident, state.node = thread, get_ident(), state.root
            self._current[state.ident] = state
            if unused is not None and state is self.main:
                self.main_ident = state.ident
        return state

    def _add_node(self, name: str, state: ThreadState) -> AbstractContextManager[None]:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ValueError(f"a phase's name must be a printable string, not {name!r}")
        if name in (UNATTRIBUTED, SETUP):
            raise ValueError(f"a phase can't be named {name}, which is what no phase covers")
        parent = state.node
        if self.node_count >= NODE_LIMIT or len(parent.path) + len(name) + 1 > PATH_LIMIT:
            self.dropped_phases += 1
            return UnrecordedPhase()
        node = self._make_node(name, parent, state)
        with self._lock:
            self.node_count += 1
            state.nodes.append(node)
            self._bind_node(node)
            parent.children[name] = node
        return node

    def _bind_node(self, node: NodeType) -> None:
        if node.parent is not None:
            if node.state.laps:
                bind_borders_with_laps(node, node.parent, self._enter_substitute, self.flush)
            else:
                bind_borders(node, node.parent, self._enter_substitute)
        self.prepare_node(node)

    def _enter_substitute(self, node: PhaseNode) -> None:
        """Enter a phase of this name where the thread stands; the node belongs to another thread or phase."""
        substitute = self.phase(node.name)
        node.substitutes.append(substitute)
        substitute.__enter__()

    def stop_recording(self) -> None:
        """Measure no more steps: this process was forked from the measured one. Loops run on as they are."""
        self.forked = True
        # A thread that isn't here any more may have held it.
        self._lock = Lock()

    def prepare_node(self, node: NodeType) -> None:
        """Set up a node before its first entry, and again where its borders were bound anew."""

    def _make_node(self, name: str, parent: PhaseNode | None, state: ThreadState) -> NodeType:
        return self._node_class(name, parent, state)
