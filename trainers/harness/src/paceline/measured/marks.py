"""Phases as a tree of nodes per thread, and the numbers that the measured code reports."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from threading import Lock, current_thread, get_ident
from time import perf_counter
from types import TracebackType
from typing import Generic, TypeVar

NODE_LIMIT = 400
PATH_LIMIT = 200
REPORTED_LIMIT = 100

_Item = TypeVar("_Item")


class ThreadState:
    """Where one thread stands: the innermost open phase."""

    __slots__ = ("name", "node", "nodes", "root")

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.root: Node
        self.node: Node


class Node:
    """One phase at one place of the tree, in one thread; a reused context manager.

    A node is open at most once at a time: a phase that calls itself opens the node below.
    """

    __slots__ = ("children", "count", "name", "parent", "path", "start", "state", "total")

    def __init__(self, name: str, parent: Node | None, state: ThreadState) -> None:
        self.name = name
        self.path: str = f"{parent.path}/{name}" if parent is not None and parent.path else name
        self.parent = parent
        self.state = state
        self.children: dict[str, Node] = {}
        self.count = 0
        self.total = 0.0
        self.start = 0.0

    def __enter__(self) -> None:
        self.state.node = self
        self.start = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.total += perf_counter() - self.start
        self.count += 1
        self.state.node = self.parent  # type: ignore[assignment]  # only the root has none, and isn't entered


def thread_name(name: str) -> str:
    """Return a thread's name without the number that Python gave it, so that it is the same in every run."""
    numbered = re.fullmatch(r"Thread-\d+ \((.+)\)|(.+?)[-_]\d+(?:[-_]\d+)*", name)
    found = next(group for group in numbered.groups() if group) if numbered else name
    return "".join(letter for letter in found if letter.isprintable())[:100] or "thread"


class Charged:
    """The phase that isn't given a node of its own: its time stays with the phase around it."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


NodeType = TypeVar("NodeType", bound=Node)


class Marks(Generic[NodeType]):
    """The part of a recorder that timing and counting share. `main` is the thread that takes the steps."""

    def __init__(self, node_class: type[NodeType]) -> None:
        self._node_class = node_class
        self._lock = Lock()
        self.node_count = 0
        self.dropped_phases = 0
        self.states: dict[int, ThreadState] = {}
        self.counts: defaultdict[str, float] = defaultdict(float)
        self.gauges: dict[str, tuple[float, int]] = {}
        self.qualities: dict[str, float] = {}
        self.main_ident = get_ident()
        self.main = self._add_thread("main")

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Return the node of this name below the thread's innermost open phase."""
        # Two look-ups and no allocation: this line is the price of a phase.
        state = self.main if get_ident() == self.main_ident else self._other_state()
        try:
            return state.node.children[name]
        except KeyError:
            return self._add_node(name, state)

    def count(self, name: str, n: float) -> None:
        """Add to one of the code's own counters."""
        with self._lock:
            if name in self.counts or len(self.counts) < REPORTED_LIMIT:
                self.counts[name] += n

    def gauge(self, name: str, value: float) -> None:
        """Add one reading to a gauge's mean."""
        with self._lock:
            if name in self.gauges or len(self.gauges) < REPORTED_LIMIT:
                total, readings = self.gauges.get(name, (0.0, 0))
                self.gauges[name] = (total + float(value), readings + 1)

    def quality(self, name: str, value: float) -> None:
        """Keep a quality's last value."""
        with self._lock:
            if name in self.qualities or len(self.qualities) < REPORTED_LIMIT:
                self.qualities[name] = float(value)

    def take_steps_here(self) -> ThreadState:
        """Make the calling thread the main one and return its state."""
        if get_ident() != self.main_ident:
            self._other_state()
            self.main_ident = get_ident()
            self.main.name = "(before steps)" if self.main.nodes else self.main.name
            self.main = self.states[self.main_ident]
            self.main.name = "main"
        return self.main

    def nodes(self, state: ThreadState) -> list[NodeType]:
        """Return the thread's nodes; the root isn't among them."""
        return state.nodes  # type: ignore[return-value]  # every node is made by _make

    def _other_state(self) -> ThreadState:
        state = self.states.get(get_ident())
        return self._add_thread(thread_name(current_thread().name)) if state is None else state

    def _add_thread(self, name: str) -> ThreadState:
        state = ThreadState(name)
        state.root = state.node = self._make("", None, state)
        with self._lock:
            self.states[get_ident()] = state
        return state

    def _add_node(self, name: str, state: ThreadState) -> AbstractContextManager[None]:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ValueError(f"a phase's name must be a printable string, not {name!r}")
        parent = state.node
        if self.node_count >= NODE_LIMIT or len(parent.path) + len(name) + 1 > PATH_LIMIT:
            self.dropped_phases += 1
            return Charged()
        node = self._make(name, parent, state)
        with self._lock:
            self.node_count += 1
            state.nodes.append(node)
            self.prepare(node)
            parent.children[name] = node
        return node

    def prepare(self, node: NodeType) -> None:
        """Set up a new node before its first entry."""

    def _make(self, name: str, parent: Node | None, state: ThreadState) -> NodeType:
        return self._node_class(name, parent, state)


class StepLoop:
    """Runs the measured loop: tells where steps begin and end, and ends it when the window is complete."""

    def __init__(self, marks: Marks[NodeType]) -> None:
        self._marks = marks
        self._inside = False
        self.called = False
        self.complete = False

    @property
    def over(self) -> bool:
        """Whether the code's loops are to end at once, since nothing more is measured."""
        return self.complete

    def begin(self) -> None:
        """Note that the code enters its loop; the first step starts now."""
        raise NotImplementedError

    def end(self) -> None:
        """Note that the code leaves its loop; it may enter another."""

    def end_step(self) -> bool:
        """Note that a step ended and the next one starts; return whether the window is complete."""
        raise NotImplementedError

    def iterate(self, iterable: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items; fetching an item belongs to its step."""
        if self._inside:
            raise RuntimeError("paceline.steps was called inside another paceline.steps")
        if self.over:
            return
        iterator = iter(iterable)
        state = self._marks.take_steps_here()
        around, state.node = state.node, state.root
        self._inside = self.called = True
        try:
            self.begin()
            for item in iterator:
                yield item
                if self.end_step():
                    return
        except GeneratorExit:
            # The code left by `break`: the step that it broke off was taken too.
            self.end_step()
            raise
        finally:
            self.end()
            self._inside = False
            state.node = around
