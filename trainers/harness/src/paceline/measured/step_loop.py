"""The measured loop: where its steps begin and end, and its end when the window is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Thread, current_thread, get_ident, main_thread
from typing import TypeVar

from .mark_recorder import MarkRecorder, NodeType

_Item = TypeVar("_Item")


class StepLoop:
    """Runs the measured loop: tells where steps begin and end, and ends it when the window is complete.

    The window comes after `warmup_steps`. Where `run_on` is set the loop isn't ended: that is called instead,
    once, and all items are yielded.
    """

    warmup_steps = 0

    def __init__(self, recorder: MarkRecorder[NodeType]) -> None:
        self._recorder = recorder
        self._inside = False
        self._thread: Thread | None = None
        self.thread_changes = 0
        # The number of the thread that takes the steps, where no other thread can get it; else 0.
        self.lasting_ident = 0
        self.called = False
        self.complete = False
        self.run_on: Callable[[], None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the code's loops are to end at once, since nothing more is measured."""
        return self.complete

    def follow_thread(self) -> None:
        """Note which thread takes the steps: it may be another one than before."""
        thread = current_thread()
        if thread is not self._thread:
            self.thread_changes += self._thread is not None
            self._thread = thread
            self.lasting_ident = get_ident() if thread is main_thread() else 0
            self._recorder.take_steps_in_this_thread()

    def begin(self) -> None:
        """Note that the code enters its loop; the first step starts now."""
        raise NotImplementedError

    def end(self) -> None:
        """Note that the code leaves its loop; it may enter another."""

    def end_step(self) -> bool:
        """Note that a step ended and the next one starts; return whether the window is complete."""
        raise NotImplementedError

    def iterate(self, iterable: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items; fetching an item belongs to its step."""
        if self._inside:
            raise RuntimeError("paceline.steps was called inside another paceline.steps")
        if self._recorder.forked or (self.is_over and self.run_on):
            yield from iterable
            return
        if self.is_over:
            return
        iterator = iter(iterable)
        self.follow_thread()
        state = self._recorder.current_state()
        around, state.node = state.node, state.root
        self._inside = self.called = True
        broke_off = False
        try:
            self.begin()
            for item in iterator:
                yield item
                if not self._recorder.forked and self.end_step():
                    break
            else:
                return
        except GeneratorExit:
            # The code left by `break`: the step that it broke off was taken too.
            broke_off = not self._recorder.forked and self.end_step()
            raise
        finally:
            self.end()
            self._inside = False
            state.node = around
            if broke_off and self.run_on:
                self.run_on()
        if self.run_on:
            self.run_on()
            yield from iterator
