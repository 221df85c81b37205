"""The measured process: runs the benchmark's script as __main__ and writes a result file.

Started by the harness as `python -P -m paceline.measured.child PLAN`, or once for each rank by a launcher;
its output is the script's own.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # The current folder, where a launcher started this: its json.py must not stand before Python's.
    sys.path.pop(0)

import atexit
import json
import os
import random
import runpy
import struct
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import paceline

from .. import auto
from ..auto.collectives import measure_overlap
from ..counting.read_files import ReadFiles
from ..counting.recorder import CountingRecorder
from . import ending, fingerprint, rank_identity, rank_results, spawned_processes
from .collective_log import log as collective_log
from .plan import ProcessPlan
from .timing import TimingRecorder
from .turns import Turns
from .whole_loop import WholeLoopRecorder

# Seconds that a rank waits for the others before it ends.
PATIENCE = 10.0

Recorder = TimingRecorder | CountingRecorder | WholeLoopRecorder


def main() -> None:
    """Run the script under a recorder; the result is written even where the script fails."""
    plan = ProcessPlan(**json.loads(Path(sys.argv[1]).read_text()))
    _end_with_parent(plan)
    _check_package(plan)
    recorder = _create_recorder(plan)
    result = _ResultWriter(recorder, plan, is_rank=plan.has_ranks)
    pacer = _start_pacer(recorder, result, plan)
    if plan.auto:
        spawned_processes.hook_spawning(sys.argv[1])
    paceline.activate_recorder(recorder)
    measured = os.getpid()
    try:
        _run_script(plan)
    except BaseException as error:
        # A script that was broken off may also fail while it tidies up: all was measured before that.
        if pacer is None or not pacer.ended or os.getpid() != measured:
            raise
        if not isinstance(error, auto.ScriptEnded | SystemExit):
            _print_error(type(error), error, error.__traceback__)
    finally:
        # A process that the script forked may come back to this line too.
        if os.getpid() == measured:
            result.write(ended=pacer is not None and pacer.ended)


def measure_spawned(path: str) -> None:
    """Measure this process, which the measured one has spawned, if it takes steps: a rank does."""
    plan = replace(ProcessPlan(**json.loads(Path(path).read_text())), turns="")
    recorder = _create_recorder(plan)
    result = _ResultWriter(recorder, plan, is_rank=True)
    _start_pacer(recorder, result, plan, is_spawned=True)
    paceline.activate_recorder(recorder)
    spawned_processes.hook_spawning(path)
    atexit.register(result.write_if_called)


def _start_pacer(
    recorder: Recorder, result: _ResultWriter, plan: ProcessPlan, *, is_spawned: bool = False
) -> auto.StepPacer | None:
    if not plan.auto:
        return None

    def end_together() -> None:
        result.write(ended=True)
        rank_results.await_other_ranks(Path(plan.result), PATIENCE)
        if is_spawned:
            # An exception would count as a failure, for which its parent ends the other ranks.
            result.end_process()

    before_end = end_together if plan.has_ranks or is_spawned else _do_nothing
    result.pacer = auto.install_automatic_phases(recorder, result.end_process, plan.step, before_end)
    return result.pacer


def _do_nothing() -> None: ...


class _ResultWriter:
    """Writes what was measured, once: at the script's end, or before a script is killed that doesn't end."""

    def __init__(self, recorder: Recorder, plan: ProcessPlan, *, is_rank: bool) -> None:
        self._recorder = recorder
        self._plan = plan
        self._is_rank = is_rank
        self.pacer: auto.StepPacer | None = None
        self._lock = threading.Lock()
        self._written = False

    def write(self, *, ended: bool) -> None:
        """Write the result file; `ended` says that the script was broken off."""
        with self._lock:
            if not self._written:
                outcome = {**_build_outcome(self._recorder, self._plan, self.pacer), "ended": ended}
                path = Path(self._plan.result)
                _write_outcome(outcome, rank_results.rank_result_path(path) if self._is_rank else path)
                self._written = True

    def write_if_called(self) -> None:
        """Write the result file where the process took steps."""
        if self._recorder.loop.called:
            self.write(ended=False)

    def end_process(self) -> None:
        """End the process at once, with its result written."""
        self.write(ended=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _build_outcome(recorder: Recorder, plan: ProcessPlan, pacer: auto.StepPacer | None) -> dict[str, Any]:
    loop, identity = recorder.loop, rank_identity.find_rank()
    outcome: dict[str, Any] = {"called": loop.called, "complete": loop.complete, "taken": loop.taken}
    outcome["rank"] = identity.rank if identity else None
    if pacer is not None:
        outcome |= {"step": pacer.describe_step(), "seen": dict(pacer.seen)}
        collective_log.overlap = measure_overlap() if loop.complete else None
    if loop.complete:
        outcome["result"] = _recorder_result(recorder, plan)
        # Of those that count nobody asks, and it takes the time of a thousand short steps.
        outcome["environment"] = fingerprint.environment_fingerprint() if plan.kind == "timing" else {}
        if recorder.settings:
            outcome["environment"]["settings"] = dict(sorted(recorder.settings.items()))
    return outcome


def _run_script(plan: ProcessPlan) -> None:
    sys.excepthook = _print_error
    random.seed(plan.seed)
    if plan.module:
        _execute_module(plan)
        return
    script = Path(plan.folder, plan.script)
    # As if Python had been started with the script, from the folder that this process was started in.
    sys.argv = [plan.script, *plan.arguments]
    sys.path.insert(0, str(script.resolve().parent))
    _execute_as_main(script.absolute())


def _execute_module(plan: ProcessPlan) -> None:
    """Run a module as __main__, as if Python had been started with `-m`."""
    sys.argv = ["-m", *plan.arguments]
    sys.path.insert(0, str(Path.cwd()))
    # What runpy itself runs by, but in a module of its own and not in this one.
    _, spec, code = runpy._get_module_details(plan.script, ImportError)  # type: ignore[attr-defined]
    main = ModuleType("__main__")
    main.__file__, main.__loader__ = spec.origin, spec.loader
    main.__package__, main.__spec__ = spec.parent, spec
    sys.argv[0] = spec.origin
    sys.modules["__main__"] = main
    exec(code, vars(main))  # noqa: S102  # it is what this process is for


def _execute_as_main(script: Path) -> None:
    """Run the script as __main__; unlike runpy, which would also change the first argument."""
    main = ModuleType("__main__")
    main.__file__ = str(script)
    main.__loader__ = SourceFileLoader("__main__", str(script))
    sys.modules["__main__"] = main
    code = compile(script.read_bytes(), script, "exec", dont_inherit=True)
    exec(code, vars(main))  # noqa: S102  # it is what this process is for


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback that begins in the script, as if it had been started without us."""
    ours = (str(Path(__file__)), "<frozen runpy>")
    while trace is not None and trace.tb_next and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def _create_recorder(plan: ProcessPlan) -> Recorder:
    report = _progress_reporter(plan.progress)
    identity = rank_identity.find_rank() if plan.has_ranks else None
    if identity is not None and identity.rank > 0:
        report = _report_nothing
    if plan.kind == "whole":
        return WholeLoopRecorder(report)
    if plan.kind == "counting":
        files = ReadFiles() if plan.notes_files else None
        return CountingRecorder(plan.warmup_steps, plan.steps, report, files)
    # The other ranks wait for the one that takes turns, at their next collective.
    takes_turns = plan.turns and (identity is None or identity.rank == 0)
    turns = Turns(Path(plan.turns), one_core=plan.one_core) if takes_turns else None
    return TimingRecorder(plan.warmup_steps, plan.steps, report, turns)


def _recorder_result(recorder: Recorder, plan: ProcessPlan) -> dict[str, Any]:
    if isinstance(recorder, CountingRecorder):
        return recorder.result(Path(plan.folder).resolve())
    return recorder.result()


def _progress_reporter(path: str) -> Callable[[int], None]:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def report(done: int) -> None:
        os.pwrite(file, struct.pack("q", done), 0)

    return report


def _report_nothing(_done: int) -> None: ...


def _write_outcome(outcome: dict[str, Any], path: Path) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(outcome))
    partial.replace(path)


def _check_package(plan: ProcessPlan) -> None:
    """Refuse another harness than the one that started us, such as one in the measured checkout."""
    folder = str(Path(paceline.__file__).resolve().parent)
    if folder != plan.package:
        sys.exit(f"paceline was imported from {folder}, but the harness that measures is {plan.package}")


def _end_with_parent(plan: ProcessPlan) -> None:
    """Ask the kernel to kill this process when the harness dies, also when it is killed itself."""
    ending.die_with_parent()
    # A rank's parent is the launcher.
    if not plan.has_ranks and os.getppid() != plan.parent:
        sys.exit("the harness is gone")


if __name__ == "__main__":
    measuring = os.getpid()
    main()
    if os.getpid() == measuring:
        ending.end_process()
