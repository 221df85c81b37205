"""The reduction of DistributedDataParallel's gradients: what a backward pass waits for the other ranks.

DistributedDataParallel reduces its gradients below Python while the backward pass goes on. What of it isn't
hidden behind the pass lies between the pass's last kernel and its end: two callbacks of the autograd engine
enclose it, one queued before DistributedDataParallel's own and one behind it. Nothing that is computed or
sent is touched.

DistributedDataParallel queues its callback when the last gradient has come, so ours are queued when one
comes: by one hook for each model, on the node that accumulates this gradient. Where a pass may leave
gradients out no node is sure to run, and each output of the model gets a hook instead.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import get_ident
from time import perf_counter
from typing import Any

import paceline

from ..measured.collective_log import BEHIND_BACKWARD, KINDS, log
from ..measured.rank_presence import ONE_ARRIVAL, POSITION, presence, presence_marker
from .tensor_sizes import describe_tensors

ALL_REDUCE = "all_reduce"
NUMBER = KINDS.index(ALL_REDUCE)
MARKER = presence_marker(NUMBER)
# How often DistributedDataParallel times its own parts, of which it does one in a hundred by itself.
RUNTIME_SAMPLE_RATE = 10

# By the id of the model, as long as it lives. A weak dictionary takes longer to ask than all else here.
_reductions: dict[int, GradientReduction] = {}


def patch_parallel_model(parallel: Any, torch: Any, is_traced: Callable[[], bool]) -> None:
    """Time what DistributedDataParallel's backward pass waits for the other ranks."""
    original = parallel.forward

    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if paceline.may_be_traced and is_traced():
            return result
        if self.require_backward_grad_sync and torch.is_grad_enabled():
            # In lines: another call in each step costs a microsecond.
            reduction = _reductions.get(id(self)) or _watch_model(self, torch)
            reduction.is_expected = True
            if reduction.hooks_outputs:
                reduction.hook_output(result)
        return result

    parallel.forward = forward


def patch_manual_passes(overrides: Any, torch: Any, is_traced: Callable[[], bool]) -> None:
    """Time these waits in Lightning's manual optimization, whose backward passes lie within the forward call.

    `overrides` is its module whose `prepare_for_backward(model, loss)` comes before each of them.
    """
    original = overrides.prepare_for_backward

    @functools.wraps(original)
    def prepare_for_backward(model: Any, output: Any) -> None:
        original(model, output)
        traced = paceline.may_be_traced and is_traced()
        if not traced and model.require_backward_grad_sync and torch.is_grad_enabled():
            reduction = _reductions.get(id(model)) or _watch_model(model, torch)
            reduction.is_expected = True
            if reduction.hooks_outputs:
                reduction.hook_output(output)

    overrides.prepare_for_backward = prepare_for_backward


def add_gradient_overlap() -> None:
    """Add to the log how much of the gradients' communication went on beside the backward passes."""
    for reduction in list(_reductions.values()):
        reduction.add_overlap()


def forget_models() -> None:
    """Forget a forked process's parent's models, which reduce nothing here."""
    _reductions.clear()


class GradientReduction:
    """The reduction of one model's gradients, which begins in a backward pass and ends with it.

    `is_expected` says that the next pass reduces: the model ran since the last one, and not under `no_sync`.
    `count` are the reductions within the window; `is_on_device` says where the weights are.
    """

    def __init__(self, model: Any, torch: Any) -> None:
        key = id(model)
        self.model = weakref.ref(model, lambda _model: _reductions.pop(key, None))
        self.is_expected = False
        self.count = 0
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._size, self.is_on_device = describe_tensors(weights)
        self._of_all = model.process_group.size() == torch.distributed.get_world_size()
        self._torch = torch
        self._queue = torch.autograd.Variable._execution_engine.queue_callback
        self._begin = self._enclose_waiting()
        accumulation = _find_sure_accumulation(model)
        self.hooks_outputs = accumulation is None
        if accumulation is not None:
            accumulation.register_prehook(self._begin)

    def add_overlap(self) -> None:
        """Add to the log how much of the communication went on beside this model's backward passes."""
        model = self.model()
        times = model._get_ddp_logging_data() if model is not None else {}
        communication = times.get("avg_backward_comm_time", 0)
        if communication > 0 and self.count:
            hidden = min(communication, max(0, times.get("avg_backward_compute_comm_overlap_time", 0)))
            scale = 1e-9 * self.count
            log.overlap.add_overlapped(scale * communication, scale * hidden)

    def hook_output(self, result: Any) -> None:
        """Queue the callbacks when the backward pass comes to this output."""
        output = _find_output(result, self._torch)
        if output is not None:
            # The hook must not hold the output: below Python the output holds the hook, where no collector
            # sees it.
            output.register_hook(self._begin)

    def _enclose_waiting(self) -> Callable[[Any], None]:
        """Return the hook of a gradient or an output; what it and its callbacks need lies in cells."""
        queue, size, of_all, on_device = self._queue, self._size, self._of_all, self.is_on_device
        arrived = 0.0
        first: Any = None
        node: Any = None
        is_plain = False
        waiting: AbstractContextManager[None] = nullcontext()

        def begin(_gradients: Any) -> None:
            if self.is_expected:
                self.is_expected = False
                queue(end_computing)

        def end_computing() -> None:
            nonlocal arrived, first, node, is_plain, waiting
            arrived = perf_counter()
            presence.arrived = position = presence.arrived + ONE_ARRIVAL
            presence.numbers[POSITION] = position + MARKER
            first, is_plain = paceline.first_thread, False
            if get_ident() == first.ident:
                if node is None or node.parent is not first.node:
                    node = first.node.children.get(ALL_REDUCE)
                is_plain = node is not None and node.is_plain
            if is_plain:
                # In lines and not by calls, as in `wrapping.wrap_outermost`.
                first.node = node
                node.start = arrived
            else:
                waiting = paceline.phase(ALL_REDUCE)
                waiting.__enter__()
            queue(end_waiting)

        def end_waiting() -> None:
            left = perf_counter()
            if not is_plain:
                waiting.__exit__(None, None, None)
            elif first.node is node and node.is_plain:
                node.total += left - node.start
                node.count += 1
                first.node = node.parent
            else:
                node.__exit__(None, None, None)
            presence.numbers[POSITION] = presence.arrived
            if log.is_open:
                log.add(NUMBER, size, of_all, arrived, left, BEHIND_BACKWARD)
                self.count += 1
                if on_device:
                    log.on_device = True

        return begin


def _watch_model(model: Any, torch: Any) -> GradientReduction:
    reduction = _reductions[id(model)] = GradientReduction(model, torch)
    if not reduction.is_on_device:
        # On a device the next forward pass would wait for what was timed, and break the capture of a graph.
        model._set_ddp_runtime_logging_sample_rate(RUNTIME_SAMPLE_RATE)
    return reduction


def _find_sure_accumulation(model: Any) -> Any:
    """Return the node that accumulates a gradient which comes in every pass; None where none is sure to.

    Of those that DistributedDataParallel waits for it is the first weight's, which comes last.
    """
    if model.find_unused_parameters or model.static_graph or getattr(model, "mixed_precision", None):
        return None
    if getattr(model, "_use_python_reducer", False):
        return None
    awaited = (weight for weight in getattr(model, "_module_parameters", ()) if weight.requires_grad)
    weight = next(awaited, None)
    # There is no other way to it than from what is computed of the weight.
    return None if weight is None else weight.view_as(weight).grad_fn.next_functions[0][0]


def _find_output(result: Any, torch: Any) -> Any:
    leaves = (result,) if isinstance(result, torch.Tensor) else torch.utils._pytree.tree_leaves(result)
    return next((leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad), None)
