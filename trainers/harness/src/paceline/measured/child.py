"""The measured process: runs the benchmark's script as __main__ and writes a result file.

Started by the harness as `python -P -m paceline.measured.child PLAN`; its output is the script's own.
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import paceline

from .. import auto
from ..counting.recorder import CountingRecorder
from . import ending, fingerprint
from .plan import ProcessPlan
from .timing import TimingRecorder
from .turns import Turns
from .whole_loop import WholeLoopRecorder

Recorder = TimingRecorder | CountingRecorder | WholeLoopRecorder


def main() -> None:
    """Run the script under a recorder; the result is written even where the script fails."""
    plan = ProcessPlan(**json.loads(Path(sys.argv[1]).read_text()))
    _end_with_parent(plan.parent)
    _check_package(plan)
    recorder = _create_recorder(plan)
    result = _ResultWriter(recorder, plan)
    pacer = auto.install_automatic_phases(recorder, result.end_process) if plan.auto else None
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


class _ResultWriter:
    """Writes what was measured, once: at the script's end, or before a script is killed that doesn't end."""

    def __init__(self, recorder: Recorder, plan: ProcessPlan) -> None:
        self._recorder = recorder
        self._plan = plan
        self._lock = threading.Lock()
        self._written = False

    def write(self, *, ended: bool) -> None:
        """Write the result file; `ended` says that the script was broken off."""
        with self._lock:
            if not self._written:
                outcome = {**_build_outcome(self._recorder, self._plan), "ended": ended}
                _write_outcome(outcome, Path(self._plan.result))
                self._written = True

    def end_process(self) -> None:
        """End the process at once, with its result written."""
        self.write(ended=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _build_outcome(recorder: Recorder, plan: ProcessPlan) -> dict[str, Any]:
    loop = recorder.loop
    outcome: dict[str, Any] = {"called": loop.called, "complete": loop.complete, "taken": loop.taken}
    if loop.complete:
        outcome["result"] = _recorder_result(recorder, plan)
        outcome["environment"] = fingerprint.environment_fingerprint()
        if recorder.settings:
            outcome["environment"]["settings"] = dict(sorted(recorder.settings.items()))
    return outcome


def _run_script(plan: ProcessPlan) -> None:
    sys.excepthook = _print_error
    random.seed(plan.seed)
    script = Path(plan.folder, plan.script)
    # As if Python had been started with the script, from the folder that this process was started in.
    sys.argv = [plan.script, *plan.arguments]
    sys.path.insert(0, str(script.resolve().parent))
    _execute_as_main(script.absolute())


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
    if plan.kind == "whole":
        return WholeLoopRecorder(report)
    if plan.kind == "counting":
        return CountingRecorder(plan.warmup_steps, plan.steps, report)
    turns = Turns(Path(plan.turns), one_core=plan.one_core) if plan.turns else None
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


def _write_outcome(outcome: dict[str, Any], path: Path) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(outcome))
    partial.replace(path)


def _check_package(plan: ProcessPlan) -> None:
    """Refuse another harness than the one that started us, such as one in the measured checkout."""
    folder = str(Path(paceline.__file__).resolve().parent)
    if folder != plan.package:
        sys.exit(f"paceline was imported from {folder}, but the harness that measures is {plan.package}")


def _end_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the harness dies, also when it is killed itself."""
    if sys.platform == "linux":
        import ctypes

        kill_on_parent_death, sigkill = 1, 9
        ctypes.CDLL(None).prctl(kill_on_parent_death, sigkill)
    if os.getppid() != parent:
        sys.exit("the harness is gone")


if __name__ == "__main__":
    measuring = os.getpid()
    main()
    if os.getpid() == measuring:
        ending.end_process()
