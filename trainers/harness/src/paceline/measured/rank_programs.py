"""Programs of this Python that the measured script starts: those that are ranks measure themselves.

Lightning starts all ranks but its own so, each by the variables of a rank. Every other program runs as it
would without us; its command is noted for who has to be told that it was the one that trained.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from .plan import ProcessPlan
from .rank_identity import VARIABLES

CHILD = Path(__file__).with_name("child.py")
# Before the words of a rank's own command, in the one that measures it.
PROGRAM = "--program"
# Options of Python that leave the harness to be found, the second ones with a value of their own.
OPTIONS, VALUED = ("-u", "-B", "-O", "-OO", "-q"), ("-W", "-X")
LONGEST_COMMAND = 200
NOTED_COMMANDS = 3

started_commands: list[str] = []
"""The first different ones that this process has started, without Python's own options."""
_plan_numbers = count(1)


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """What a command line of Python runs, with the options of Python before it."""

    options: list[str]
    script: str
    is_module: bool
    arguments: list[str]


def hook_programs(plan_file: str) -> None:
    """Let the ranks that this process starts as programs measure themselves by the plan in that file."""
    popen: Any = subprocess.Popen
    execute = popen._execute_child

    def execute_child(self: Any, args: Any, executable: Any, *others: Any) -> Any:
        if executable is None:
            if not isinstance(args, str | bytes | os.PathLike):
                args = list(args)  # It may be an iterator, which is looked at once.
            folder, variables = others[3:5]
            args = measuring_command(args, folder, variables, plan_file)
        return execute(self, args, executable, *others)

    popen._execute_child = execute_child


def read_program(words: Sequence[str]) -> PythonProgram | None:
    """Return the program of a command line that runs a file or a module by Python; None for any other."""
    if not words or not Path(words[0]).name.startswith("python"):
        return None
    options: list[str] = []
    rest = list(words[1:])
    while rest and (rest[0] in OPTIONS or rest[0][:2] in VALUED):
        options += [rest.pop(0) for _ in range(1 + (rest[0] in VALUED and len(rest) > 1))]
    is_module = rest[:1] == ["-m"]
    if is_module:
        rest.pop(0)
    if not rest or rest[0].startswith("-"):
        return None
    return PythonProgram(options, rest[0], is_module, rest[1:])


def is_another_rank(own: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether these variables are those of a rank, and of another one than who starts it."""
    for rank, local, size in VARIABLES:
        names = [name for name in (rank, local) if given.get(name, "").isdecimal()]
        if names and given.get(size, "").isdecimal() and int(given[size]) > 1:
            return any(given[name] != own.get(name) for name in names)
    return False


def measuring_command(args: Any, folder: Any, variables: Any, plan_file: str) -> Any:
    """Return what is started in place of a rank's command, and every other command as it is."""
    words = _split_command(args)
    program = read_program(words)
    if program is None:
        return args
    _note_command(program)
    given = {os.fsdecode(name): os.fsdecode(value) for name, value in (variables or {}).items()}
    is_rank = is_another_rank(os.environ, given) and not isinstance(args, str | bytes | os.PathLike)
    if not is_rank or not _is_this_python(words[0]) or not _finds_harness(given):
        return args
    place = os.path.abspath(os.fsdecode(folder or "."))  # noqa: PTH100
    is_file = program.script.endswith(".py") and Path(place, program.script).is_file()
    if not is_file and not program.is_module:
        return args  # a folder or an archive
    plan = _write_plan(program, place, Path(plan_file))
    if plan is None:
        return args
    command = words[1 + len(program.options) :]
    return [args[0], *program.options, str(CHILD), PROGRAM, *command, plan]


def _finds_harness(given: Mapping[str, str]) -> bool:
    """Whether a process with these variables can import the harness, as this one does."""
    root = str(CHILD.parents[2])
    own, theirs = (variables.get("PYTHONPATH", "").split(os.pathsep) for variables in (os.environ, given))
    return root not in own or root in theirs


def _split_command(args: Any) -> list[str]:
    try:
        return shlex.split(args) if isinstance(args, str) else [os.fsdecode(word) for word in args]
    except (TypeError, ValueError):
        return []


def _note_command(program: PythonProgram) -> None:
    if program.script.startswith(sys.prefix):
        return  # a library's own, such as a worker of torch's compiler
    command = shlex.join([*["-m"][: program.is_module], program.script, *program.arguments])
    if len(started_commands) < NOTED_COMMANDS and command not in started_commands:
        started_commands.append(command[:LONGEST_COMMAND])


def _is_this_python(word: str) -> bool:
    return Path(shutil.which(word) or word).parent == Path(sys.executable).parent


def _write_plan(program: PythonProgram, folder: str, plan_file: Path) -> str | None:
    """Write the rank's plan beside this process's own; None where that is gone, with the harness."""
    with suppress(OSError):
        plan = replace(
            ProcessPlan(**json.loads(plan_file.read_text())),
            script=program.script,
            module=program.is_module,
            arguments=program.arguments,
            folder=folder,
            working_directory="",
            processes=1,
            launcher=[],
            is_program=True,
        )
        own = plan_file.with_name(f"plan-{os.getpid()}-{next(_plan_numbers)}.json")
        plan.save(own)
        return str(own)
    return None
