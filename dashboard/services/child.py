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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    environment: Mapping[str, str] = field(default_factory=dict)  # added to the supervisor's own
    stop_signal: signal.Signals = signal.SIGTERM
    # Sent by the kernel should the supervisor be killed: then nobody is left to wait for a slow end.
    orphan_signal: signal.Signals = signal.SIGTERM
    grace: float = 10
    patience: float = 30
    retry_for: float = 0  # a start that fails is tried again for so long
    quiet: bool = False  # to its log file, not to the terminal


class Child:
    """A running program."""

    def __init__(self, program: Program, journal: Journal) -> None:
        self.program = program
        self.started = time.monotonic()
        self.last_lines: deque[str] = deque(maxlen=5)
        self._journal = journal
        self._process = _spawn(program)
        self._reader = threading.Thread(target=self._read, name=f"log of {program.name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def status(self) -> int | None:
        """None while it runs, else its exit status (negative: the signal that ended it)."""
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        if self.status() is None:
            self._process.send_signal(number)

    def end(self, grace: float) -> int:
        """Ask it to stop, and after `grace` seconds kill what is left of its group."""
        self.signal(self.program.stop_signal)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            pass
        self.kill_group()
        return self._process.wait()

    def kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            # Nothing is left of the group.
            pass

    def drain(self) -> None:
        """Wait until what the ended program wrote is in its log."""
        self._reader.join(1)

    def _read(self) -> None:
        assert self._process.stdout is not None
        # A bound on one line: a program that never ends its line can't fill the memory.
        while chunk := self._process.stdout.readline(65536):
            line = chunk.decode(errors="replace").rstrip()
            self.last_lines.append(line)
            self._journal.write(self.program.name, line, quiet=self.program.quiet)
        self._process.stdout.close()


def _spawn(program: Program) -> subprocess.Popen[bytes]:
    switch: dict[str, Any] = {}
    if program.account is not None and program.account.changes:
        switch = {"user": program.account.uid, "group": program.account.gid, "extra_groups": []}
    return subprocess.Popen(
        program.argv,
        cwd=program.folder,
        env={**os.environ, **program.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,  # Ctrl-C in the terminal reaches the supervisor alone, which stops them in order
        preexec_fn=_follow_parent(program.orphan_signal),  # noqa: PLW1509 - one system call, no allocation
        **switch,
    )


def _follow_parent(number: signal.Signals) -> Callable[[], None]:
    """Runs in the child, after the switch of accounts, which would undo it."""
    parent = os.getpid()

    def follow() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return follow
