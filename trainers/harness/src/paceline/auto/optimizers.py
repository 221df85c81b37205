"""Phases of optimizers, and which of them ends a step: the innermost one that really stepped.

Frameworks wrap an optimizer in one of their own (Accelerate, Lightning). When gradients accumulate, such a
wrapper is stepped at every batch, and steps what it wraps only at the last of them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from . import backward_passes
from .wrapping import Function, unwrap_function, wrap_in_every_class, wrap_outermost

OPTIMIZER = "optimizer"
ZERO_GRAD = "zero_grad"
# What every optimizer keeps for its weights: it may be long, and is asked for at each step.
OF_WEIGHTS = ("param_groups", "state")
# So many optimizers a wrapper holds in one list at most; longer lists hold something else.
MOST_HELD = 64

# By thread: the optimizer that stepped inside the outermost call.
_stepped: dict[int, object] = {}


def patch_optimizers(torch: Any, is_traced: Callable[[], bool]) -> None:
    """Time `step` and `zero_grad` of every optimizer, and let its steps end steps of the loop."""

    def step(original: Function) -> Function:
        return wrap_optimizer_step(original, is_traced)

    def zero_grad(original: Function) -> Function:
        return wrap_outermost(ZERO_GRAD, original, is_traced)

    wrap_in_every_class(torch.optim.Optimizer, "step", step)
    _patch_hooked_steps(torch.optim.Optimizer, is_traced)
    wrap_in_every_class(torch.optim.Optimizer, "zero_grad", zero_grad)
    _patch_compiled_steps(torch, is_traced)


def wrap_optimizer_step(original: Function, is_traced: Callable[[], bool]) -> Function:
    """Return an optimizer's `step` in a phase; its end is the end of a step of the optimizer that stepped."""
    # The innermost one returns first.
    return wrap_outermost(OPTIMIZER, original, is_traced, _end_step, _stepped.setdefault)


def _end_hooked_step(ident: int, has_returned: bool, args: tuple[Any, ...]) -> None:
    called = args[0]
    stepped = _stepped.pop(ident, called) if _stepped else called
    if has_returned:
        backward_passes.end_optimizer_step(stepped, called)


def _end_step(ident: int, has_returned: bool, args: tuple[Any, ...]) -> None:
    called, stepped = args[0], _stepped.pop(ident, None)
    if not has_returned:
        return
    if stepped is None and not _wraps_optimizer(called):
        stepped = called
    if stepped is not None:
        backward_passes.end_optimizer_step(stepped, called)


def _patch_compiled_steps(torch: Any, is_traced: Callable[[], bool]) -> None:
    """Time what `torch.compile(optimizer.step)` returns: the compiler leaves the wrapper within it out."""
    original = getattr(torch, "compile", None)
    if original is None:
        return

    @functools.wraps(original)
    def compile_code(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        compiled = original(model, *args, **kwargs)
        optimizer = getattr(model, "__self__", None)
        if isinstance(optimizer, torch.optim.Optimizer) and getattr(model, "__name__", "") == "step":
            return _time_compiled_step(optimizer, compiled, is_traced)
        return compiled

    torch.compile = compile_code


def _time_compiled_step(optimizer: Any, compiled: Function, is_traced: Callable[[], bool]) -> Function:
    timed = wrap_optimizer_step(lambda _, *args, **kwargs: compiled(*args, **kwargs), is_traced)

    @functools.wraps(compiled)
    def step(*args: Any, **kwargs: Any) -> Any:
        return timed(optimizer, *args, **kwargs)

    return step


def _wraps_optimizer(optimizer: Any) -> bool:
    """Whether another optimizer is kept inside this one, as wrappers do, by itself or with others."""
    base = sys.modules["torch"].optim.Optimizer
    kept = getattr(optimizer, "__dict__", {}).items()
    return any(
        isinstance(held, base)
        for name, value in kept
        if name not in OF_WEIGHTS
        for held in _kept_values(value)
    )


def _kept_values(value: Any) -> Iterable[Any]:
    """Return the value, or the first ones that it holds: this is asked at every step."""
    if isinstance(value, list | tuple):
        return value[:MOST_HELD]
    return islice(value.values(), MOST_HELD) if isinstance(value, dict) else (value,)


def _patch_hooked_steps(optimizer: Any, is_traced: Callable[[], bool]) -> None:
    """Wrap what an optimizer, when it is made, puts around its class's `step`: hooks belong to it too.

    They are put around the method itself: of two wrappers the inner one would only tell that it steps.
    """
    original = optimizer._patch_step_function

    @functools.wraps(original)
    def patch_step_function(self: Any) -> None:
        cls, before = type(self), type(self).step
        if getattr(before, "hooked", False):
            original(self)
            return
        cls.step = unwrap_function(before)
        original(self)
        cls.step = wrap_outermost(OPTIMIZER, cls.step, is_traced, _end_hooked_step, _stepped.setdefault)

    optimizer._patch_step_function = patch_step_function
