"""One assignment from its claim to its document: claimed, preparing, measuring, storing, done; or failed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from dashboard import ingest, runs
from workers import bells, launching
from workers.codes import Code, Source
from workers.errors import BuildError, CheckoutError, CrashError, MeasuringError, Stopped
from workers.logs import Log
from workers.processes import Limits
from workers.pulse import Pulse

logger = logging.getLogger(__name__)

T = TypeVar("T")


def measure_next(pool: str) -> bool:
    """Carry the pool's next run, if there is one and this machine is free. False: nothing was done."""
    return bells.answer(pool, runs.claim, lambda assignment, lock: Carrier(assignment, lock).carry())


class Carrier:
    """Carries one assignment; `lock` is the file descriptor of the machine's lock."""

    def __init__(self, assignment: runs.Assignment, lock: int) -> None:
        self.assignment = assignment
        self.lock = lock
        self.home: Path = settings.PACELINE_HOME
        self.log = Log()
        self.stop = threading.Event()
        self.pulse = Pulse(assignment.name, self.heartbeat, self.log, self.stop)

    def heartbeat(self, progress: float | None, text: str, log: str) -> bool:
        return runs.heartbeat(self.assignment, progress, text, log)

    def carry(self) -> None:
        """To done or failed. An exception of ours lets the lease run out: the run is measured again."""
        try:
            with self.pulse:
                document = self.measured()
                self.enter("storing", "storing the document")
            self.store(document)
        except (Stopped, runs.LeaseLost):
            logger.info("%s is no longer ours: it was ended here", self.assignment.name)
        except MeasuringError as error:
            self.fail(error.kind, str(error))

    def measured(self) -> bytes:
        """Check out, prepare, measure: the document's bytes."""
        self.enter("preparing", "checking the commit out")
        with machine_trouble(CheckoutError):
            code = self.source().code(self.assignment.commit, self.home, self.assignment.machine, self.stop)
        self.pulse.activity = "preparing the environment"
        with machine_trouble(BuildError):
            python = code.python(self.home, self.log, self.stop)
        what = self.measurement(code, python)
        scratches = launching.scratch_folder(self.home, self.assignment.machine)
        with machine_trouble(CrashError), scratches as scratch:
            self.enter("measuring", "starting")
            self.pulse.progress = lambda: launching.progress(scratch)
            try:
                return launching.measure(what, scratch, self.log, self.stop)
            finally:
                self.pulse.progress = lambda: None

    def source(self) -> Source:
        run = self.assignment
        return Source(run.project, run.repository, run.manifest, run.benchmark)

    def measurement(self, code: Code, python: Path) -> launching.Measurement:
        run = self.assignment
        return launching.Measurement(
            benchmark=code.benchmark.name,
            params=run.params,
            repetitions=run.repetitions,
            quick=run.quick,
            time_limit=run.time_limit,
            checkout=code.folder,
            python=python,
            lock=self.lock,
            limits=Limits(data=settings.PACELINE_MEMORY_LIMIT or None),
        )

    def enter(self, state: str, activity: str) -> None:
        patiently(lambda: runs.advance(self.assignment, state))
        self.pulse.activity = activity

    def store(self, document: bytes) -> None:
        """The log's end first: a run that is done changes no more."""
        patiently(lambda: runs.heartbeat(self.assignment, log=self.pulse.rest_of_log()))
        try:
            patiently(lambda: ingest.store_document(self.assignment, document))
        except ingest.BadDocument as error:
            self.fail("bad document", str(error))
        else:
            logger.info("%s is done", self.assignment.name)

    def fail(self, kind: str, reason: str) -> None:
        logger.info("%s failed (%s): %s", self.assignment.name, kind, reason)
        rest = self.pulse.rest_of_log()
        try:
            patiently(lambda: runs.fail(self.assignment, kind, reason, rest))
        except runs.LeaseLost:
            logger.info("%s had been given up before it failed", self.assignment.name)


@contextmanager
def machine_trouble(kind: type[MeasuringError]) -> Iterator[None]:
    """A full disk, a folder that can't be written: the run fails with the system's own sentence."""
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise kind(f"The measuring machine failed: {error.strerror or error}{place}.") from error


def patiently(act: Callable[[], T]) -> T:
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
