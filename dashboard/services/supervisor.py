"""Starts programs in order, starts them again after a crash, and stops them in reverse order."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from dashboard.services.child import Child, Program
from dashboard.services.errors import ServiceError
from dashboard.services.journal import Journal

BACK_OFF_SECONDS = (0.2, 1, 2, 5, 10, 30)  # before the first, second, ... start after a crash
STEADY_SECONDS = 60  # after which a program counts as well again
POLL_SECONDS = 0.1  # between two looks at the programs


class Supervisor:
    """Not for two threads at once, save `watch` in one and everything else in another.

    The thread that starts a program has to outlive it: the kernel ties a child's life to that thread.
    """

    def __init__(
        self,
        logs: Path,
        print_line: Callable[[str, str], None] | None = None,
        check_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`check_stop()` is called while something starts or runs, and raises what is to end that."""
        self.journal = Journal(logs, print_line)
        self._check_stop = check_stop
        self._slots: list[_Slot] = []
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._ended = threading.Event()

    def start(self, program: Program) -> None:
        """Start `program` and wait until it is ready; ServiceError if it isn't in its time."""
        slot = _Slot(program, self.journal)
        with self._lock:
            self._slots.append(slot)
        first = time.monotonic()
        while not self._became_ready(slot):
            if time.monotonic() - first > program.retry_for:
                raise ServiceError(self._describe_failure(slot))
            self._pause(0.2)

    def run(self, program: Program) -> None:
        """Run `program` to its end; ServiceError if that takes more than its timeout or fails."""
        child = Child(program, self.journal)
        try:
            deadline = child.started + program.timeout
            while child.status() is None and time.monotonic() < deadline:
                self._pause(0.02)
        finally:
            failed = child.status() != 0
            child.end(0)
            child.drain()
        if failed:
            raise ServiceError(f"{program.name} failed: {_failure_reason(child)}")

    def pid(self, name: str) -> int:
        return next(slot.child.pid for slot in self._slots if slot.program.name == name)

    def restart_crashed(self) -> None:
        """Start again what has crashed, once its back-off is over."""
        with self._lock:
            if not self._stopping.is_set():
                for slot in self._slots:
                    slot.restart_if_due()

    def watch(self, until: Callable[[], bool] = lambda: False) -> None:
        """Look after the programs until they are stopped or `until()`."""
        while not self._ended.is_set() and not until():
            self.restart_crashed()
            # A restart ties the child to this thread: wait for the end of `stop`, not for its beginning.
            self._ended.wait(POLL_SECONDS)

    def stop(self) -> None:
        """Stop in reverse order; each one gets its grace, then its whole group is killed."""
        self._stopping.set()
        with self._lock:
            for _, group in groupby(
                reversed(self._slots), key=lambda slot: slot.program.stop_group or id(slot)
            ):
                _end_children([slot.child for slot in group])
            for slot in self._slots:
                slot.child.drain()
            self._slots.clear()
        self._ended.set()
        self.journal.close()

    def _became_ready(self, slot: _Slot) -> bool:
        if slot.child.status() is not None:
            slot.restart()
        deadline = slot.child.started + slot.program.timeout
        while slot.child.status() is None:
            if slot.program.ready():
                return True
            if time.monotonic() > deadline:
                _end_children([slot.child])
                return False
            self._pause(0.02)
        return False

    def _pause(self, seconds: float) -> None:
        self._check_stop()
        time.sleep(seconds)

    def _describe_failure(self, slot: _Slot) -> str:
        slot.child.drain()
        log = self.journal.path(slot.program.name)
        return f"{slot.program.name} didn't start: {_failure_reason(slot.child)} (log: {log})"


class _Slot:
    """A supervised program: its present child and its history of crashes."""

    def __init__(self, program: Program, journal: Journal) -> None:
        self.program = program
        self.child = Child(program, journal)
        self._journal = journal
        self._crashes = 0
        self._restart_at: float | None = None

    def restart(self) -> None:
        self.child = Child(self.program, self._journal)
        self._restart_at = None

    def restart_if_due(self) -> None:
        status = self.child.status()
        if status is None or (status == 0 and self.program.may_end):
            return
        if self._restart_at is None:
            self._schedule_restart(status)
        elif time.monotonic() >= self._restart_at:
            self.restart()

    def _schedule_restart(self, status: int) -> None:
        self.child.kill_group()
        self.child.drain()
        if time.monotonic() - self.child.started > STEADY_SECONDS:
            self._crashes = 0
        wait = BACK_OFF_SECONDS[min(self._crashes, len(BACK_OFF_SECONDS) - 1)]
        self._crashes += 1
        self._restart_at = time.monotonic() + wait
        # Who is killed has no last words.
        why = signal.Signals(-status).name if status < 0 else _failure_reason(self.child)
        self._journal.write_own(f"{self.program.name} ended ({why}); starting it again.")


def _end_children(children: list[Child]) -> None:
    """Ask them all at once to end; each has its grace from now on."""
    asked_at = time.monotonic()
    for child in children:
        child.terminate()
    for child in children:
        child.end(max(0, asked_at + child.program.grace - time.monotonic()))


def _failure_reason(child: Child) -> str:
    """The last line that it wrote, or its exit status: the best hint at the cause."""
    lines = [line.strip() for line in child.last_lines if line.strip()]
    return lines[-1] if lines else f"no output, exit status {child.status()}"
