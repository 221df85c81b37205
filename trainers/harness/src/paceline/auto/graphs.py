"""Steps of optimizers in CUDA graphs: nothing is done while one is captured, and each replay takes them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

import paceline

from ..step_kinds import OPTIMIZER
from . import step_finder
from .owner_changes import refer_to
from .wrapping import Function

REPLAY = "graph_replay"

Reference = Callable[[], object]

# Those that are captured right now, each with its thread: what others do meanwhile becomes no part of it.
captures: list[tuple[int, Any]] = []
# By graph: the optimizers that stepped in it by their ids, each with what the code called.
_captured: WeakKeyDictionary[Any, dict[int, tuple[Reference, Reference]]] = WeakKeyDictionary()


def patch_graphs(torch: Any) -> None:
    """Let replays end steps, in a PyTorch that was built for a device with graphs."""
    if torch.version.cuda or getattr(torch.version, "hip", None):
        patch_graph_class(torch.cuda.CUDAGraph)


def patch_graph_class(graph: Any) -> None:
    """Follow the captures and replays of a class of graphs."""
    graph.capture_begin = _wrap_begin(graph.capture_begin)
    graph.capture_end = _wrap_end(graph.capture_end)
    graph.replay = _wrap_replay(graph.replay)


def keep_captured_step(optimizer: object, wrapper: object, thread: int) -> bool:
    """Keep the step of an optimizer for the replays of the graph that this thread captures; False without."""
    graph = next((graph for capturing, graph in reversed(captures) if capturing == thread), None)
    if graph is None:
        return False
    steps = _captured.setdefault(graph, {})
    # The graph must not hold what the code lets go.
    steps[id(optimizer)] = refer_to(optimizer), refer_to(wrapper)
    return True


def forget_calls() -> None:
    """Forget in a forked process what its parent captures."""
    captures.clear()


def _wrap_begin(original: Function) -> Function:
    @functools.wraps(original)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        _captured.pop(self, None)
        captures.append((get_ident(), self))
        return result

    return capture_begin


def _wrap_end(original: Function) -> Function:
    @functools.wraps(original)
    def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        captures[:] = [entry for entry in captures if entry[1] is not self]
        return original(self, *args, **kwargs)

    return capture_end


def _wrap_replay(original: Function) -> Function:
    @functools.wraps(original)
    def replay(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = _captured.get(self)
        if steps is None:
            return original(self, *args, **kwargs)
        with paceline.phase(REPLAY):
            result = original(self, *args, **kwargs)
        for optimizer, wrapper in steps.values():
            owner = optimizer()
            if owner is not None:
                step_finder.end_owner_step(OPTIMIZER, owner, wrapper())
        return result

    return replay
