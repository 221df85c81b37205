"""Real worker processes for tests, on the database and the queue of the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.workers.waiting import until

CHECKOUT = Path(__file__).resolve().parent.parent
PATIENCE = 60


@dataclass(frozen=True)
class Worker:
    """A Celery worker with one child; `log` is what it prints."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """As the kernel kills when memory is short: no process of it gets to do anything more."""
        self.process.kill()
        self.process.wait()


@contextmanager
def worker(environment: Mapping[str, str], *queues: str, log: Path) -> Iterator[Worker]:
    """`celery -A workers.app worker` on these queues, ready to hear them; ended with all that it started.

    `environment`: that of the fixture `site_environment`, and whatever else the worker shall be told.
    """
    command = [
        *(sys.executable, "-m", "celery", "-A", "workers.app", "worker", "--queues", ",".join(queues)),
        *("--hostname", f"{log.stem}@%h", "--concurrency", "1", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=CHECKOUT, env=dict(environment), stdout=output, stderr=output, start_new_session=True
        )
    started = Worker(process, log)
    try:
        until(lambda: " ready." in started.said or ended(started), PATIENCE)
        yield started
    finally:
        end(started)


def ended(started: Worker) -> bool:
    if started.process.poll() is not None:
        raise AssertionError(f"the worker ended by itself:\n{started.said}")
    return False


def end(started: Worker) -> None:
    """A cold end: what it measures is given up."""
    if started.process.poll() is None:
        os.kill(started.process.pid, signal.SIGQUIT)
        try:
            started.process.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
