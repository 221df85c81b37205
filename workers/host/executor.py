"""Executes what a machine has claimed, a run or an experiment: under its lock, by a lease that is renewed."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from dashboard import runs
from dashboard.leases import LeaseLost
from workers.host import machine
from workers.host.commit_code import CodeSource, CommitCode
from workers.host.errors import BuildError, CheckoutError, MeasuringError, Stopped
from workers.host.lease_heartbeat import LeaseHeartbeat
from workers.host.logs import Log
from workers.host.processes import Limits

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Job(Protocol):
    """What was claimed, as logs name it."""

    @property
    def name(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def machine(self) -> str: ...


JobType = TypeVar("JobType", bound=Job)


@dataclass(frozen=True)
class PreparedCode:
    """A commit that is checked out, with the interpreter of its environment."""

    code: CommitCode
    python: Path


def execute_next(
    pool: str, claim: Callable[[str, str], JobType | None], executor: Callable[[JobType, int], Executor]
) -> bool:
    """Claim a job and execute it under the machine's lock, whose descriptor it gets. False: none waited."""
    name = settings.PACELINE_MACHINE
    with machine.lock_machine(settings.PACELINE_HOME, name) as lock:
        if lock is None:
            return False
        # The job keeps the machine as it is now.
        runs.machine_seen(name, pool, machine.take_fingerprint().as_dict())
        job = claim(pool, name)
        if job is None:
            return False
        logger.info("%s is claimed, attempt %s", job.name, job.attempt)
        executor(job, lock).execute()
        return True


class Executor(ABC):
    """Executes one job; `lock` is the file descriptor of the machine's lock."""

    def __init__(self, job: Job, lock: int) -> None:
        self.job = job
        self.lock = lock
        self.home: Path = settings.PACELINE_HOME
        self.log = Log()
        self.stop = threading.Event()
        self.heartbeat = LeaseHeartbeat(job.name, self.renew, self.log, self.stop)

    @abstractmethod
    def renew(self, progress: float | None, text: str, log: str) -> bool:
        """Renew the lease. False: it is no longer ours."""

    @abstractmethod
    def work(self) -> None:
        """Measure; the lease is renewed meanwhile."""

    @abstractmethod
    def finish(self) -> None:
        """Hand in what `work` has left."""

    @abstractmethod
    def give_up(self, error: MeasuringError) -> None:
        """Say why it can't be measured."""

    def execute(self) -> None:
        """To its end. An exception of ours lets the lease run out: the job is done again."""
        try:
            with self.heartbeat:
                self.work()
            self.finish()
        except (Stopped, LeaseLost):
            logger.info("%s is no longer ours: it was ended here", self.job.name)
        except MeasuringError as error:
            logger.info("%s can't be measured: %s", self.job.name, error)
            try:
                self.give_up(error)
            except LeaseLost:
                logger.info("%s had been given up before", self.job.name)

    def prepare(self, source: CodeSource, commit: str, folder_suffix: str = "") -> PreparedCode:
        """Check a commit out and have its environment built; CheckoutError or BuildError says why not."""
        self.heartbeat.activity = f"checking out {commit[:10]}"
        with machine_trouble(CheckoutError):
            code = source.code(commit, self.home, self.job.machine, self.stop, folder_suffix=folder_suffix)
        self.heartbeat.activity = f"preparing the environment of {commit[:10]}"
        with machine_trouble(BuildError):
            return PreparedCode(code, code.python(self.home, self.log, self.stop))


def memory_limits() -> Limits:
    return Limits(data=settings.PACELINE_MEMORY_LIMIT or None)


@contextmanager
def machine_trouble(kind: type[MeasuringError]) -> Iterator[None]:
    """A full disk, a folder that can't be written: the job fails with the system's own sentence."""
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise kind(f"The measuring machine failed: {error.strerror or error}{place}.") from error


def retry_database(act: Callable[[], T]) -> T:
    """Do it; where the database is away, try again for as long as a lease."""
    until = time.monotonic() + settings.PACELINE_LEASE_SECONDS
    while True:
        try:
            return act()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() > until:
                raise
            logger.warning("The database can't be reached, trying again: %s", error)
            connection.close()
            time.sleep(1)
