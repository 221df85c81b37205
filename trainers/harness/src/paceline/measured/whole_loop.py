"""A run of the whole loop, without a window: what a sweep over a parameter compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, TypeVar

from . import cuda_device, garbage_collection, processor
from .mark_recorder import MarkRecorder
from .phase_nodes import PhaseNode, ThreadState
from .step_loop import StepLoop

REPORT_EVERY = 50

_Item = TypeVar("_Item")


class WholeLoopNode(PhaseNode):
    """A node that remembers its time before the loop, and at the last step's end."""

    __slots__ = ("base", "closed")

    def __init__(self, name: str, parent: PhaseNode | None, state: ThreadState) -> None:
        super().__init__(name, parent, state)
        self.base = self.closed = 0.0


class WholeLoopRecorder(MarkRecorder[WholeLoopNode]):
    """The recorder that lets the code's loop run to its own end."""

    def __init__(self, report: Callable[[int], None]) -> None:
        super().__init__(WholeLoopNode)
        self.loop = _WholeLoop(self, report)

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]:
        """Iterate over everything."""
        return self.loop.iterate(iterable)

    def result(self) -> dict[str, Any]:
        """Return `steps`, `seconds`, `waited` and, by path, the seconds of the main thread's `phases`.

        The time is that from the first step to the end of the last one, the device's work and whatever lies
        between two loops included; `waited` is the share of it in which the measured thread was ready and
        waited for a processor. Call it once the loop is complete, that is after at least one step.
        """
        phases = {node.path: node.closed - node.base for node in self.nodes(self.main)}
        return {
            "steps": self.loop.taken,
            "seconds": self.loop.seconds,
            "waited": self.loop.waited / self.loop.seconds if self.loop.seconds else 0.0,
            "phases": {path: seconds for path, seconds in phases.items() if seconds > 0},
        }


class _WholeLoop(StepLoop):
    def __init__(self, recorder: WholeLoopRecorder, report: Callable[[int], None]) -> None:
        super().__init__(recorder)
        self._whole = recorder
        self._report = report
        self._start: float | None = None
        self._waited = 0.0
        self._devices: list[int] = []
        self.taken = 0
        self.seconds = self.waited = 0.0

    @property
    def is_over(self) -> bool:
        """False: only the code ends its loops."""
        return False

    def begin(self) -> None:
        if self._start is None:
            garbage_collection.prepare_garbage_collector()
            self._devices = cuda_device.used_devices()
            cuda_device.synchronize_device(self._devices)
            for node in self._whole.nodes(self._whole.main):
                node.base = node.closed = node.total
            self._waited = processor.processor_wait_seconds()
            self._start = perf_counter()

    def end_step(self) -> bool:
        self.taken += 1
        self.complete = True
        self._note_totals()
        if self.taken % REPORT_EVERY == 0:
            self._report(self.taken)
        return False

    def end(self) -> None:
        cuda_device.synchronize_device(self._devices)
        self._note_totals()
        # Only here: asking the kernel costs as much as a short step. It counts for each thread apart.
        self.waited = (
            0.0 if self.thread_changes else max(0.0, processor.processor_wait_seconds() - self._waited)
        )

    def _note_totals(self) -> None:
        """Keep what belongs to the loop so far; phases after it, of an evaluation, do not."""
        if self._start is not None:
            self.seconds = perf_counter() - self._start
        for node in self._whole.nodes(self._whole.main):
            node.closed = node.total
