"""Executes what a machine has claimed, a run or an experiment: under its lock, by a lease that is renewed."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from workers.host.box.box import NO_BOX, BoxError, open_box
from workers.host.checkout.commit_code import CodeSource, CommitCode
from workers.host.configuration import HostConfiguration
from workers.host.environments.build_runner import BuildRunner
from workers.host.environments.own_code import build_code
from workers.host.environments.prepared_data import prepare_data
from workers.host.errors import (
    BuildError,
    CheckoutError,
    LeaseLost,
    MeasuringError,
    SiteAway,
    Stopped,
    TokenRefused,
)
from workers.host.execution.lease_heartbeat import LeaseHeartbeat
from workers.host.logs import Log
from workers.host.processes.process_tree import Limits
from workers.host.site_api.client import SiteClient

logger = logging.getLogger(__name__)

NO_BOX_HERE = (
    "This machine gives no box for measured code: install bubblewrap there, or set PACELINE_SANDBOX=off if "
    "everybody who may push to its projects may run code on it."
)


class Job(Protocol):
    """What was claimed, as logs name it."""

    @property
    def name(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def machine(self) -> str: ...

    @property
    def project(self) -> str: ...


@dataclass(frozen=True)
class PreparedCode:
    """A commit that is checked out, with the interpreter of its environment.

    `folders` are what the measured code reads beside its checkout: environments, data.
    """

    code: CommitCode
    python: Path
    folders: tuple[Path, ...] = ()


class Executor(ABC):
    """Executes one job; `lock` is the file descriptor of the machine's lock."""

    def __init__(self, job: Job, lock: int, configuration: HostConfiguration, client: SiteClient) -> None:
        self.job = job
        self.lock = lock
        self.configuration = configuration
        self.client = client
        self.home = configuration.home
        try:
            self.box = open_box(configuration.owner.sandbox, configuration.home)
        except BoxError:
            self.box = NO_BOX
        self.log = Log()
        self.stop = threading.Event()
        # Seconds spent around the measurement, by part.
        self.costs: dict[str, float] = {}
        self.heartbeat = LeaseHeartbeat(
            job.name, self.renew, self.log, self.stop, configuration.registration.lease_seconds
        )

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
        except (Stopped, LeaseLost, TokenRefused):
            logger.info("%s is no longer ours: it was ended here", self.job.name)
        except SiteAway as error:
            logger.warning("%s is given up here: %s", self.job.name, error)
        except MeasuringError as error:
            logger.info("%s can't be measured: %s", self.job.name, error)
            try:
                self.give_up(error)
            except (LeaseLost, TokenRefused, SiteAway):
                logger.info("%s had been given up before, or the site can't be reached", self.job.name)

    def require_box(self) -> None:
        """BuildError where this host gives none, and its owner hasn't let the project go without."""
        owner = self.configuration.owner
        if not (self.box.encloses or owner.goes_without_box(self.job.project)):
            raise BuildError(NO_BOX_HERE)

    @property
    def limits(self) -> Limits:
        """What each measured process may use."""
        return Limits(data=self.configuration.owner.memory_bytes)

    @contextmanager
    def costing(self, part: str) -> Iterator[None]:
        """Add the time of this block to a part's seconds."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.costs[part] = self.costs.get(part, 0.0) + time.monotonic() - began

    def prepare(self, source: CodeSource, commit: str, folder_suffix: str = "") -> PreparedCode:
        """Check a commit out and have its environment built; CheckoutError or BuildError says why not."""
        self.heartbeat.activity = f"checking out {commit[:10]}"
        with machine_trouble(CheckoutError), self.costing("checkout"):
            code = source.code(commit, self.home, self.job.machine, self.stop, folder_suffix=folder_suffix)
        self.heartbeat.activity = f"preparing the environment of {commit[:10]}"
        runner = BuildRunner(self.home, self.log, self.stop, box=self.box)
        with machine_trouble(BuildError):
            with self.costing("environment"):
                built = build_code(code.folder, code.tree, code.manifest.environment, runner)
            if code.benchmark.prepare:
                self.heartbeat.activity = f"preparing the data of {commit[:10]}"
            with self.costing("data"):
                data = prepare_data(code, built, runner)
            return PreparedCode(code, built.python, (*built.folders, *data))


@contextmanager
def machine_trouble(kind: type[MeasuringError]) -> Iterator[None]:
    """A full disk, a folder that can't be written: the job fails with the system's own sentence."""
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise kind(f"The measuring machine failed: {error.strerror or error}{place}.") from error
