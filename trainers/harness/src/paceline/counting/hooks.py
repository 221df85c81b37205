"""Counts what passes no dispatcher: lists of a tensor's elements, waits for a device, steps of an optimizer.

The hooks stand only while the operations are counted, and take nothing from the program's own calls.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from .replaced_functions import Function, replace_function
from .tally import Tally

# Where every public way to wait for a device ends; builds without the device lack the name.
WAIT_FUNCTIONS = (
    ("torch._C", "_cuda_synchronize"),
    ("torch._C", "_xpu_synchronize"),
    ("torch._C", "_mps_deviceSynchronize"),
    ("torch._C", "_accelerator_synchronizeDevice"),
    ("torch.cuda", "Stream.synchronize"),
    ("torch.cuda", "Event.synchronize"),
)

CurrentTally = Callable[[], Tally]


@contextmanager
def install_hooks(current_tally: CurrentTally) -> Iterator[None]:
    """Count into the tally that `current_tally` returns for the calling thread."""
    with ExitStack() as hooks:
        for module, name in WAIT_FUNCTIONS:
            hooks.enter_context(_call_before(module, name, lambda *_: _count_wait(current_tally)))
        hooks.enter_context(_call_before("torch", "Tensor.tolist", lambda *_: _count_tolist(current_tally)))
        hooks.enter_context(_optimizer_steps(current_tally))
        yield


@contextmanager
def _call_before(module: str, name: str, count: Callable[..., None]) -> Iterator[None]:
    """Call `count` with the same arguments before each call of what the module knows by that name."""
    *path, name = name.split(".")
    owner = functools.reduce(lambda value, part: getattr(value, part, None), path, sys.modules.get(module))
    if getattr(owner, name, None) is None:
        yield
        return

    def wrap(original: Function) -> Function:
        @functools.wraps(original)
        def counted(*args: Any, **kwargs: Any) -> Any:
            count(*args)
            return original(*args, **kwargs)

        return counted

    with replace_function(owner, name, wrap):
        yield


@contextmanager
def _optimizer_steps(current_tally: CurrentTally) -> Iterator[None]:
    optimizers = sys.modules.get("torch.optim.optimizer")
    if optimizers is None:
        yield
        return

    def count(*_: object) -> None:
        current_tally().optimizer_steps += 1

    hook = optimizers.register_optimizer_step_post_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _count_wait(current_tally: CurrentTally) -> None:
    current_tally().synchronisations += 1


def _count_tolist(current_tally: CurrentTally) -> None:
    # What lies on a device is copied to the host first, which the dispatch mode sees.
    current_tally().scalar_reads += 1
