"""Finds the steps of an unmodified script, and ends it when all is measured.

A step ends with the step of an environment or of an optimizer: its owner. Whichever of them steps first sets
the pace; a step runs from the end of one of its steps to the end of the next. Other environments (of an
evaluation) and other optimizers (of a second network) end no steps, unless the first owner is gone, turns
out to be a wrapper of what steps, or stopped in the warm-up (see `owner_changes`). An environment also takes
over from an optimizer that has not ended a step yet. A script that uses `paceline.steps` sets its own pace.
What ends a step may also be chosen; batches of a loader do only then.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable
from time import sleep
from typing import Any, Protocol

from ..measured.step_loop import StepLoop
from ..step_kinds import BATCH, ENVIRONMENT, MARK, OPTIMIZER
from .owner_changes import Rival, Succession, name_of_owner, refer_to

# Where they are used, nobody knows whether a step learned: their optimizers are seen by none.
OTHER_LEARNERS = {"jax", "tensorflow"}
# How often the end is raised again in a script that swallows it, and the seconds it may take to tidy up.
END_TRIES = 3
TIDY_UP_SECONDS = 10.0
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
        self._owner_name = ""
        self._succession = Succession()
        self._rival = Rival()
        # By kind: a plain dictionary, which costs less than a Counter in every step.
        self._seen = dict.fromkeys((OPTIMIZER, BATCH, ENVIRONMENT), 0)
        self._kind = ""
        # The kind of the steps that the owner ends; empty where something else ends steps, or nothing does.
        self._settled_kind = ""
        self._owner: Callable[[], object] = lambda: None
        self._script_marks_steps = False
        self._steps = 0
        # How many steps there were before the first of an optimizer's.
        self._learned_after: int | None = None
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
            self._rival.steps = 0
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
        if kind == OPTIMIZER and not self._seen[OPTIMIZER]:
            self._learned_after = self._steps
        self._seen[kind] += 1
        if self._script_marks_steps or (self._chosen and kind != self._chosen):
            return
        is_owner = self._owner() is owner
        if not (is_owner or self._may_take_over(kind, wrapper) or self._has_outrun_owner(kind, owner)):
            return
        is_first = not self._kind
        if is_first and not self._may_end_steps(kind):
            return
        if not is_owner:
            if not is_first and self._owner() is None:
                self._note_successor(kind, owner)
            self._set_owner(kind, owner)
        self._rival.steps = 0
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
        step: dict[str, Any] = {"kind": self._kind, "owner": self._owner_name, "chosen": bool(self._chosen)}
        if self._kind == ENVIRONMENT and not OTHER_LEARNERS & sys.modules.keys():
            step["learned_after"] = self._learned_after
        return step | self._succession.describe()

    def stop(self) -> None:
        """End no more steps."""
        self._script_marks_steps, self.ended, self._settled_kind = True, False, ""

    def _may_take_over(self, kind: str, wrapper: object) -> bool:
        owner = self._owner()
        # A wrapper that nothing showed to be one when it was called first: what it steps is the owner.
        if not self._kind or owner is None or owner is wrapper:
            return True
        return (self._kind, kind, self._steps) == (OPTIMIZER, ENVIRONMENT, 0)

    def _has_outrun_owner(self, kind: str, owner: object) -> bool:
        """Whether this one of its kind steps on where the owner stopped, while what ends is in no window."""
        if not (kind == self._kind and kind != BATCH and self._steps < self._loop.warmup_steps):
            return False
        learned = self._seen[OPTIMIZER]
        if not self._rival.step(owner, self._steps, learned):
            return False
        if kind == ENVIRONMENT and not self._rival.has_learned(learned):
            # Nothing is learned from an evaluation's.
            return False
        self._note_succession(owner)
        return True

    def _note_successor(self, kind: str, owner: object) -> None:
        """Note another kind of owner than the one that is gone; environments come and go with episodes."""
        if kind != self._kind or (kind == OPTIMIZER and name_of_owner(owner) != self._owner_name):
            self._note_succession(owner)

    def _note_succession(self, owner: object) -> None:
        self._succession.note(self._owner_name, name_of_owner(owner), self._steps)

    def _set_owner(self, kind: str, owner: object) -> None:
        self._kind = self._settled_kind = kind
        self._owner_name = name_of_owner(owner)
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
