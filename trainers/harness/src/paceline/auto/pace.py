"""Where the steps of an unmodified script begin and end, and how it is ended.

A boundary is the end of an environment's step, or of an optimizer's. The one that comes first sets the
pace; a step runs from one of its boundaries to the next. Other environments (of an evaluation) and other
optimizers (of a second network) don't, unless the first one is gone. An environment also takes over from
an optimizer that has not ended a step yet. A script that uses `paceline.steps` sets its own pace.
"""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable, Iterable
from time import sleep
from typing import Any, Protocol

from ..measured.phase_nodes import ThreadState
from ..measured.step_loop import StepLoop

ENVIRONMENT = "environment"
OPTIMIZER = "optimizer"
# How often the end is raised again in a script that swallows it, and the seconds it may take to tidy up.
TRIES = 3
PATIENCE = 10.0
# A signal that scripts don't use, to end the main thread from the thread that takes the steps.
_SIGNAL = signal.SIGRTMIN + 9 if hasattr(signal, "SIGRTMIN") else None


_Hook = Callable[[threading.ExceptHookArgs], Any]


class Ended(BaseException):
    """The window is complete: the script is over."""


class Paced(Protocol):
    """What a recorder must offer to be paced."""

    @property
    def loop(self) -> Any: ...

    def take_steps_in_this_thread(self) -> ThreadState: ...

    def steps(self, iterable: Iterable[Any]) -> Iterable[Any]: ...


class Pace:
    """Turns the boundaries of one environment or optimizer into steps. `ended`: the end was raised."""

    def __init__(self, recorder: Paced, leave: Callable[[], None]) -> None:
        self._recorder = recorder
        self._loop: StepLoop = recorder.loop
        self._leave = leave
        self._kind = ""
        self._owner: Callable[[], object] = lambda: None
        self._by_hand = False
        self._steps = 0
        self._tries = 0
        self.ended = False

    def boundary(self, kind: str, owner: object) -> None:
        """Take the end of an environment's or optimizer's step; raises Ended when all is measured."""
        if self.ended:
            self._end_again()
        elif self._by_hand or (self._owner() is not owner and not self._takes_over(kind)):
            return
        elif self._owner() is owner:
            self._steps += 1
            if self._loop.end_step():
                self._end()
        elif self._kind:
            self._set(kind, owner)
            self._steps += 1
            if self._loop.end_step():
                self._end()
        else:
            self._set(kind, owner)
            self._recorder.take_steps_in_this_thread()
            self._loop.called = True
            self._loop.begin()

    def by_hand(self, iterable: Iterable[Any]) -> Iterable[Any]:
        """Leave the pace to the script, which calls `paceline.steps`."""
        self._by_hand = True
        return type(self._recorder).steps(self._recorder, iterable)

    def stop(self) -> None:
        """Take no more boundaries."""
        self._by_hand, self.ended = True, False

    def _takes_over(self, kind: str) -> bool:
        if not self._kind or self._owner() is None:
            return True
        return (self._kind, kind, self._steps) == (OPTIMIZER, ENVIRONMENT, 0)

    def _set(self, kind: str, owner: object) -> None:
        self._kind = kind
        try:
            self._owner = weakref.ref(owner)
        except TypeError:
            # A class with slots; it stays alive then, which does no harm.
            self._owner = lambda: owner

    def _end(self) -> None:
        self.ended = True
        threading.Thread(target=self._leave_later, name="paceline", daemon=True).start()
        main = threading.main_thread()
        if threading.current_thread() is not main and main.ident is not None and _SIGNAL is not None:
            signal.pthread_kill(main.ident, _SIGNAL)
        raise Ended

    def _end_again(self) -> None:
        # Other threads end one after the other; that says nothing about the main one.
        if threading.current_thread() is threading.main_thread():
            self._tries += 1
            if self._tries >= TRIES:
                self._leave()
        raise Ended

    def _leave_later(self) -> None:
        sleep(PATIENCE)
        self._leave()


_pace: Pace | None = None


def start(recorder: Paced, leave: Callable[[], None]) -> Pace:
    """Make the pace of this process. Call it in the main thread."""
    global _pace
    _pace = pace = Pace(recorder, leave)
    recorder.steps = pace.by_hand  # type: ignore[method-assign]
    if _SIGNAL is not None:
        signal.signal(_SIGNAL, _end_main_thread)
    threading.excepthook = _quiet(threading.excepthook)
    return pace


def stop() -> None:
    """Take no more boundaries in this process."""
    if _pace is not None:
        _pace.stop()


def boundary(kind: str, owner: object) -> None:
    """Take the end of a step of `owner`; nothing happens where nothing is paced."""
    if _pace is not None:
        _pace.boundary(kind, owner)


def _end_main_thread(_number: int, _frame: object) -> None:
    if _pace is not None and _pace.ended:
        raise Ended


def _quiet(
    before: Callable[[threading.ExceptHookArgs], object],
) -> Callable[[threading.ExceptHookArgs], None]:
    def hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_type is not Ended:
            before(arguments)

    return hook
