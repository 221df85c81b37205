"""Records a profiled repetition: a few steps under torch.profiler, whose trace the harness reads.

Never a timed one. Phases and steps are ranges of the trace.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter, thread_time
from types import TracebackType
from typing import Any, TypeVar

from ..system.processor_ticks import ProcessorTicks, read_processor_ticks
from ..timeline.trace_events import PHASE_PREFIX, STEP_PREFIX
from . import cuda_device, processor
from .mark_recorder import MarkRecorder
from .other_work import stolen_share
from .phase_nodes import PhaseNode, set_borders
from .plan import ProcessPlan
from .step_loop import StepLoop

# A window that takes longer is closed with the steps that it has.
SECONDS_LIMIT = 20.0

_Item = TypeVar("_Item")


class ProfilingRecorder(MarkRecorder[PhaseNode]):
    """The recorder of a profiled repetition; without `profiles`, as in other ranks, it only counts steps."""

    def __init__(self, plan: ProcessPlan, report: Callable[[int], None], *, profiles: bool) -> None:
        super().__init__(PhaseNode)
        self.ranges = TraceRanges()
        self.loop = _ProfiledStepLoop(self, plan, report, profiles=profiles)

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]:
        """Iterate until the window is complete."""
        return self.loop.iterate(iterable)

    def prepare_node(self, node: PhaseNode) -> None:
        """Let the node's phase be a range of the trace."""
        enter, leave = node.__enter__, node.__exit__

        def enter_ranged() -> None:
            self.ranges.open(node)
            enter()

        def leave_ranged(
            kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            leave(kind, error, trace)
            self.ranges.close(node)

        set_borders(node, enter_ranged, leave_ranged)

    def result(self) -> dict[str, Any]:
        """Return what the harness needs beside the trace."""
        return self.loop.result


class TraceRanges:
    """The open ranges of the trace, while the profiler runs."""

    def __init__(self) -> None:
        self.on = False
        self._open: dict[int, Any] = {}

    def open(self, node: PhaseNode) -> None:
        """Open the range of a phase."""
        if self.on:
            self._open[id(node)] = enter_range(PHASE_PREFIX + node.path)

    def close(self, node: PhaseNode) -> None:
        """Close the range of a phase, if it has one."""
        opened = self._open.pop(id(node), None)
        if opened is not None:
            opened.__exit__(None, None, None)

    def close_all(self) -> None:
        """Close those that are still open when the profiler is about to end, the innermost first."""
        self.on = False
        for opened in reversed(list(self._open.values())):
            opened.__exit__(None, None, None)
        self._open.clear()


def enter_range(name: str) -> Any:
    """Begin a range of the running profiler's trace and return it."""
    opened = sys.modules["torch"].autograd.profiler.record_function(name)
    opened.__enter__()
    return opened


class _ProfiledStepLoop(StepLoop):
    def __init__(
        self,
        recorder: ProfilingRecorder,
        plan: ProcessPlan,
        report: Callable[[int], None],
        *,
        profiles: bool,
    ) -> None:
        super().__init__(recorder)
        self._profiling = recorder
        self._report = report
        # Ranks that a script starts by itself each leave one.
        self._trace = str(Path(plan.result).with_name(f"trace-{os.getpid()}.json"))
        self._profiles = profiles
        self.warmup_steps = plan.warmup_steps
        self.steps = plan.steps
        self.done = 0
        self.result: dict[str, Any] = {"trace": None, "error": None, "path": "cpu", "busy_share": None}
        self._profiler: Any = None
        self._step: Any = None
        self._abandoned: Any = None
        self._opened = self._processor = 0.0
        self._ticks: dict[str, ProcessorTicks] = {}

    @property
    def taken(self) -> int:
        """Steps so far, the warm-up's included."""
        return self.done

    def begin(self) -> None:
        if self.done == 0 and self.warmup_steps == 0:
            self._open_window()
        self._begin_step()

    def end(self) -> None:
        self._leave_step()

    def end_step(self) -> bool:
        self.done += 1
        self._report(self.done)
        in_window = self.done - self.warmup_steps
        if self._profiler is not None and self.thread_changes:
            self._abandon_profile()
            return True
        late = self._profiler is not None and perf_counter() - self._opened > SECONDS_LIMIT
        if in_window >= self.steps or late:
            self._close_window()
            self.complete = True
            return True
        self._leave_step()
        if in_window == 0:
            self._open_window()
        self._begin_step()
        return False

    def _begin_step(self) -> None:
        if self._profiler is not None and self._step is None:
            self._step = enter_range(f"{STEP_PREFIX}{self.done + 1}")

    def _leave_step(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _open_window(self) -> None:
        if not self._profiles:
            return
        if "torch" not in sys.modules:
            self.result["error"] = "the code doesn't use PyTorch"
            return
        cuda_device.synchronize_device()
        try:
            self._profiler = _start_profiler()
        except RuntimeError as error:
            self.result["error"] = f"PyTorch's profiler didn't start: {error}".splitlines()[0][:300]
            return
        self._profiling.ranges.on = True
        self._opened, self._processor = perf_counter(), _awake_seconds()
        self._ticks = read_processor_ticks()
        self.thread_changes = 0
        self._begin_step()
        for node in reversed(self._profiling.main.open_nodes()):
            self._profiling.ranges.open(node)

    def _abandon_profile(self) -> None:
        """Leave the profiler as it is: ranges that end in another thread than they began in crash it."""
        self.result["error"] = "several threads took the steps, which PyTorch's profiler can't follow"
        self._profiling.ranges.on = False
        # Kept, since what is dropped ends.
        self._abandoned = self._profiler, self._step
        self._profiler = self._step = None
        self.complete = True

    def _close_window(self) -> None:
        if self._profiler is None:
            return
        # What the device still has to do belongs to the last step.
        cuda_device.synchronize_device()
        took = perf_counter() - self._opened
        stolen = stolen_share(self._ticks, read_processor_ticks())
        self.result["busy_share"] = busy_share(took, _awake_seconds() - self._processor, stolen)
        self._profiling.ranges.close_all()
        self._leave_step()
        profiler, self._profiler = self._profiler, None
        try:
            profiler.stop()
            profiler.export_chrome_trace(self._trace)
        except (RuntimeError, OSError) as error:
            self.result["error"] = f"PyTorch's profiler left no trace: {error}".splitlines()[0][:300]
            return
        self.result |= {
            "trace": self._trace,
            "path": "cuda" if cuda_device.is_device_used() else "cpu",
        }


def busy_share(took: float, awake: float, stolen: float | None) -> float | None:
    """Return the part of `took` seconds in which a thread ran or was ready to: `awake` seconds by the kernel.

    What a virtual machine's host took, `stolen` as a share of all processors' time, is billed to no thread,
    and was no sleep.
    """
    return min(1.0, awake / took + (stolen or 0.0)) if took > 0 else None


def _awake_seconds() -> float:
    """Return how long this thread has run, or waited for a processor: what is left it slept or waited."""
    return thread_time() + processor.processor_wait_seconds()


def _start_profiler() -> Any:
    """Start torch.profiler with all that it can see here; raises RuntimeError where it can't start."""
    import torch.profiler

    if torch.autograd._profiler_enabled():
        # There is one in a process: ours would end that of the script.
        raise RuntimeError("the script profiles itself")
    wanted = {torch.profiler.ProfilerActivity.CPU}
    if cuda_device.is_device_used():
        wanted.add(torch.profiler.ProfilerActivity.CUDA)
    activities = wanted & set(torch.profiler.supported_activities())
    profiler = torch.profiler.profile(activities=activities)
    profiler.start()
    return profiler
