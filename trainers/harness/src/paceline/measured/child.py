"""The measured process: runs the benchmark's script as __main__ and leaves a result file.

Started by the harness as `python -P -m paceline.measured.child PLAN`; its output is the script's own.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import paceline

from ..counting.repetition import Counting
from . import environment
from .timing import Timing


@dataclass(frozen=True, slots=True)
class Plan:
    """What one measured process has to do. `progress` receives the number of steps done, as 8 bytes."""

    kind: str  # timing or counting
    script: str
    arguments: list[str]
    folder: str
    warmup_steps: int
    steps: int
    seed: int
    result: str
    progress: str
    package: str
    parent: int
    auto: bool = False

    def save(self, path: Path) -> None:
        """Write the plan for the process to read."""
        path.write_text(json.dumps(asdict(self)))


def main() -> None:
    """Run the script under a recorder; the result is written even where the script fails."""
    plan = Plan(**json.loads(Path(sys.argv[1]).read_text()))
    _die_with(plan.parent)
    _check_package(plan)
    recorder = _recorder(plan)
    paceline.activate(recorder)
    measured = os.getpid()
    try:
        _run(plan)
    finally:
        # A process that the script forked may come back to this line too.
        if os.getpid() == measured:
            _write(_outcome(recorder, plan), Path(plan.result))


def _outcome(recorder: Timing | Counting, plan: Plan) -> dict[str, Any]:
    loop = recorder.loop
    outcome: dict[str, Any] = {"called": loop.called, "complete": loop.complete, "taken": loop.taken}
    if loop.complete:
        outcome["result"] = _result(recorder, plan)
        outcome["environment"] = environment.fingerprint()
    return outcome


def _run(plan: Plan) -> None:
    sys.excepthook = _show_error
    random.seed(plan.seed)
    script = Path(plan.folder, plan.script)
    sys.argv = [str(script), *plan.arguments]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


def _show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback that begins in the script, as if it had been started without us."""
    ours = (str(Path(__file__)), "<frozen runpy>", "<frozen importlib._bootstrap>")
    while trace is not None and trace.tb_next and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def _recorder(plan: Plan) -> Timing | Counting:
    kind = Timing if plan.kind == "timing" else Counting
    return kind(plan.warmup_steps, plan.steps, _reporter(plan.progress))


def _result(recorder: Timing | Counting, plan: Plan) -> dict[str, Any]:
    return recorder.result() if isinstance(recorder, Timing) else recorder.result(Path(plan.folder).resolve())


def _reporter(path: str) -> Callable[[int], None]:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def report(done: int) -> None:
        os.pwrite(file, struct.pack("q", done), 0)

    return report


def _write(outcome: dict[str, Any], path: Path) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(outcome))
    partial.replace(path)


def _check_package(plan: Plan) -> None:
    """Refuse another harness than the one that started us, such as one in the measured checkout."""
    here = str(Path(paceline.__file__).resolve().parent)
    if here != plan.package:
        sys.exit(f"paceline was imported from {here}, but the harness that measures is {plan.package}")


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this process when the harness dies, also when it is killed itself."""
    if sys.platform == "linux":
        import ctypes

        kill_on_parent_death, sigkill = 1, 9
        ctypes.CDLL(None).prctl(kill_on_parent_death, sigkill)
    if os.getppid() != parent:
        sys.exit("the harness is gone")


if __name__ == "__main__":
    main()
