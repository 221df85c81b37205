"""Phases of torch.distributed: collectives, the waiting for them, and DistributedDataParallel's gradients.

DistributedDataParallel reduces its gradients below Python while the backward pass goes on. What of it isn't
hidden behind the pass lies between the pass's last kernel and its end: two callbacks of the autograd engine
enclose it, one queued before DistributedDataParallel's own and one behind it. Nothing that is computed or
sent is touched.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from typing import Any

import paceline

from ..measured.collective_log import Collective, log
from ..measured.rank_presence import presence
from .passthrough import call_original
from .wrapping import Function

ALL_REDUCE = "all_reduce"
BARRIER = "barrier"
# By function: its phase, and the argument whose bytes this rank gives in (or, as a receiver, takes).
COLLECTIVES = {
    "all_reduce": ("all_reduce", "tensor"),
    "all_reduce_coalesced": ("all_reduce", "tensors"),
    "reduce": ("reduce", "tensor"),
    "broadcast": ("broadcast", "tensor"),
    "all_gather": ("all_gather", "tensor"),
    "all_gather_into_tensor": ("all_gather", "input_tensor"),
    "all_gather_single": ("all_gather", "input_tensor"),
    "all_gather_coalesced": ("all_gather", "input_tensor_list"),
    "_all_gather_base": ("all_gather", "input_tensor"),
    "all_gather_object": ("all_gather", None),
    "gather": ("gather", "tensor"),
    "gather_object": ("gather", None),
    "scatter": ("scatter", "tensor"),
    "scatter_object_list": ("scatter", None),
    "broadcast_object_list": ("broadcast", None),
    "reduce_scatter": ("reduce_scatter", "input_list"),
    "reduce_scatter_tensor": ("reduce_scatter", "input"),
    "reduce_scatter_single": ("reduce_scatter", "input"),
    "_reduce_scatter_base": ("reduce_scatter", "input"),
    "all_to_all": ("all_to_all", "input_tensor_list"),
    "all_to_all_single": ("all_to_all", "input"),
    "barrier": ("barrier", None),
    "monitored_barrier": ("barrier", None),
}
# Between two ranks: nobody else comes to them.
MESSAGES = {name: (name.removeprefix("i"), "tensor") for name in ("send", "recv", "isend", "irecv")}
PENDING_LIMIT = 1000
# How often DistributedDataParallel times its own parts, of which it does one in a hundred by itself.
RUNTIME_SAMPLE_RATE = 10

_inside: set[int] = set()
# Asynchronous collectives that nobody has waited for yet, by the id of their work: with their bytes, and the
# seconds that launching took.
_pending: dict[int, tuple[Collective, int, float]] = {}
_parallel_models: weakref.WeakKeyDictionary[Any, _ReducedGradients] = weakref.WeakKeyDictionary()


def patch_distributed(distributed: Any, is_traced: Callable[[], bool]) -> None:
    """Time the collectives of torch.distributed, where PyTorch was built with it."""
    if not distributed.is_available():
        return
    for name, (kind, argument) in (COLLECTIVES | MESSAGES).items():
        original = getattr(distributed, name, None)
        if original is not None:
            wrapped = _wrap_collective(kind, argument, original, distributed, is_traced, name in COLLECTIVES)
            for module in (distributed, distributed.distributed_c10d):
                setattr(module, name, wrapped)
    _patch_broadcast_of_buffers(distributed, is_traced)
    distributed.Work.wait = _wrap_wait(distributed.Work.wait)


def patch_parallel_model(parallel: Any, torch: Any, is_traced: Callable[[], bool]) -> None:
    """Time what DistributedDataParallel's backward pass waits for the other ranks."""
    original = parallel.forward

    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not is_traced() and torch.is_grad_enabled() and self.require_backward_grad_sync:
            _watch_backward(self, result, torch)
        return result

    parallel.forward = forward


def add_gradient_overlap() -> None:
    """Add to the log how much of the gradients' communication went on beside the backward passes."""
    for model in list(_parallel_models):
        times = model._get_ddp_logging_data()
        communication = times.get("avg_backward_comm_time", 0)
        if communication > 0 and log.overlap.gradients:
            hidden = min(communication, max(0, times.get("avg_backward_compute_comm_overlap_time", 0)))
            scale = 1e-9 * log.overlap.gradients
            log.overlap.add_overlapped(scale * communication, scale * hidden)
            return


def forget_calls() -> None:
    """Forget what a forked process's parent has under way."""
    _inside.clear()
    _pending.clear()
    log.reset()


def _patch_broadcast_of_buffers(distributed: Any, is_traced: Callable[[], bool]) -> None:
    """Time how DistributedDataParallel sends a model's buffers, which is a built-in function."""
    original = distributed._broadcast_coalesced

    def broadcast(group: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        return original(group, tensors, *args, **kwargs)

    distributed._broadcast_coalesced = _wrap_collective(
        "broadcast", "tensors", broadcast, distributed, is_traced, is_collective=True
    )


def _wrap_collective(
    kind: str,
    argument: str | None,
    original: Function,
    distributed: Any,
    is_traced: Callable[[], bool],
    is_collective: bool,
) -> Function:
    names = list(inspect.signature(original).parameters)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_traced() or get_ident() in _inside:
            return original(*args, **kwargs)
        given = dict(zip(names, args, strict=False)) | kwargs
        size = _bytes_of(given.get(argument)) if argument else 0
        of_all = is_collective and _is_of_all(given.get("group"), distributed)
        arrived = perf_counter()
        collective = log.launch(kind, size, arrived, of_all=of_all)
        presence.arrive_at(kind)
        _inside.add(get_ident())
        try:
            with paceline.phase(kind):
                work = call_original(original, args, kwargs)
        finally:
            _inside.discard(get_ident())
        presence.leave()
        left = perf_counter()
        if collective is None:
            return work
        log.on_device |= _is_on_device(given.get(argument)) if argument else False
        if hasattr(work, "wait"):
            if len(_pending) >= PENDING_LIMIT:
                _pending.clear()
            _pending[id(work)] = collective, size, left - arrived
        else:
            log.finish(collective, arrived, left)
            if kind != BARRIER:
                log.overlap.add_blocking(left - arrived)
        return work

    return wrapped


def _wrap_wait(original: Function) -> Function:
    @functools.wraps(original)
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        launched = _pending.pop(id(self), None)
        if launched is None:
            return original(self, *args, **kwargs)
        collective, size, launching = launched
        had_ended = self.is_completed()
        began = perf_counter()
        presence.arrive_at(collective.kind)
        with paceline.phase(collective.kind):
            result = call_original(original, (self, *args), kwargs)
        presence.leave()
        left = perf_counter()
        log.finish(collective, began, left, launching)
        if had_ended:
            log.overlap.add_ended_before(collective.kind, size, began - collective.arrived)
        else:
            under_way = left - collective.arrived
            log.overlap.add_waited(collective.kind, size, under_way, began - collective.arrived)
        return result

    return wait


def _watch_backward(model: Any, result: Any, torch: Any) -> None:
    output = _find_output(result, torch)
    if output is None:
        return
    gradients = _parallel_models.get(model)
    if gradients is None:
        gradients = _parallel_models[model] = _ReducedGradients(model, torch)
    # The hook must not hold the output: below Python the output holds the hook, where no collector sees it.
    output.register_hook(gradients.begin_backward)


def _find_output(result: Any, torch: Any) -> Any:
    leaves = (result,) if isinstance(result, torch.Tensor) else torch.utils._pytree.tree_leaves(result)
    return next((leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad), None)


class _ReducedGradients:
    """The reduction of one model's gradients, which begins in each backward pass and ends with it."""

    def __init__(self, model: Any, torch: Any) -> None:
        model._set_ddp_runtime_logging_sample_rate(RUNTIME_SAMPLE_RATE)
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._size = sum(_bytes_of(weight) for weight in weights)
        self._is_on_device = any(weight.is_cuda for weight in weights)
        self._of_all = model.process_group.size() == torch.distributed.get_world_size()
        self._engine = torch.autograd.Variable._execution_engine

    def begin_backward(self, _gradient: Any) -> None:
        """Queue before DistributedDataParallel queues its own callback, which waits for the reduction."""
        self._engine.queue_callback(self._end_computing)

    def _end_computing(self) -> None:
        arrived, waiting = perf_counter(), paceline.phase(ALL_REDUCE)
        collective = log.launch(ALL_REDUCE, self._size, arrived, of_all=self._of_all)
        presence.arrive_at(ALL_REDUCE)
        waiting.__enter__()

        def end_waiting() -> None:
            waiting.__exit__(None, None, None)
            presence.leave()
            if collective is not None:
                log.finish(collective, arrived, perf_counter())
                log.overlap.gradients += 1
                log.on_device |= self._is_on_device

        self._engine.queue_callback(end_waiting)


def _is_of_all(group: Any, distributed: Any) -> bool:
    if group is None or not distributed.is_initialized():
        return True
    return bool(distributed.get_world_size(group) == distributed.get_world_size())


def _is_on_device(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_is_on_device(item) for item in value)
    return bool(getattr(value, "is_cuda", False))


def _bytes_of(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(_bytes_of(item) for item in value)
    return int(value.numel() * value.element_size()) if hasattr(value, "element_size") else 0
