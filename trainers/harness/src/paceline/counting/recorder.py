"""Records a counting repetition: what repeats exactly, from a process that isn't timed.

After the warm-up come two windows of the same length. The first counts function calls, compilations and what
the code counts itself, the second tensor operations: a dispatch mode runs Python code for every operation,
which would count as calls. Resident memory is read at every border of the main thread's phases, from the
start of the process on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any, TypeVar

from ..measured import resident_memory
from ..measured.mark_recorder import MarkRecorder
from ..measured.phase_nodes import PhaseNode, ThreadState
from ..measured.step_loop import StepLoop
from ..phase_names import SETUP, UNATTRIBUTED
from . import compilation, graph_break_rows, profile_rows, windows
from .read_files import ReadFiles

_Item = TypeVar("_Item")


class CountedPhaseNode(PhaseNode):
    """A node at whose borders the growth of resident memory and the compilations are billed."""

    __slots__ = ("growth", "meter")
    has_own_borders = True

    def __init__(self, name: str, parent: PhaseNode | None, state: ThreadState) -> None:
        super().__init__(name, parent, state)
        self.growth = 0
        self.meter: PhaseMeter | None = None

    def __enter__(self) -> None:
        if self.meter is not None:
            self.meter.bill()
        super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.meter is not None:
            self.meter.bill()
        super().__exit__(kind, error, trace)


class PhaseMeter:
    """Bills each change of resident memory, and each compilation, to the phase in which it happened."""

    def __init__(self, counting: CountingRecorder) -> None:
        self._counting = counting
        self._resident = resident_memory.ResidentMemory()
        self._before = 0
        self.setup: int | None = None
        self.compilations = compilation.CompilationCounter()

    def bill(self) -> None:
        """Bill what grew since the last border to the phase that is being left or interrupted."""
        now = self._resident.read()
        if self.setup is not None:
            node = self._counting.main.node
            node.growth += now - self._before  # type: ignore[attr-defined]  # every node is a CountedPhaseNode
            self.compilations.bill(node.path)
        self._before = now

    def begin(self) -> None:
        """Close the set-up: all that is resident now was there before the first step."""
        self.setup = self._before = self._resident.read()

    def growths(self) -> dict[str, int]:
        """Return bytes by phase path, the set-up and what no phase covers included."""
        if not self._resident.available or self.setup is None:
            return {}
        bytes_by_phase: defaultdict[str, int] = defaultdict(int)
        bytes_by_phase[SETUP] = self.setup
        for node in [self._counting.main.root, *self._counting.main.nodes]:
            bytes_by_phase[node.path or UNATTRIBUTED] += node.growth  # type: ignore[attr-defined]
        return dict(bytes_by_phase)


class CountingRecorder(MarkRecorder[CountedPhaseNode]):
    """The recorder of a counting repetition."""

    def __init__(
        self,
        warmup_steps: int,
        steps: int,
        report: Callable[[int], None],
        files: ReadFiles | None = None,
    ) -> None:
        super().__init__(CountedPhaseNode)
        self._files = files
        self.meter = PhaseMeter(self)
        self.calls = windows.CallWindow(self, self.meter.compilations)
        self.operations = windows.OperationWindow(self, self.calls.switch)
        self.loop = _CountedStepLoop(self, warmup_steps, steps, report)
        # A hook that stands from the start reaches every thread that the code will start.
        threading.setprofile(self._install_thread_profile)
        os.register_at_fork(after_in_child=self._stop_in_forked_process)

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]:
        """Iterate until both windows are complete."""
        return self.loop.iterate(iterable)

    def prepare_node(self, node: CountedPhaseNode) -> None:
        """Let a node of the main thread bill its memory; growth can't be told apart between threads."""
        if node.state is self.main:
            node.meter = self.meter

    def _install_thread_profile(self, _frame: FrameType, _event: str, _arg: Any) -> None:
        sys.setprofile(None)
        sys.setprofile(self.calls.profile().callback)

    def _stop_in_forked_process(self) -> None:
        # A process of the program's own isn't counted, and should not pay for it.
        self.calls.switch.on = False
        sys.setprofile(None)
        threading.setprofile(None)
        if self.operations.switch is not None:
            self.operations.switch.on = False

    def result(self, folder: Path) -> dict[str, Any]:
        """Return the counters as plain data, per step; call it once both windows are complete."""
        steps = self.loop.steps
        profiles = list(self.calls.profiles)
        return {
            "steps": steps,
            "functions": profile_rows.function_rows(profiles, folder, steps),
            "stacks": profile_rows.stack_rows(profiles, folder, steps),
            "calls": profile_rows.calls_by_phase(profiles, steps),
            "displaced": self.calls.displaced,
            "graph_breaks": graph_break_rows.graph_breaks_by_phase(profiles, steps),
            "graph_break_places": graph_break_rows.graph_break_rows(
                profiles, compilation.graph_break_reasons(), folder, steps
            ),
            "recompilations": self.meter.compilations.per_step(steps),
            "counts": {name: number / steps for name, number in self.calls.counts.items()},
            "operations": self.operations.per_step(steps),
            "model_flops": self.operations.model_flops(steps),
            "model_share": self.operations.model_share(),
            "memory": self.meter.growths(),
            "inputs": self._files.result(folder) if self._files else None,
            "times": dict(self.loop.times),
        }


class _CountedStepLoop(StepLoop):
    def __init__(
        self, counting: CountingRecorder, warmup_steps: int, steps: int, report: Callable[[int], None]
    ) -> None:
        super().__init__(counting)
        self._counting = counting
        self._report = report
        self.warmup_steps = warmup_steps
        self.steps = steps
        self.done = 0
        # Of the first step and of the windows, by the clock that the harness has too.
        self.times: dict[str, float] = {}

    @property
    def taken(self) -> int:
        """Steps so far, the warm-up's included."""
        return self.done

    def begin(self) -> None:
        if self.done == 0:
            self.times["first_step"] = perf_counter()
            self._counting.meter.begin()
            if self.warmup_steps == 0:
                self._open_calls()

    def end_step(self) -> bool:
        self._counting.meter.bill()
        self.done += 1
        if self.done % 50 == 0:
            self._report(self.done)
        window = self.done - self.warmup_steps
        if window == 0:
            self._open_calls()
        elif window == self.steps:
            self._counting.calls.close()
            # Nothing to count without torch: the second window would only take time.
            self.complete = not self._counting.operations.open()
        elif window == 2 * self.steps:
            self._counting.operations.close()
            self.complete = True
        elif 0 < window < self.steps:
            self._counting.calls.restore_profile()
        if self.complete:
            self.times["closed"] = perf_counter()
        return self.complete

    def _open_calls(self) -> None:
        self.times["opened"] = perf_counter()
        self._counting.calls.open()
