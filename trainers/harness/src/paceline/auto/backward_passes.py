"""Phases of backward passes, and the end of a step that an optimizer takes within one.

Optimizers may step in the hooks of gradients, one for each parameter, so that no gradient is kept. Hooks run
in a state of autograd's own, on a device in a thread of its own: nothing may be opened or closed in them that
outlives them. So the step ends where the backward pass does.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import _DummyThread, current_thread, get_ident
from typing import Any

from ..phase_names import BACKWARD
from ..step_kinds import OPTIMIZER
from . import graphs, step_finder
from .wrapping import Function, calls_of_phase, wrap_outermost

# By the thread that called a backward pass: the optimizers that stepped in it, with what the code called.
_stepped: dict[int, dict[int, tuple[object, object]]] = {}
_calls = calls_of_phase(BACKWARD)


def wrap_backward(original: Function, is_traced: Callable[[], bool]) -> Function:
    """Return a backward pass in a phase, whose end is the end of the steps that optimizers took in it."""
    return wrap_outermost(BACKWARD, original, is_traced, _end_steps)


def _end_steps(caller: int, has_returned: bool, _args: tuple[Any, ...]) -> None:
    stepped = _stepped.pop(caller, None) if _stepped else None
    if has_returned and stepped is not None:
        for optimizer, wrapper in stepped.values():
            # Where this pass is one within another, as checkpoints have them, with the outer one.
            end_optimizer_step(optimizer, wrapper)


def end_optimizer_step(optimizer: object, wrapper: object) -> None:
    """End the step of an optimizer now, or with the backward pass that this is called in.

    Of one that a CUDA graph captures, each replay ends a step.
    """
    if not (_calls.is_open or _calls.others or graphs.captures):
        step_finder.end_owner_step(OPTIMIZER, optimizer, wrapper)
        return
    caller = _find_caller()
    if graphs.captures and graphs.keep_captured_step(
        optimizer, wrapper, get_ident() if caller is None else caller
    ):
        return
    if caller is None:
        step_finder.end_owner_step(OPTIMIZER, optimizer, wrapper)
    else:
        _stepped.setdefault(caller, {})[id(optimizer)] = optimizer, wrapper


def _find_caller() -> int | None:
    """Return the thread that waits for the backward pass in which this is called; None outside of any."""
    ident = get_ident()
    inside = _calls.find_threads()
    if ident in inside:
        return ident
    # Python didn't start autograd's own threads. Of several passes at once any is as good.
    return min(inside, default=None) if isinstance(current_thread(), _DummyThread) else None


def forget_calls() -> None:
    """Forget in a forked process what its parent's backward passes hold."""
    _stepped.clear()
