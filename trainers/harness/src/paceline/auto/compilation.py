"""The phase of compilation, by the callbacks that TorchDynamo runs before and after it."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

import paceline

COMPILE = "compile"

# What is compiled while something is compiled belongs to it; the two calls may come in any thread.
_open = threading.local()


def patch(callback: Any) -> None:
    """Time compilation, once the module `torch._dynamo.callback` is imported."""
    callback.callback_handler.register_start_callback(_begin)
    callback.callback_handler.register_end_callback(_end)


def _begin(_arguments: object) -> None:
    if getattr(_open, "phase", None) is None:
        phase: AbstractContextManager[None] = paceline.phase(COMPILE)
        phase.__enter__()
        _open.phase = phase


def _end(_arguments: object) -> None:
    phase = getattr(_open, "phase", None)
    if phase is not None:
        _open.phase = None
        phase.__exit__(None, None, None)
