"""Finds the steps of an unmodified script, and ends it when all is measured.

A step ends with the step of an environment or of an optimizer: its owner. Whichever of them steps first sets
the pace; a step runs from the end of one of its steps to the end of the next. Other environments (of an
evaluation) and other optimizers (of a second network) end no steps, unless the first owner is gone or turns
out to be a wrapper of what steps, or stopped in the warm-up, long before another of its kind: an optimizer
as that of a short pretraining does, an environment as one that was only looked at, where there is learning
beside the other one. An environment also takes over from an optimizer that has not ended a step yet. A
script that uses `paceline.steps` sets its own pace. What ends a step may also be chosen; batches of a loader
do only then.
"""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable, Iterable
from time import sleep
from typing import Any, Protocol

from ..measured.step_loop import StepLoop
from ..step_kinds import BATCH, ENVIRONMENT, MARK, OPTIMIZER

# How often the end is raised again in a script that swallows it, and the seconds it may take to tidy up.
END_TRIES = 3
TIDY_UP_SECONDS = 10.0
# So many times as often another of its kind steps without a step of the owner, and so often at least, until
# it takes over.
OUTRUN = 10
OUTRUN_LEAST = 100
# A signal that scripts don't use, to end the main thread from the thread that takes the steps.
_SIGNAL = signal.SIGRTMIN + 9 if hasattr(signal, "SIGRTMIN") else None


class ScriptEnded(BaseException):
    """The window is complete: the script is over."""


class SteppedRecorder(Protocol):
    """The interface of a recorder whose steps are found."""

    @property
    def loop(self) -> Any: ...

    def steps(self, iterable: Iterable[Any]) -> Iterable[Any]: ...


class StepFinder:
    """Turns the steps of one environment or optimizer into steps of the loop.

    `chosen` is the kind of owner that alone ends steps, empty for whichever steps first; `may_end_steps` says
    of a kind whether it may be the first. `before_end` is called before the end is raised in the script, and
    returns False where it is to go on; `ended` says that it was raised; `seen` counts by kind.
    """

    def __init__(
        self,
        recorder: SteppedRecorder,
        end_process: Callable[[], None],
        chosen: str = "",
        before_end: Callable[[], bool] = lambda: True,
        may_end_steps: Callable[[str], bool] = lambda _kind: True,
    ) -> None:
        self._recorder = recorder
        self._loop: StepLoop = recorder.loop
        self._end_process = end_process
        self._chosen = chosen
        self._before_end = before_end
        self._may_end_steps = may_end_steps
        self._owner_name = self._succeeded = ""
        self._succeeded_after = 0
        self._former_names: set[str] = set()
        self._alternates = False
        self._rival: Callable[[], object] = lambda: None
        self._rival_steps = self._steps_beside_rival = self._learned_before_rival = 0
        # By kind: a plain dictionary, which costs less than a Counter in every step.
        self._seen = dict.fromkeys((OPTIMIZER, BATCH, ENVIRONMENT), 0)
        self._kind = ""
        # The kind of the steps that the owner ends; empty where something else ends steps, or nothing does.
        self._settled_kind = ""
        self._owner: Callable[[], object] = lambda: None
        self._script_marks_steps = False
        self._steps = 0
        self._tries = 0
        self.ended = False

    @property
    def seen(self) -> dict[str, int]:
        """How many steps of each kind there were; kinds without any are left out."""
        return {kind: steps for kind, steps in self._seen.items() if steps}

    def end_owner_step(self, kind: str, owner: object, wrapper: object = None) -> None:
        """Take the end of an owner's step; raises ScriptEnded when all is measured.

        `wrapper` is what the code called, where that isn't the owner itself.
        """
        if kind == self._settled_kind and self._owner() is owner:
            # Almost every call: the same owner as before.
            self._seen[kind] += 1
            self._rival_steps = 0
            if threading.get_ident() != self._loop.lasting_ident:
                self._loop.follow_thread()
            self._steps += 1
            if self._loop.end_step():
                self._end()
            return
        if kind == BATCH and self._chosen != BATCH:
            self._seen[kind] += 1
            return
        if self.ended:
            self._end_again()
        self._seen[kind] += 1
        if self._chosen and kind != self._chosen:
            return
        if self._script_marks_steps:
            return
        if not (
            self._owner() is owner
            or self._may_take_over(kind, wrapper)
            or self._has_stepped_further(kind, owner)
        ):
            return
        if not self._kind and not self._may_end_steps(kind):
            return
        is_first = not self._kind
        if self._owner() is not owner:
            if self._kind and self._owner() is None:
                self._note_successor(kind, owner)
            self._set_owner(kind, owner)
        self._rival_steps = 0
        self._loop.follow_thread()
        if is_first:
            self._loop.called = True
            self._loop.begin()
            return
        self._steps += 1
        if self._loop.end_step():
            self._end()

    def leave_steps_to_script(self, iterable: Iterable[Any]) -> Iterable[Any]:
        """Let the script set the pace, which calls `paceline.steps`, unless something else was chosen."""
        if self._chosen not in ("", MARK):
            return iterable
        self._script_marks_steps, self._settled_kind = True, ""
        return type(self._recorder).steps(self._recorder, iterable)

    def describe_step(self) -> dict[str, Any] | None:
        """Return what ends a step, and whether that was chosen; None where nothing did."""
        if self._script_marks_steps:
            return {"kind": MARK, "owner": "paceline.steps", "chosen": bool(self._chosen)}
        if not self._kind:
            return None
        step = {"kind": self._kind, "owner": self._owner_name, "chosen": bool(self._chosen)}
        if not self._succeeded:
            return step
        succession = {"succeeded": self._succeeded, "succeeded_after": self._succeeded_after}
        return {**step, **succession, "alternates": self._alternates}

    def stop(self) -> None:
        """End no more steps."""
        self._script_marks_steps, self.ended, self._settled_kind = True, False, ""

    def _may_take_over(self, kind: str, wrapper: object) -> bool:
        owner = self._owner()
        # A wrapper that nothing showed to be one when it was called first: what it steps is the owner.
        if not self._kind or owner is None or owner is wrapper:
            return True
        return (self._kind, kind, self._steps) == (OPTIMIZER, ENVIRONMENT, 0)

    def _has_stepped_further(self, kind: str, owner: object) -> bool:
        """Whether this one of its kind steps on where the owner stopped, while what ends is in no window."""
        if not (kind == self._kind and kind != BATCH and self._steps < self._loop.warmup_steps):
            return False
        if self._rival() is not owner:
            self._steps_beside_rival += 1
        # A rival may have stopped as well.
        if not self._rival_steps or self._rival() is None or self._steps_beside_rival >= OUTRUN_LEAST:
            self._rival, self._rival_steps = refer_to(owner), 0
            self._learned_before_rival = self._seen[OPTIMIZER]
        elif self._rival() is not owner:
            return False
        self._steps_beside_rival = 0
        self._rival_steps += 1
        if self._rival_steps < max(OUTRUN_LEAST, OUTRUN * (self._steps + 1)):
            return False
        if kind == ENVIRONMENT and self._seen[OPTIMIZER] == self._learned_before_rival:
            # Nothing is learned from an evaluation's.
            return False
        self._succeed_owner(owner)
        return True

    def _note_successor(self, kind: str, owner: object) -> None:
        """Note another kind of owner than the one that is gone; environments come and go with episodes."""
        if kind != self._kind or (kind == OPTIMIZER and _name_of(owner) != self._owner_name):
            self._succeed_owner(owner)

    def _succeed_owner(self, owner: object) -> None:
        self._succeeded, self._succeeded_after = self._owner_name, self._steps
        name = _name_of(owner)
        self._alternates |= name != self._owner_name and name in self._former_names
        self._former_names.add(self._owner_name)

    def _set_owner(self, kind: str, owner: object) -> None:
        self._kind = self._settled_kind = kind
        self._owner_name = _name_of(owner)
        self._owner = refer_to(owner)

    def _end(self) -> None:
        if not self._before_end():
            self.stop()
            return
        self.ended, self._settled_kind = True, ""
        threading.Thread(target=self._end_process_later, name="paceline", daemon=True).start()
        main = threading.main_thread()
        if threading.current_thread() is not main and main.ident is not None and _SIGNAL is not None:
            signal.pthread_kill(main.ident, _SIGNAL)
        raise ScriptEnded

    def _end_again(self) -> None:
        # Other threads end one after the other; that says nothing about the main one.
        if threading.current_thread() is threading.main_thread():
            self._tries += 1
            if self._tries >= END_TRIES:
                self._end_process()
        raise ScriptEnded

    def _end_process_later(self) -> None:
        sleep(TIDY_UP_SECONDS)
        self._end_process()


def _name_of(owner: object) -> str:
    return type(owner).__name__[:100]


def refer_to(owner: object) -> Callable[[], object]:
    """Return what returns the owner, without keeping it alive where that is possible."""
    try:
        return weakref.ref(owner)
    except TypeError:
        # A class with slots; it stays alive then, which does no harm.
        return lambda: owner


_finder: StepFinder | None = None


def start_step_finder(
    recorder: SteppedRecorder,
    end_process: Callable[[], None],
    chosen: str = "",
    before_end: Callable[[], bool] = lambda: True,
    may_end_steps: Callable[[str], bool] = lambda _kind: True,
) -> StepFinder:
    """Create the finder of this process. Call it in the main thread."""
    global _finder
    _finder = finder = StepFinder(recorder, end_process, chosen, before_end, may_end_steps)
    recorder.steps = finder.leave_steps_to_script  # type: ignore[method-assign]
    if _SIGNAL is not None:
        signal.signal(_SIGNAL, _end_main_thread)
    threading.excepthook = _ignore_script_ended(threading.excepthook)
    return finder


def stop_step_finder() -> None:
    """End no more steps in this process."""
    if _finder is not None:
        _finder.stop()


def end_owner_step(kind: str, owner: object, wrapper: object = None) -> None:
    """Take the end of a step of `owner`, called by `wrapper`; does nothing where no finder was started."""
    if _finder is not None:
        _finder.end_owner_step(kind, owner, wrapper)


def _end_main_thread(_number: int, _frame: object) -> None:
    if _finder is not None and _finder.ended:
        raise ScriptEnded


def _ignore_script_ended(
    before: Callable[[threading.ExceptHookArgs], object],
) -> Callable[[threading.ExceptHookArgs], None]:
    def hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_type is not ScriptEnded:
            before(arguments)

    return hook
