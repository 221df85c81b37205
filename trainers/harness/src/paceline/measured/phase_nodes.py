"""The tree of phases of one thread: its nodes, and what happens where a phase is entered and left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Thread
from time import perf_counter
from types import TracebackType
from typing import Any

Enter = Callable[[], None]
Leave = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]
Split = Callable[[float, float], None]


class ThreadState:
    """The state of one thread: its number, innermost open phase, nodes, and whether it makes lap marks.

    `name` is what its phases are named by, `own_name` that of the thread.
    """

    __slots__ = ("ident", "laps", "name", "node", "nodes", "own_name", "root", "thread")

    def __init__(self, name: str, thread: Thread) -> None:
        self.name = self.own_name = name
        self.thread = thread
        self.ident = 0
        self.laps = False
        self.nodes: list[PhaseNode] = []
        self.root: PhaseNode
        self.node: PhaseNode

    def open_nodes(self) -> list[PhaseNode]:
        """Return the open phases, innermost first; the root isn't among them."""
        nodes, node = [], self.node
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes


class _ContextManagerType(type):
    """Gives the class the methods that contextlib.ExitStack looks up there; an instance has them in slots."""

    @property
    def __enter__(cls) -> Callable[[PhaseNode], None]:
        return lambda node: node.__enter__()

    @property
    def __exit__(cls) -> Callable[..., None]:
        return lambda node, *raised: node.__exit__(*raised)


class PhaseNode(metaclass=_ContextManagerType):
    """One phase at one place of the tree, in one thread; a reused context manager.

    `__enter__` and `__exit__` are slots that hold functions of this very node: the interpreter makes no bound
    method to call them, and what they need lies in cells. It is a fifth of a phase's price. A node is open at
    most once at a time: a phase that calls itself opens the node below. `split(ended, begins)` bills an open
    phase until `ended` and lets it go on from `begins`; `lap_start` is where its next lap begins;
    `substitutes` are the phases that were entered in its stead where the thread stood in another phase.
    Where it `is_plain`, its borders only take the time: a wrapper may do in its own lines what they do.
    """

    __slots__ = (
        *("__enter__", "__exit__", "is_plain", "split", "substitutes"),
        *("children", "count", "lap_start", "name", "parent", "path", "start", "state", "total"),
    )

    __enter__: Enter
    __exit__: Leave
    split: Split
    has_own_borders = False
    """Whether a subclass has methods that do more where its phases begin or end."""

    def __init__(self, name: str, parent: PhaseNode | None, state: ThreadState) -> None:
        self.name = name
        self.path: str = f"{parent.path}/{name}" if parent is not None and parent.path else name
        self.parent = parent
        self.state = state
        self.children: dict[str, PhaseNode] = {}
        self.substitutes: list[AbstractContextManager[None]] = []
        self.count = 0
        self.total = 0.0
        self.is_plain = False
        self.start = self.lap_start = perf_counter()


def set_borders(node: PhaseNode, enter: Enter, leave: Leave) -> None:
    """Set what entering and leaving the node's phase does, also where a subclass has methods for it."""
    slots: dict[str, Any] = dict(vars(PhaseNode))
    slots["__enter__"].__set__(node, enter)
    slots["__exit__"].__set__(node, leave)
    node.is_plain = False


def bind_borders(node: PhaseNode, parent: PhaseNode, enter_substitute: Callable[[PhaseNode], None]) -> None:
    """Set borders that cost as little as Python allows; auto/wrapping.py has them in its own lines too."""
    state = node.state

    def enter() -> None:
        if state.node is parent:
            state.node = node
            node.start = perf_counter()
        else:
            enter_substitute(node)

    def leave(
        _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if state.node is node:
            node.total += perf_counter() - node.start
            node.count += 1
            state.node = parent
        else:
            _leave_out_of_order(node)

    def split(ended: float, begins: float) -> None:
        node.total += ended - node.start
        node.start = begins

    node.split = split
    set_borders(node, enter, leave)
    node.is_plain = not node.has_own_borders


def bind_borders_with_laps(
    node: PhaseNode,
    parent: PhaseNode,
    enter_substitute: Callable[[PhaseNode], None],
    flush: Callable[[], None],
) -> None:
    """Set borders for a thread with lap marks: no lap contains a phase's time."""
    state = node.state

    def enter() -> None:
        flush()
        if state.node is parent:
            state.node = node
            node.start = node.lap_start = perf_counter()
        else:
            enter_substitute(node)

    def leave(
        _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        flush()
        if state.node is node:
            split(perf_counter(), 0.0)
            node.count += 1
            state.node = parent
        else:
            _leave_out_of_order(node)

    def split(ended: float, begins: float) -> None:
        node.total += ended - node.start
        parent.lap_start += ended - node.start
        node.start = node.lap_start = begins

    node.split = split
    set_borders(node, enter, leave)


def _leave_out_of_order(node: PhaseNode) -> None:
    """Leave a phase that isn't the innermost one, as a generator does that is resumed in another one."""
    if node.substitutes:
        node.substitutes.pop().__exit__(None, None, None)
        return
    open_nodes = node.state.open_nodes()
    # A phase ends with the one around it at the latest: then it is left here a second time.
    if node in open_nodes:
        now = perf_counter()
        for inner in open_nodes[: open_nodes.index(node) + 1]:
            inner.split(now, now)
            inner.count += 1
        node.state.node = node.parent  # type: ignore[assignment]  # only the root has none, and isn't entered
