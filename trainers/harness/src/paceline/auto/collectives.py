"""Phases of torch.distributed: collectives and messages, and the waiting for them.

What a collective shows only at its end is recorded then: rank and rank wait for each other, so what delays
one before it delays all.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import paceline

from ..measured.collective_log import KINDS, Collective, log
from ..measured.cuda_device import is_captured
from ..measured.rank_presence import ONE_ARRIVAL, POSITION, presence, presence_marker
from . import gradient_reduction
from .passthrough import call_original
from .tensor_sizes import describe_tensors
from .wrapping import Function, OutermostCalls

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

_calls = OutermostCalls("collectives")
# Asynchronous collectives that nobody has waited for yet, by their work. One whose end is taken otherwise, by
# its future or not at all, goes with its work: the next one may get the same address.
_pending: WeakKeyDictionary[Any, Collective] = WeakKeyDictionary()


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


def forget_calls() -> None:
    """Forget what a forked process's parent has under way."""
    _calls.forget()
    _pending.clear()
    gradient_reduction.forget_models()
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
    given_at = names.index(argument) if argument in names else len(names)
    group_at = names.index("group") if "group" in names else len(names)
    number = KINDS.index(kind)
    marker = presence_marker(number)
    node: Any = None

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal node
        if paceline.may_be_traced and is_traced():
            return original(*args, **kwargs)
        ident, first = get_ident(), paceline.first_thread
        is_first = ident == first.ident
        if _calls.is_open if is_first else ident in _calls.others:
            return original(*args, **kwargs)
        if is_first:
            _calls.is_open = True
        else:
            _calls.others.add(ident)
        is_plain, arrived = False, perf_counter()
        presence.arrived = position = presence.arrived + ONE_ARRIVAL
        presence.numbers[POSITION] = position + marker
        try:
            if is_first:
                if node is None or node.parent is not first.node:
                    node = first.node.children.get(kind)
                is_plain = node is not None and node.is_plain
            if is_plain:
                # In lines and not by calls, as in `wrapping.wrap_outermost`.
                first.node = node
                node.start = arrived
                work = original(*args, **kwargs)
            else:
                with paceline.phase(kind):
                    work = original(*args, **kwargs)
        finally:
            left = perf_counter()
            if is_plain:
                if first.node is node and node.is_plain:
                    node.total += left - node.start
                    node.count += 1
                    first.node = node.parent
                else:
                    node.__exit__(None, None, None)
            if is_first:
                _calls.is_open = False
            else:
                _calls.others.discard(ident)
        presence.numbers[POSITION] = position
        if not log.is_open:
            return work
        given: Any = args[given_at] if given_at < len(args) else kwargs.get(argument or "")
        group = args[group_at] if group_at < len(args) else kwargs.get("group")
        of_all = is_collective and (group is None or _is_of_all(group, distributed))
        try:
            # A tensor is asked in this line: a call costs as much again.
            size, on_device = given.nbytes, given.is_cuda
        except (AttributeError, RuntimeError):
            size, on_device = describe_tensors(given)
        if on_device:
            log.on_device = True
        if work is None or not hasattr(work, "wait"):
            log.add(number, size, of_all, arrived, left)
            return work
        launched = log.launch(number, size, of_all, arrived, left)
        if isinstance(work, distributed.Work):
            _pending[work] = launched
        return work

    return wrapped


def _wrap_wait(original: Function) -> Function:
    @functools.wraps(original)
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        launched = _pending.pop(self, None)
        if launched is None:
            return original(self, *args, **kwargs)
        # In a captured graph the question would end the capture with an error.
        had_ended = not is_captured() and self.is_completed()
        began = perf_counter()
        presence.arrived = position = presence.arrived + ONE_ARRIVAL
        presence.numbers[POSITION] = position + presence_marker(launched.kind)
        with paceline.phase(KINDS[launched.kind]):
            result = call_original(original, (self, *args), kwargs)
        presence.numbers[POSITION] = position
        log.finish(launched, began, perf_counter(), had_ended=had_ended)
        return result

    return wait


def _is_of_all(group: Any, distributed: Any) -> bool:
    if group is None or not distributed.is_initialized():
        return True
    return bool(distributed.get_world_size(group) == distributed.get_world_size())
