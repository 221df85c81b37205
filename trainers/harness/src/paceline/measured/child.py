"""The measured process: runs the benchmark's script as __main__ and writes a result file.

Started by the harness as `python child.py PLAN`, or once for each rank by a launcher, as a module and maybe
with words of the launcher before the plan; its output is the script's own.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # This file's own folder, or where a launcher started this: their modules must not stand before Python's.
    # By an option of Python instead the script would see it, and so would what it starts.
    sys.path.pop(0)

import builtins
import functools
import json
import os
import random
import runpy
import traceback
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NoReturn

# By their whole names: a file that is started by its own has no package around it.
import paceline
from paceline import auto
from paceline.measured import ending
from paceline.measured.child_hooks import call_before_exit
from paceline.measured.child_processes import hook_children, measure_spawned
from paceline.measured.plan import ProcessPlan
from paceline.measured.rank_presence import presence
from paceline.measured.rank_programs import PROGRAM
from paceline.measured.result_writer import ResultWriter, create_recorder


def main() -> ProcessPlan:
    """Run the script under a recorder, and return the plan; the result is written even where it fails."""
    plan_file = sys.argv[-1]
    if sys.argv[1] == PROGRAM and not Path(plan_file).exists():
        _run_unmeasured()
    plan = ProcessPlan(**json.loads(Path(plan_file).read_text()))
    if not plan.is_program:
        # DeepSpeed's launcher gives each rank its number so.
        plan = replace(plan, arguments=[*sys.argv[1:-1], *plan.arguments])
    _check_package(plan)
    if plan.is_program:
        measure_spawned(plan_file)
        _run_script(plan)
        return plan
    _end_with_parent(plan)
    presence.keep_in(Path(plan.result).parent, is_rank=plan.has_ranks)
    recorder = create_recorder(plan)
    result = ResultWriter(recorder, plan)
    finder = _start_finder(result, plan)
    paceline.activate_recorder(recorder)
    if plan.auto:
        hook_children(plan_file)
        # What it took until then counts, as at any other end.
        call_before_exit(lambda: result.write(ended=False))
    measured = os.getpid()
    try:
        _run_script(plan)
    except BaseException as error:
        # A script that was broken off may also fail while it tidies up: all was measured before that.
        if finder is None or not finder.ended or os.getpid() != measured:
            raise
        if not isinstance(error, auto.ScriptEnded | SystemExit):
            _print_error(type(error), error, error.__traceback__)
    finally:
        # A process that the script forked may come back to this line too.
        if os.getpid() == measured:
            result.write(ended=finder is not None and finder.ended)
    return plan


def _run_unmeasured() -> NoReturn:
    """Become the program that this process stands for: the harness is gone, with the plan."""
    before = sys.orig_argv[: sys.orig_argv.index(sys.argv[0])]
    os.execv(sys.executable, [*before, *sys.argv[2:-1]])  # noqa: S606  # it is the script's own command


def _start_finder(result: ResultWriter, plan: ProcessPlan) -> auto.StepFinder | None:
    if not plan.auto:
        return None

    def end_together() -> bool:
        if plan.keep_running:
            result.write(ended=False)
            return False
        result.end_together()
        return True

    def start_finder() -> auto.StepFinder:
        return auto.start_step_finder(result.recorder, result.end_process, plan.step, end_together)

    result.step_finder = auto.install_automatic_phases(start_finder)
    return result.step_finder


def _run_script(plan: ProcessPlan) -> None:
    sys.excepthook = _print_error
    if plan.keep_running:
        sys.excepthook = functools.partial(_print_and_keep_error, Path(plan.result).with_name(ending.ERROR))
    else:
        random.seed(plan.seed)
    if plan.module:
        sys.path[:0] = [*plan.python_path, str(Path.cwd())]
        _execute_module(plan)
        return
    script = Path(plan.folder, plan.script)
    # As if Python had been started with the script, from the folder that this process was started in.
    name = os.path.relpath(script) if plan.working_directory else plan.script
    sys.argv = [name, *plan.arguments]
    sys.path[:0] = [*plan.python_path, str(script.resolve().parent)]
    _execute_as_main(script.absolute())


def _execute_module(plan: ProcessPlan) -> None:
    """Run a module as __main__, as if Python had been started with `-m`."""
    sys.argv = ["-m", *plan.arguments]
    # What runpy itself runs by, but in a module of its own and not in this one.
    _, spec, code = runpy._get_module_details(plan.script, ImportError)  # type: ignore[attr-defined]
    main = _make_main(spec.origin, spec.cached)
    main.__loader__, main.__package__, main.__spec__ = spec.loader, spec.parent, spec
    sys.argv[0] = spec.origin
    sys.modules["__main__"] = main
    exec(code, vars(main))  # noqa: S102  # it is what this process is for


def _execute_as_main(script: Path) -> None:
    """Run the script as __main__; unlike runpy, which would also change the first argument."""
    main = _make_main(str(script), None)
    main.__loader__ = SourceFileLoader("__main__", str(script))
    sys.modules["__main__"] = main
    code = compile(script.read_bytes(), script, "exec", dont_inherit=True)
    exec(code, vars(main))  # noqa: S102  # it is what this process is for


def _make_main(file: str | None, cached: str | None) -> ModuleType:
    """A module with all that Python gives its own, in its order; `__builtins__` is a module."""
    main = ModuleType("__main__")
    if sys.version_info < (3, 14):  # later ones make them when they are asked for
        main.__annotations__ = {}
    vars(main).update(__builtins__=builtins, __file__=file, __cached__=cached)
    return main


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback that begins in the script, as if it had been started without us."""
    own_files = (str(Path(__file__)), "<frozen runpy>")
    while trace is not None and trace.tb_next and trace.tb_frame.f_code.co_filename in own_files:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def _print_and_keep_error(
    kept: Path, kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print it, and keep its kind for the harness, which doesn't see what a training of somebody's prints."""
    with suppress(OSError), kept.open("a") as output:
        output.writelines(traceback.format_exception_only(kind, error))
    _print_error(kind, error, trace)


def _check_package(plan: ProcessPlan) -> None:
    """Refuse another harness than the one that started us, such as one in the measured checkout."""
    folder = str(Path(paceline.__file__).resolve().parent)
    if folder != plan.package:
        sys.exit(f"paceline was imported from {folder}, but the harness that measures is {plan.package}")


def _end_with_parent(plan: ProcessPlan) -> None:
    """Ask the kernel to kill this process when the harness dies, also when it is killed itself."""
    if plan.keep_running:
        return
    ending.die_with_parent()
    # A rank's parent is the launcher.
    if not plan.has_ranks and os.getppid() != plan.parent:
        sys.exit("the harness is gone")


if __name__ == "__main__":
    measuring = os.getpid()
    keeps_running = main().keep_running
    # One that keeps running ends as it would without us, its `__del__` and what Python warns of included.
    if os.getpid() == measuring and not keeps_running:
        ending.end_process()
