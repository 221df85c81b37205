"""Phases as a tree of nodes per thread, and the numbers that the measured code reports."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from threading import Lock, Thread, current_thread, get_ident
from time import perf_counter
from types import TracebackType
from typing import Any, Generic, TypeVar

from ..document import SETUP, UNATTRIBUTED

NODE_LIMIT = 400
PATH_LIMIT = 200
REPORTED_LIMIT = 100

Enter = Callable[[], None]
Leave = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]
Cut = Callable[[float, float], None]

_Item = TypeVar("_Item")


class ThreadState:
    """Where one thread stands: the innermost open phase, and whether the thread makes lap marks."""

    __slots__ = ("laps", "name", "node", "nodes", "root", "thread")

    def __init__(self, name: str, thread: Thread) -> None:
        self.name = name
        self.thread = thread
        self.laps = False
        self.nodes: list[Node] = []
        self.root: Node
        self.node: Node

    def open_nodes(self) -> list[Node]:
        """Return the open phases, innermost first; the root isn't among them."""
        found, node = [], self.node
        while node.parent is not None:
            found.append(node)
            node = node.parent
        return found


class _Borders(type):
    """Shows methods to those who look them up in the class, as contextlib.ExitStack does."""

    @property
    def __enter__(cls) -> Callable[[Node], None]:
        return lambda node: node.__enter__()

    @property
    def __exit__(cls) -> Callable[..., None]:
        return lambda node, *raised: node.__exit__(*raised)


class Node(metaclass=_Borders):
    """One phase at one place of the tree, in one thread; a reused context manager.

    `__enter__` and `__exit__` are slots that hold functions of this very node: the interpreter makes no bound
    method to call them, and what they need lies in cells. It is a fifth of a phase's price. A node is open at
    most once at a time: a phase that calls itself opens the node below. `cut(ended, begins)` bills an open
    phase until `ended` and lets it go on from `begins`; `lapped` is where its next lap begins.
    """

    __slots__ = (
        *("__enter__", "__exit__", "cut", "detours"),
        *("children", "count", "lapped", "name", "parent", "path", "start", "state", "total"),
    )

    __enter__: Enter
    __exit__: Leave
    cut: Cut

    def __init__(self, name: str, parent: Node | None, state: ThreadState) -> None:
        self.name = name
        self.path: str = f"{parent.path}/{name}" if parent is not None and parent.path else name
        self.parent = parent
        self.state = state
        self.children: dict[str, Node] = {}
        self.detours: list[AbstractContextManager[None]] = []
        self.count = 0
        self.total = 0.0
        self.start = self.lapped = perf_counter()


def set_borders(node: Node, enter: Enter, leave: Leave) -> None:
    """Set what entering and leaving the node's phase does, also where a subclass has methods for it."""
    slots: dict[str, Any] = dict(vars(Node))
    slots["__enter__"].__set__(node, enter)
    slots["__exit__"].__set__(node, leave)


def _bind(node: Node, parent: Node, elsewhere: Callable[[Node], None]) -> None:
    """Let the node be entered and left as fast as Python can."""
    state, start = node.state, 0.0

    def enter() -> None:
        nonlocal start
        if state.node is parent:
            state.node = node
            start = perf_counter()
        else:
            elsewhere(node)

    def leave(
        _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if state.node is node:
            node.total += perf_counter() - start
            node.count += 1
            state.node = parent
        else:
            _leave_astray(node)

    def cut(ended: float, begins: float) -> None:
        nonlocal start
        node.total += ended - start
        start = begins

    node.cut = cut
    set_borders(node, enter, leave)


def _bind_beside_laps(
    node: Node, parent: Node, elsewhere: Callable[[Node], None], flush: Callable[[], None]
) -> None:
    """Let the node be entered and left where laps are marked: no lap contains a phase's time."""
    state = node.state

    def enter() -> None:
        flush()
        if state.node is parent:
            state.node = node
            node.start = node.lapped = perf_counter()
        else:
            elsewhere(node)

    def leave(
        _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        flush()
        if state.node is node:
            cut(perf_counter(), 0.0)
            node.count += 1
            state.node = parent
        else:
            _leave_astray(node)

    def cut(ended: float, begins: float) -> None:
        node.total += ended - node.start
        parent.lapped += ended - node.start
        node.start = node.lapped = begins

    node.cut = cut
    set_borders(node, enter, leave)


def _leave_astray(node: Node) -> None:
    """Leave a phase that isn't the innermost one; a generator that was resumed elsewhere does so."""
    if node.detours:
        node.detours.pop().__exit__(None, None, None)
        return
    around = node.state.open_nodes()
    # A phase ends with the one around it at the latest: then it is left here a second time.
    if node in around:
        now = perf_counter()
        for ended in around[: around.index(node) + 1]:
            ended.cut(now, now)
            ended.count += 1
        node.state.node = node.parent  # type: ignore[assignment]  # only the root has none, and isn't entered


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
        self.forked = False
        self.states: list[ThreadState] = []
        self._current: dict[int, ThreadState] = {}
        self.counts: defaultdict[str, float] = defaultdict(float)
        self.gauges: dict[str, tuple[float, int]] = {}
        self.qualities: dict[str, float] = {}
        self.main_ident = get_ident()
        self.main = self._add_thread("main")
        self.phase = self._phase_mark()
        self.lap = self._lap_mark()

    def _phase_mark(self) -> Callable[[str], AbstractContextManager[None]]:
        """Return the function that returns the node of a name below the thread's innermost open phase."""
        home, home_ident = self.main, self.main_ident

        def phase(name: str) -> AbstractContextManager[None]:
            # Two look-ups and no allocation: these lines are the price of a phase.
            if get_ident() == home_ident:
                try:
                    return home.node.children[name]
                except KeyError:
                    pass
            state = self._other_state()
            try:
                return state.node.children[name]
            except KeyError:
                return self._add_node(name, state)

        return phase

    def _lap_mark(self) -> Callable[[str], None]:
        """Return the function that bills what ran since the thread's last lap, or its phase's begin."""

        def lap(name: str) -> None:
            now, state = perf_counter(), self._other_state()
            if not state.laps:
                self.allow_laps(state)
            self.bill_lap(state.node, name, now)

        return lap

    def bill_lap(self, around: Node, name: str, ended: float) -> None:
        """Add one lap that ended inside the phase `around`; what other phases covered is not in it."""
        node = around.children.get(name) or self._add_node(name, around.state)
        if isinstance(node, Node):
            node.total += ended - around.lapped
            node.count += 1
        around.lapped = ended

    def allow_laps(self, state: ThreadState) -> None:
        """Let the thread's phases take account of laps, from now on."""
        state.laps = True
        now, open_nodes = perf_counter(), state.open_nodes()
        for node in self.nodes(state):
            before = node.total
            if node in open_nodes:
                node.cut(now, now)
            self._bind(node)
            # The first lap inside an open phase begins with it as well.
            node.start, node.lapped = now, now - (node.total - before)

    def flush(self) -> None:
        """Bill the laps that were only noted so far."""

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
            state = self._other_state()
            self.main.name = "(before steps)" if self.main.nodes else self.main.name
            self.main_ident, self.main = get_ident(), state
            state.name = "main"
        return self.main

    def nodes(self, state: ThreadState) -> list[NodeType]:
        """Return the thread's nodes; the root isn't among them."""
        return state.nodes  # type: ignore[return-value]  # every node is made by _make

    def current_state(self) -> ThreadState:
        """Return the calling thread's state."""
        return self.main if get_ident() == self.main_ident else self._other_state()

    def _other_state(self) -> ThreadState:
        state, thread = self._current.get(get_ident()), current_thread()
        # A thread may have the number of one that has ended.
        if state is None or state.thread is not thread:
            return self._add_thread(thread_name(thread.name))
        return state

    def _add_thread(self, name: str) -> ThreadState:
        thread = current_thread()
        with self._lock:
            ended = (one for one in self.states if one.name == name and not one.thread.is_alive())
            state = next((one for one in ended if one is not self.main), None)
            # A thread per step must not fill the table: it goes on where one of its name has ended.
            if state is None:
                state = ThreadState(name, thread)
                state.root = self._make("", None, state)
                self.states.append(state)
            state.thread, state.node = thread, state.root
            self._current[get_ident()] = state
        return state

    def _add_node(self, name: str, state: ThreadState) -> AbstractContextManager[None]:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ValueError(f"a phase's name must be a printable string, not {name!r}")
        if name in (UNATTRIBUTED, SETUP):
            raise ValueError(f"a phase can't be named {name}, which is what no phase covers")
        parent = state.node
        if self.node_count >= NODE_LIMIT or len(parent.path) + len(name) + 1 > PATH_LIMIT:
            self.dropped_phases += 1
            return Charged()
        node = self._make(name, parent, state)
        with self._lock:
            self.node_count += 1
            state.nodes.append(node)
            self._bind(node)
            parent.children[name] = node
        return node

    def _bind(self, node: NodeType) -> None:
        if node.parent is not None:
            if node.state.laps:
                _bind_beside_laps(node, node.parent, self._enter_elsewhere, self.flush)
            else:
                _bind(node, node.parent, self._enter_elsewhere)
        self.prepare(node)

    def _enter_elsewhere(self, node: Node) -> None:
        """Enter the phase of the node's name here: its manager was made in another thread or phase."""
        here = self.phase(node.name)
        node.detours.append(here)
        here.__enter__()

    def forget(self) -> None:
        """Measure no more steps: this process was forked from the measured one. Loops run on as they are."""
        self.forked = True
        # A thread that isn't here any more may have held it.
        self._lock = Lock()

    def prepare(self, node: NodeType) -> None:
        """Set up a node before its first entry, and again where its borders were bound anew."""

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
        if self._marks.forked:
            yield from iterable
            return
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
                if not self._marks.forked and self.end_step():
                    return
        except GeneratorExit:
            # The code left by `break`: the step that it broke off was taken too.
            if not self._marks.forked:
                self.end_step()
            raise
        finally:
            self.end()
            self._inside = False
            state.node = around
