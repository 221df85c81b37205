"""The recorder of a measured process by its plan, and the file in which it leaves what it measured."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import auto
from ..auto.gradient_reduction import add_gradient_overlap
from ..counting.read_files import ReadFiles
from ..counting.recorder import CountingRecorder
from . import fingerprint, rank_identity, rank_results
from .child_hooks import end_at_once
from .helper_records import read_records
from .plan import PROGRESS_PLACES, ProcessPlan
from .profiling import ProfilingRecorder
from .rank_identity import RankIdentity
from .shared_memory import map_file
from .timing import TimingRecorder
from .turns import Turns
from .whole_loop import WholeLoopRecorder
from .work_without_steps import describe_work_without_steps

# Seconds that a rank waits for the others before it ends.
OTHER_RANKS_SECONDS = 10.0

Recorder = TimingRecorder | CountingRecorder | ProfilingRecorder | WholeLoopRecorder


class ResultWriter:
    """Writes what was measured, once: at the script's end, or before a script is killed that doesn't end."""

    def __init__(self, recorder: Recorder, plan: ProcessPlan, *, is_child: bool = False) -> None:
        self.recorder = recorder
        self._plan = plan
        self._is_child = is_child
        self.step_finder: auto.StepFinder | None = None
        # A signal's handler may end the process while it writes.
        self._lock = threading.RLock()
        self._written = False
        if plan.keep_running:
            recorder.loop.run_on = lambda: self.write(ended=False)

    def write(self, *, ended: bool) -> None:
        """Write the result file; `ended` says that the script was broken off."""
        with self._lock:
            if not self._written:
                self._written = True
                outcome = {**self._build_outcome(), "ended": ended}
                path = Path(self._plan.result)
                if self._is_child or self._find_identity() is not None:
                    path = rank_results.rank_result_path(path, self._find_identity())
                # A script that goes on without the harness must not fail for want of its folder.
                with suppress(*([OSError] if self._plan.keep_running else [])):
                    _write_outcome(outcome, path)

    def write_if_called(self) -> None:
        """Write the result file where the process took steps."""
        if self.recorder.loop.called:
            self.write(ended=False)

    def end_together(self) -> None:
        """Write the result, and wait until the other ranks have written theirs."""
        self.write(ended=True)
        rank_results.await_other_ranks(Path(self._plan.result), self._find_identity(), OTHER_RANKS_SECONDS)

    def end_process(self) -> None:
        """End the process at once, with its result written."""
        self.write(ended=True)
        sys.stdout.flush()
        sys.stderr.flush()
        end_at_once()

    def _find_identity(self) -> RankIdentity | None:
        """Return this process's rank. What a rank starts has its variables and is none, without a group."""
        if self._plan.has_ranks and not self._is_child:
            return rank_identity.find_rank()
        return rank_identity.rank_in_group()

    def _build_outcome(self) -> dict[str, Any]:
        recorder, loop, identity = self.recorder, self.recorder.loop, self._find_identity()
        outcome: dict[str, Any] = {"called": loop.called, "complete": loop.complete, "taken": loop.taken}
        outcome["rank"] = identity.rank if identity else None
        outcome["world_size"] = identity.world_size if identity else 1
        outcome["is_child"] = self._is_child
        if self._plan.kind == "counting" and not loop.complete:
            # Without torch there is nothing to count in a second one.
            outcome["windows"] = 2 if "torch" in sys.modules else 1
        if self.step_finder is not None:
            outcome |= {"step": self.step_finder.describe_step(), "seen": self.step_finder.seen}
            if not loop.called:
                outcome["work"] = describe_work_without_steps(recorder)
            add_gradient_overlap()
        if loop.complete:
            outcome["result"] = _recorder_result(recorder, self._plan)
            # Of those that count nobody asks, and it takes the time of a thousand short steps.
            is_timed = self._plan.kind == "timing"
            outcome["environment"] = fingerprint.environment_fingerprint() if is_timed else {}
            if recorder.settings:
                outcome["environment"]["settings"] = dict(sorted(recorder.settings.items()))
        return outcome


def create_recorder(plan: ProcessPlan) -> Recorder:
    """Return the recorder of the measured process itself, or of a rank that a launcher starts."""
    report = report_progress(plan.progress)
    identity = rank_identity.find_rank() if plan.has_ranks else None
    if identity is not None and identity.rank > 0:
        report = _report_nothing
    if plan.kind == "whole":
        return WholeLoopRecorder(report)
    if plan.kind == "counting":
        files = ReadFiles() if plan.notes_files else None
        return CountingRecorder(plan.warmup_steps, plan.steps, report, files)
    if plan.kind == "profiling":
        return ProfilingRecorder(plan, report, profiles=identity is None or identity.rank == 0)
    turns = Turns(Path(plan.turns), one_core=plan.one_core) if plan.turns else None
    folder, own = Path(plan.result).parent, os.getpid()
    return TimingRecorder(
        plan.warmup_steps,
        plan.steps,
        report,
        turns,
        read_children=lambda: read_records(folder, own),
        harness=plan.parent,
    )


def report_progress(path: str, place: int = 0) -> Callable[[int], None]:
    """Return the function that writes the number of steps done; children have another place in the file.

    It is memory that is shared with the harness: a file's number would be another file's once the script has
    closed all that it doesn't know.
    """
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    numbers = memoryview(map_file(file, 8 * PROGRESS_PLACES)).cast("q")
    os.close(file)

    def report(done: int) -> None:
        numbers[place] = done

    return report


def _report_nothing(_done: int) -> None: ...


def _recorder_result(recorder: Recorder, plan: ProcessPlan) -> dict[str, Any]:
    if isinstance(recorder, CountingRecorder):
        return recorder.result(Path(plan.folder).resolve())
    return recorder.result()


def _write_outcome(outcome: dict[str, Any], path: Path) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(outcome))
    partial.replace(path)
