"""Reaches the processes that the measured one forks and spawns: ranks, workers of loaders, other helpers.

multiprocessing is imported where it is hooked into: most benchmarks never need it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

_SPAWNED = "from multiprocessing.spawn import spawn_main; "
_FORKSERVER = "from multiprocessing.forkserver import main; "

# Python looks for modules in the current folder first: its json.py must not stand before the harness's.
_MEASURE = (
    "import sys; path = sys.path[:]; sys.path[:] = filter(None, path); "
    "from paceline.measured.child_processes import measure_spawned; measure_spawned({plan!r}); "
    "sys.path[:] = path; "
)

# An address has 107 bytes on Linux, 103 elsewhere; multiprocessing adds a name of 18 to its folder.
LONGEST_FOLDER = 85

_exit_process = os._exit


def hook_spawning(plan: str) -> None:
    """Let processes that multiprocessing starts measure themselves by the plan in that file."""
    from multiprocessing import spawn, util

    measure = _MEASURE.format(plan=plan)
    original, start = spawn.get_command_line, util.spawnv_passfds

    def get_command_line(**descriptors: Any) -> list[Any]:
        words = original(**descriptors)  # the interpreter's path may be bytes
        return [_insert_code(word, _SPAWNED, measure) for word in words]

    def spawnv_passfds(path: Any, args: Any, passfds: Any) -> int:
        return start(path, [_insert_code(word, _FORKSERVER, measure) for word in args], passfds)

    spawn.get_command_line = get_command_line
    # What the server of forked processes is started by.
    vars(util)["spawnv_passfds"] = spawnv_passfds


def keep_sockets_in(folder: Path) -> None:
    """Let multiprocessing make the sockets of this process and of those that it starts in a folder of ours.

    A helper that is ended by a signal, such as a loader's while it is iterated, leaves its own folder behind.
    Nothing is done where the sockets' addresses would be too long.
    """
    from multiprocessing import process

    if len(os.fsencode(folder)) <= LONGEST_FOLDER:
        vars(process.current_process())["_config"].setdefault("tempdir", str(folder))


def hook_forking(measure_forked: Callable[[], None]) -> None:
    """Let a forked process measure itself, from its begin on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=measure_forked)


def call_when_named(action: Callable[[str], object]) -> None:
    """Call an action with the name that multiprocessing gives this process."""
    from multiprocessing import process

    original = _own_bootstrap()

    def bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        action(self.name)
        return original(self, *args, **kwargs)

    vars_of_class: Any = process.BaseProcess
    vars_of_class._bootstrap = bootstrap


@cache
def _own_bootstrap() -> Any:
    """What multiprocessing itself begins a process with, also in a process whose parent was hooked into."""
    from multiprocessing import process

    return vars(process.BaseProcess)["_bootstrap"]


def call_before_exit(action: Callable[[], object]) -> None:
    """Call an action before this process ends by `os._exit`, as forked processes do."""
    own = os.getpid()

    def exit_process(status: int) -> None:
        if os.getpid() == own:
            action()
        _exit_process(status)

    vars(os)["_exit"] = exit_process


def end_at_once() -> None:
    """End this process without calling anything more."""
    _exit_process(0)


def _insert_code(word: Any, before: str, code: str) -> Any:
    return word.replace(before, code + before) if isinstance(word, str) else word
