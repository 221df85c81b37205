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

BACK_OFF = (0.2, 1, 2, 5, 10, 30)  # seconds before the first, second, ... start after a crash
STEADY = 60  # seconds after which a program counts as well again
LOOK = 0.1  # seconds between two looks at the programs


class Supervisor:
    """Not for two threads at once, save `watch` in one and everything else in another.

    The thread that starts a program has to outlive it: the kernel ties a child's life to that thread.
    """

    def __init__(self, logs: Path, tell: Callable[[str, str], None] | None = None) -> None:
        self.journal = Journal(logs, tell)
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
        while not self._came_up(slot):
            if time.monotonic() - first > program.retry_for:
                raise ServiceError(self._failure(slot))
            time.sleep(0.2)

    def run(self, program: Program) -> None:
        """Run `program` to its end; ServiceError if that takes more than its patience or fails."""
        child = Child(program, self.journal)
        try:
            deadline = child.started + program.patience
            while child.status() is None and time.monotonic() < deadline:
                time.sleep(0.02)
        finally:
            failed = child.status() != 0
            child.end(0)
            child.drain()
        if failed:
            raise ServiceError(f"{program.name} failed: {_last(child)}")

    def pid(self, name: str) -> int:
        return next(slot.child.pid for slot in self._slots if slot.program.name == name)

    def look(self) -> None:
        """Start again what has crashed, once its back-off is over."""
        with self._lock:
            if not self._stopping.is_set():
                for slot in self._slots:
                    slot.look()

    def watch(self, until: Callable[[], bool] = lambda: False) -> None:
        """Look after the programs until they are stopped or `until()`."""
        while not self._ended.is_set() and not until():
            self.look()
            # A restart ties the child to this thread: wait for the end of `stop`, not for its beginning.
            self._ended.wait(LOOK)

    def stop(self) -> None:
        """Stop in reverse order; each one gets its grace, then its whole group is killed."""
        self._stopping.set()
        with self._lock:
            for _, group in groupby(
                reversed(self._slots), key=lambda slot: slot.program.together or id(slot)
            ):
                _end([slot.child for slot in group])
            for slot in self._slots:
                slot.child.drain()
            self._slots.clear()
        self._ended.set()
        self.journal.close()

    def _came_up(self, slot: _Slot) -> bool:
        if slot.child.status() is not None:
            slot.start_again()
        deadline = slot.child.started + slot.program.patience
        while slot.child.status() is None:
            if slot.program.ready():
                return True
            if time.monotonic() > deadline:
                _end([slot.child])
                return False
            time.sleep(0.02)
        return False

    def _failure(self, slot: _Slot) -> str:
        slot.child.drain()
        log = self.journal.path(slot.program.name)
        return f"{slot.program.name} didn't start: {_last(slot.child)} (log: {log})"


class _Slot:
    """A program's place: its present child and its history of crashes."""

    def __init__(self, program: Program, journal: Journal) -> None:
        self.program = program
        self.child = Child(program, journal)
        self._journal = journal
        self._crashes = 0
        self._due: float | None = None

    def start_again(self) -> None:
        self.child = Child(self.program, self._journal)
        self._due = None

    def look(self) -> None:
        status = self.child.status()
        if status is None:
            return
        if self._due is None:
            self._plan(status)
        elif time.monotonic() >= self._due:
            self.start_again()

    def _plan(self, status: int) -> None:
        self.child.kill_group()
        self.child.drain()
        if time.monotonic() - self.child.started > STEADY:
            self._crashes = 0
        wait = BACK_OFF[min(self._crashes, len(BACK_OFF) - 1)]
        self._crashes += 1
        self._due = time.monotonic() + wait
        # Who is killed has no last words.
        why = signal.Signals(-status).name if status < 0 else _last(self.child)
        self._journal.say(f"{self.program.name} ended ({why}); starting it again.")


def _end(children: list[Child]) -> None:
    """Ask them all at once to end; each has its grace from now on."""
    asked = time.monotonic()
    for child in children:
        child.ask_to_end()
    for child in children:
        child.end(max(0, asked + child.program.grace - time.monotonic()))


def _last(child: Child) -> str:
    """The last line that it wrote, or its exit status: the best that is known of the cause."""
    lines = [line.strip() for line in child.last_lines if line.strip()]
    return lines[-1] if lines else f"no output, exit status {child.status()}"
