"""One program started as a child: its process group, its log, its end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.services.accounts import Account
from dashboard.services.journal import Journal

PR_SET_PDEATHSIG = 1
# Loaded before any fork: between fork and exec nothing may be imported.
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Program:
    """What to run, and how to tell that it is up and make it end. Times are seconds."""

    name: str
    argv: Sequence[str]
    folder: Path
    ready: Callable[[], bool] = lambda: True
    account: Account | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    inherits: bool = True  # the supervisor's environment too
    stop_signal: signal.Signals = signal.SIGTERM
    # Sent by the kernel should the supervisor be killed: then nobody is left to wait for a slow end.
    orphan_signal: signal.Signals = signal.SIGTERM
    grace: float = 10
    timeout: float = 30  # to become ready, or to run to its end
    retry_for: float = 0  # a start that fails is tried again for so long
    quiet: bool = False  # to its log file, not to the terminal
    may_end: bool = False  # with status 0, of its own accord: then it isn't started again
    niceness: int = 0  # of a scheduler's 19: what others wait for goes before it
    # Neighbours of the same group don't need each other: they are asked to end at the same time.
    stop_group: str = ""


class Child:
    """A running program."""

    def __init__(self, program: Program, journal: Journal) -> None:
        self.program = program
        self.started = time.monotonic()
        self.last_lines: deque[str] = deque(maxlen=5)
        self._journal = journal
        reading, writing = os.pipe()
        self._output = os.fdopen(reading, "rb")
        try:
            self._process = _spawn_process(program, writing)
        finally:
            os.close(writing)
        self._reader = threading.Thread(target=self._read, name=f"log of {program.name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def status(self) -> int | None:
        """None while it runs, else its exit status (negative: the signal that ended it)."""
        return self._process.poll()

    def terminate(self) -> None:
        if self.status() is None:
            self._process.send_signal(self.program.stop_signal)

    def end(self, grace: float) -> int:
        """After `grace` more seconds kill what is left of its group."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        self.kill_group()
        return self._process.wait()

    def kill_group(self) -> None:
        # The errors say that nothing is left of the group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def drain(self) -> None:
        """Wait until what the ended program wrote is in its log."""
        self._reader.join(1)

    def _read(self) -> None:
        # A bound on one line: a program that never ends its line can't fill the memory.
        while chunk := self._output.readline(65536):
            line = chunk.decode(errors="replace").rstrip()
            self.last_lines.append(line)
            self._journal.write(self.program.name, line, quiet=self.program.quiet)
        self._output.close()


def _spawn_process(program: Program, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        program.argv,
        cwd=program.folder,
        env={**(os.environ if program.inherits else {}), **program.environment},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,  # Ctrl-C in the terminal reaches the supervisor alone, which stops them in order
        preexec_fn=_set_up_child(program.orphan_signal, program.niceness),
        **(program.account.popen_arguments if program.account else {}),
    )


def _set_up_child(number: signal.Signals, niceness: int) -> Callable[[], None]:
    """A function for the child: the kernel ends it with its parent, and lets others go before it.

    It runs after the switch of accounts, which would undo it.
    """
    parent = os.getpid()

    def set_up() -> None:
        os.nice(niceness)
        _libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return set_up
