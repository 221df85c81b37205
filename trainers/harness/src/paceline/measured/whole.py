"""A run of the whole loop, without a window: what a sweep over a parameter compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, TypeVar

from . import collector, device, processor
from .marks import Marks, Node, StepLoop, ThreadState

REPORT_EVERY = 50

_Item = TypeVar("_Item")


class WholeNode(Node):
    """A node that remembers its time before the loop, and at the last step's end."""

    __slots__ = ("base", "closed")

    def __init__(self, name: str, parent: Node | None, state: ThreadState) -> None:
        super().__init__(name, parent, state)
        self.base = self.closed = 0.0


class Whole(Marks[WholeNode]):
    """The recorder that lets the code's loop run to its own end."""

    def __init__(self, report: Callable[[int], None]) -> None:
        super().__init__(WholeNode)
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
    def __init__(self, marks: Whole, report: Callable[[int], None]) -> None:
        super().__init__(marks)
        self._whole = marks
        self._report = report
        self._start: float | None = None
        self._waited = 0.0
        self.taken = 0
        self.seconds = self.waited = 0.0

    @property
    def over(self) -> bool:
        """Never: only the code ends its loops."""
        return False

    def begin(self) -> None:
        if self._start is None:
            collector.prepare()
            device.synchronize()
            for node in self._whole.nodes(self._whole.main):
                node.base = node.closed = node.total
            self._waited = processor.waited()
            self._start = perf_counter()

    def end_step(self) -> bool:
        self.taken += 1
        self.complete = True
        self._close()
        if self.taken % REPORT_EVERY == 0:
            self._report(self.taken)
        return False

    def end(self) -> None:
        device.synchronize()
        self._close()
        # Asking the kernel costs as much as a short step.
        self.waited = max(0.0, processor.waited() - self._waited)

    def _close(self) -> None:
        """Keep what belongs to the loop so far; phases after it, of an evaluation, do not."""
        if self._start is not None:
            self.seconds = perf_counter() - self._start
        for node in self._whole.nodes(self._whole.main):
            node.closed = node.total
