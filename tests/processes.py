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

from tests.workers.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parent.parent
START_TIMEOUT = 60


@dataclass(frozen=True)
class Worker:
    """A Celery worker with one child; `log` is what it prints."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """Kill it as the kernel does when memory is short: it gets to do nothing more."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_worker(environment: Mapping[str, str], *queues: str, log: Path) -> Iterator[Worker]:
    """`celery -A workers.site.app worker` on these queues, ready; ended with all that it started.

    `environment`: that of the fixture `site_environment`, and whatever else the worker shall be told.
    """
    command = [
        *(sys.executable, "-m", "celery", "-A", "workers.site.app", "worker", "--queues", ",".join(queues)),
        *("--hostname", f"{log.stem}@%h", "--concurrency", "1", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle"),
    ]
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            command,
            cwd=CHECKOUT,
            env=dict(environment),
            stdout=log_file,
            stderr=log_file,
            start_new_session=True,
        )
    worker = Worker(process, log)
    try:
        wait_until(lambda: is_ready(worker), START_TIMEOUT)
        yield worker
    finally:
        stop_worker(worker)


@contextmanager
def running_agent(
    home: Path, site: str, code: str = "", *options: str, log: Path, sandbox: str = "available"
) -> Iterator[Worker]:
    """`python -m workers.host run` of a machine that joins by the code or has joined, ready to measure.

    It gets nothing of the site's environment, as on a host of its own.
    """
    command = [sys.executable, "-m", "workers.host", "run", "--site", site, "--code", code, "--name", "gpu-1"]
    command += options
    told = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    told["PACELINE_SANDBOX"] = sandbox
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            [*command, "--home", str(home)],
            cwd=CHECKOUT,
            env=told,
            stdout=log_file,
            stderr=log_file,
            start_new_session=True,
        )
    agent = Worker(process, log)
    try:
        wait_until(lambda: is_ready(agent), START_TIMEOUT)
        yield agent
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(100)


def is_ready(worker: Worker) -> bool:
    if worker.process.poll() is not None:
        raise AssertionError(f"the worker ended by itself:\n{worker.output}")
    return " ready." in worker.output


def stop_worker(worker: Worker) -> None:
    """A cold end: what it measures is given up."""
    if worker.process.poll() is None:
        os.kill(worker.process.pid, signal.SIGQUIT)
        try:
            worker.process.wait(10)
        except subprocess.TimeoutExpired:
            worker.kill()
