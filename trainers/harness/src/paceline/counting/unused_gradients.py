"""Finds operations that autograd recorded for a backward pass that never came: a forgotten no_grad.

Which outermost calls are a model's is counted beside it: a loss is a module too, and no forward pass.

The graph of a module's outermost call is watched by a hook on its results' nodes, which lives as long as they
do. A graph that ends before the hook was called served nothing; one that is left at the end doesn't count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch

from ..measured.module_weights import has_weights
from .replaced_functions import Function, replace_function
from .tally import Tally

# The results of a call may be many; what belongs to one graph is found by the first of them.
RESULT_LIMIT = 16


class CountedThread(Protocol):
    """The thread that an outermost call of a module runs in."""

    forward_pass: ForwardPass | None
    model_calls: int
    weightless_calls: int

    def makes_batch(self) -> bool: ...


class ForwardPass:
    """One outermost call of a module: the operations recorded in it, by the tally of their phase."""

    def __init__(self, switch: Any) -> None:
        self._switch = switch
        self._recorded: defaultdict[Tally, int] = defaultdict(int)
        self._used = False

    def add_operation(self, tally: Tally, arguments: Sequence[Any]) -> None:
        """Count an operation if autograd records it."""
        if torch.is_grad_enabled() and _requires_gradient(arguments):
            self._recorded[tally] += 1

    def watch_results(self, results: Any) -> None:
        """Wait for the backward pass, which comes through the results."""
        if not self._recorded:
            return
        leaves = torch.utils._pytree.tree_leaves(results)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        for tensor in tensors[:RESULT_LIMIT]:
            for node in _nodes_of(tensor):
                node.register_prehook(self._note_backward)

    def _note_backward(self, _gradients: Any) -> None:
        self._used = True

    def __del__(self) -> None:
        """Bill the operations if no backward pass came; no node of the graph is left."""
        if not self._used and self._switch.on:
            for tally, number in self._recorded.items():
                tally.unused_gradient_operations += number


@contextmanager
def watch_forward_passes(current_thread: Callable[[], CountedThread], switch: Any) -> Iterator[None]:
    """Watch the outermost call of every module, in the thread whose tallies `current_thread` returns."""

    def wrap_call(original: Function) -> Function:
        def call_module(*args: Any, **kwargs: Any) -> Any:
            # A tracer takes this test for a constant, so that nothing below becomes part of its graph.
            if torch.compiler.is_dynamo_compiling():
                return original(*args, **kwargs)
            thread = current_thread()
            if thread.forward_pass is not None:
                return original(*args, **kwargs)
            if has_weights(args[0]):
                thread.model_calls += 1
            elif not thread.makes_batch():
                thread.weightless_calls += 1
            thread.forward_pass = forward_pass = ForwardPass(switch)
            try:
                results = original(*args, **kwargs)
                forward_pass.watch_results(results)
            finally:
                thread.forward_pass = None
            return results

        return call_module

    with replace_function(torch.nn.Module, "__call__", wrap_call):
        yield


def _requires_gradient(arguments: Sequence[Any]) -> bool:
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            if argument.requires_grad:
                return True
        elif isinstance(argument, list | tuple) and _requires_gradient(argument):
            return True
    return False


def _nodes_of(tensor: Any) -> list[Any]:
    node = tensor.grad_fn
    if node is None:
        return []
    if not tensor._is_view():
        return [node]
    # Writing into a view gives it another node; what it is a view of keeps its own.
    sources = [source for source, _ in node.next_functions if source is not None]
    return [node, *(source for source in sources if source.name() != "torch::autograd::AccumulateGrad")]


# All that runs inside the window.
CODES = tuple(
    value.__code__
    for value in (*vars(ForwardPass).values(), *globals().values())
    if hasattr(value, "__code__") and value.__module__ in (__name__, has_weights.__module__)
)
