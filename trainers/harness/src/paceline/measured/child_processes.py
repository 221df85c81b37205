"""Measures the processes that the measured one forks and spawns: ranks fully, helpers by their totals.

Such a process is a rank where it joins a process group, or where it alone takes steps: the measured process
that started it took none by then. Every other one is a helper, and never ended by us.
"""

from __future__ import annotations

import atexit
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import paceline

from .. import auto
from ..auto import loaders
from ..counting.recorder import CountingRecorder
from ..step_kinds import ENVIRONMENT
from . import child_hooks, rank_identity, rank_programs
from .helper_records import HelperRecord, SharedTotal, read_records
from .mark_recorder import reported_number
from .phase_nodes import PhaseNode, ThreadState
from .phase_rows import TimedPhaseNode
from .plan import ProcessPlan
from .profiling import ProfilingRecorder
from .rank_presence import presence
from .result_writer import Recorder, ResultWriter, report_progress
from .timing import TimingRecorder
from .whole_loop import WholeLoopRecorder

_own_record: HelperRecord | None = None


class SharedPhaseNode(TimedPhaseNode):
    """A node whose total is up to date in shared memory, whenever its phase was left."""

    __slots__ = ("shared",)
    has_own_borders = True

    def __init__(self, name: str, parent: PhaseNode | None, state: ThreadState) -> None:
        super().__init__(name, parent, state)
        self.shared: SharedTotal | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self.shared is not None:
            self.shared.numbers[self.shared.slot] = self.total


class ChildRecorder(TimingRecorder):
    """The recorder of a timed repetition, in a process that may turn out to be a rank or a helper."""

    def __init__(self, plan: ProcessPlan, report: Callable[[int], None], record: HelperRecord) -> None:
        self._record = record
        folder, own = Path(plan.result).parent, os.getpid()
        super().__init__(
            plan.warmup_steps,
            plan.steps,
            report,
            node_class=SharedPhaseNode,
            read_children=lambda: read_records(folder, own),
            harness=plan.parent,
        )

    def prepare_node(self, node: TimedPhaseNode) -> None:
        """Give a node its place in the shared memory too."""
        super().prepare_node(node)
        if isinstance(node, SharedPhaseNode) and node.shared is None and node.parent is not None:
            node.shared = SharedTotal(self._record, node)

    def count(self, name: str, n: float) -> None:
        """Add to a counter, here and in the shared memory."""
        super().count(name, n)
        self._record.add_count(name, reported_number(n))


def hook_children(plan_file: str) -> None:
    """Measure what this process forks and spawns from now on, once its own recorder is active."""
    plan = ProcessPlan(**json.loads(Path(plan_file).read_text()))
    _hook_starting(plan, plan_file)
    if not plan.keep_running:
        # The harness removes its folder, and what keeps running may outlive that.
        child_hooks.keep_sockets_in(Path(plan.result).parent)


def _hook_starting(plan: ProcessPlan, plan_file: str) -> None:
    child_hooks.hook_spawning(plan_file)
    child_hooks.hook_forking(lambda: _measure_forked(plan))
    rank_programs.hook_programs(plan_file)


def measure_spawned(plan_file: str) -> None:
    """Measure this process, which multiprocessing or the script has started anew."""
    if not Path(plan_file).exists():
        # The harness is gone: what goes on without it is measured no more.
        return
    plan = ProcessPlan(**json.loads(Path(plan_file).read_text()))
    result = _start_recording(plan)
    result.step_finder = auto.install_automatic_phases(lambda: _start_finder(result, plan))
    _hook_starting(plan, plan_file)


def _measure_forked(plan: ProcessPlan) -> None:
    auto.forget_calls()
    if not Path(plan.result).parent.exists():
        return
    result = _start_recording(plan)
    result.step_finder = _start_finder(result, plan)


def _start_recording(plan: ProcessPlan) -> ResultWriter:
    global _own_record
    presence.keep_in(Path(plan.result).parent)
    record = HelperRecord(Path(plan.result).parent)
    recorder = _create_recorder(plan, record)
    result = ResultWriter(recorder, plan, is_child=True)

    def leave_result() -> None:
        record.close_record()
        result.write_if_called()

    paceline.activate_recorder(recorder)
    _own_record = record
    loaders.set_worker_record(record)
    atexit.register(leave_result)
    child_hooks.call_before_exit(leave_result)
    child_hooks.call_when_named(record.keep_name)
    return result


def _create_recorder(plan: ProcessPlan, record: HelperRecord) -> Recorder:
    report = report_progress(plan.progress, place=1)
    if plan.kind == "whole":
        return WholeLoopRecorder(report)
    if plan.kind == "counting":
        return CountingRecorder(plan.warmup_steps, plan.steps, report)
    if plan.kind == "profiling":
        return ProfilingRecorder(plan, report, profiles=True)
    return ChildRecorder(plan, report, record)


def _start_finder(result: ResultWriter, plan: ProcessPlan) -> auto.StepFinder:
    def may_end_steps(kind: str) -> bool:
        if rank_identity.rank_in_group() is not None:
            if _own_record is not None:
                _own_record.mark_rank()
            return True
        # Environments that others step live in helpers.
        return kind != ENVIRONMENT or plan.step == ENVIRONMENT

    def end_rank() -> bool:
        if rank_identity.rank_in_group() is None and _steps_of_parent(plan):
            return False
        if plan.keep_running:
            result.write(ended=False)
            return False
        result.end_together()
        # An exception would count as a failure, for which its parent ends the other ranks.
        result.end_process()
        return True

    return auto.start_step_finder(result.recorder, result.end_process, plan.step, end_rank, may_end_steps)


def _steps_of_parent(plan: ProcessPlan) -> int:
    return int(struct.unpack("q", Path(plan.progress).read_bytes()[:8])[0])
