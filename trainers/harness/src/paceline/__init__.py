"""Paceline's harness: marks in training code, free outside a measurement.

for batch in paceline.steps(loader):
    with paceline.phase("learn"):
        ...
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

    from .recorder import Recorder

__version__ = "0.2.0"
__all__ = ["count", "gauge", "lap", "phase", "quality", "setting", "steps"]

_Item = TypeVar("_Item")


class _NullPhase:
    """The phase outside a measurement: does nothing."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _NoThread:
    """What is asked for the first thread outside a measurement: no thread has this number."""

    ident = 0


_null_phase = _NullPhase()
_recorder: Recorder | None = None
# For the wrappers of `auto`: the `ThreadState` of the thread that made the recorder.
first_thread: Any = _NoThread()
# For them too: False as long as no compiler has begun to trace, so that none of them has to ask it.
may_be_traced = True


def phase(name: str) -> AbstractContextManager[None]:
    """Mark a span of a step: `with phase("learn"):`. Phases nest, their paths are joined by `/`."""
    if _recorder is None:
        return _null_phase
    return _recorder.phase(name)


def lap(name: str) -> None:
    """Mark the end of a span: what ran since the last lap mark belongs to phase `name`.

    The first lap of a step begins with the step, the first one inside a phase with that phase, and a phase
    between two laps is part of neither. It costs a third of a phase, for steps of 100 microseconds; only
    the thread that takes the steps makes laps, and only inside its loop.
    """
    if _recorder is not None:
        _recorder.lap(name)


def steps(iterable: Iterable[_Item]) -> Iterable[_Item]:
    """Iterate over the training loop's steps; a measurement ends it when its window is complete."""
    if _recorder is None:
        return iterable
    return _recorder.steps(iterable)


def count(name: str, n: float = 1) -> None:
    """Add `n` to a counter of the code's own; it is reported per step as `count.NAME`."""
    if _recorder is not None:
        _recorder.count(name, n)


def gauge(name: str, value: float) -> None:
    """Set a reading such as a queue's length; its mean over the window is reported as `gauge.NAME`."""
    if _recorder is not None:
        _recorder.gauge(name, value)


def quality(name: str, value: float) -> None:
    """Report how well the code learned, also after the loop; the last value is reported as `quality.NAME`."""
    if _recorder is not None:
        _recorder.quality(name, value)


def setting(name: str, value: object) -> None:
    """Report what the code chose by itself, such as what the machine can do: `setting("bf16", "off")`.

    The last value, as text, belongs to the run's environment: where it changes, its series show a marker.
    """
    if _recorder is not None:
        _recorder.setting(name, value)


def activate_recorder(recorder: Recorder) -> None:
    """Let a recorder take the marks from now on. For the measured process, before the script runs."""
    global _recorder
    _recorder = recorder
    # Spares every mark the test above and one call.
    globals().update(phase=recorder.phase, lap=recorder.lap)
    globals().update(first_thread=recorder.first_thread)
    _hook_forking()


@functools.cache
def _hook_forking() -> None:
    # Once: a forked process may get a recorder of its own, which this must not take from its children.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_stop_recording)


_inactive_marks = {"phase": phase, "lap": lap, "first_thread": first_thread}


def _stop_recording() -> None:
    """Record nothing in a process that the measured one forked."""
    global _recorder
    if _recorder is not None:
        _recorder.stop_recording()
        _recorder = None
        globals().update(_inactive_marks)
