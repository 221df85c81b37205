"""The agent of a host: joins, registers, keeps its Celery worker running, and says that the host lives."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import kombu
import redis
from kombu.exceptions import KombuError

from dashboard.host_protocol import queues
from dashboard.repositories import safe_name, try_lock
from workers.host import machine
from workers.host.box.box import NO_BOX, Box, BoxError, open_box
from workers.host.configuration import (
    HOW_TO_JOIN,
    ConfigurationError,
    HostIdentity,
    OwnerSettings,
    Registration,
    identity_folder,
    load_configuration,
    read_identity,
    write_identity,
    write_registration,
)
from workers.host.errors import HostOutdated, JoinRefused, SiteAway, TokenRefused
from workers.host.execution.executor import NO_BOX_HERE
from workers.host.site_api.client import SiteClient
from workers.host.site_api.outages import StopRequested, ending_signals, try_until_answered
from workers.host.site_api.spool import DocumentSpool
from workers.host.slots import Slot, pin_process, run_slots

logger = logging.getLogger(__name__)


CHECKOUT = Path(__file__).resolve().parent.parent.parent
HEARTBEAT_SECONDS = 10.0
LONGEST_PAUSE = 30.0
# A worker that ran for so long may begin anew at once.
STEADY_SECONDS = 60.0
# For its end: what is measured has a few seconds of its own within them.
STOP_SECONDS = 15.0
DISTRIBUTIONS = ("paceline-site", "paceline")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class JoinOptions:
    """What a person gave the command: all of it is needed once, to join."""

    site: str = ""
    code: str = ""
    machine: str = ""
    # Started for one slot of several, which has joined.
    is_slot: bool = False


class Agent:
    """One host, or one slot of it, in its home."""

    def __init__(self, home: Path, options: JoinOptions, slot: str = "") -> None:
        self.home = home
        self.slot = slot
        self.folder = identity_folder(home, slot)
        self.options = options
        self.worker: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        # What isn't usable is reported before anything is asked of the site.
        self.box = try_box(home, OwnerSettings.from_environment(os.environ))

    def run(self) -> str:
        """Work until somebody ends it; why it ended, in one sentence."""
        client = None
        try:
            with ending_signals():
                identity = self.find_identity()
                warn_of_plain_http(identity.site)
                client = SiteClient.of_identity(identity)
                identity, client = self.register(identity, client)
                return self.keep_working(identity, client)
        except StopRequested:
            return "Ended."
        finally:
            self.stop_worker()
            if client is not None:
                # Where the site is away, it finds out by the lease.
                with suppress(SiteAway, TokenRefused):
                    spool = self.spool(identity)
                    spool.hand_in(client)
                    client.stopping(spool.kept_runs())

    def find_identity(self) -> HostIdentity:
        """The one that this home has, at the address that was given; a new one where it has none."""
        known = read_identity(self.folder)
        if known is not None:
            identity = replace(known, site=self.options.site or known.site)
            write_identity(self.folder, identity)
            return identity
        if not self.options.code:
            raise ConfigurationError(f"This host hasn't joined a site: {HOW_TO_JOIN}")
        return self.join()

    def join(self) -> HostIdentity:
        """Ask the site for an identity, and keep it."""
        if not self.options.site:
            raise ConfigurationError(
                "To join, give the site's address too: --site https://host:8000, with make host SITE=..."
            )
        client = SiteClient(self.options.site)
        (identity,) = try_until_answered(
            lambda: client.join(self.options.code, [self.slot or self.options.machine])
        )
        write_identity(self.folder, identity)
        logger.info("Joined %s as %s", identity.site, identity.machine)
        return identity

    def register(self, identity: HostIdentity, client: SiteClient) -> tuple[HostIdentity, SiteClient]:
        """Say what this host is; an identity that the site doesn't know any more is renewed by a code."""
        try:
            self.send_registration(identity, client)
        except TokenRefused:
            if not self.options.code:
                raise
            identity = self.join()
            client = SiteClient.of_identity(identity)
            self.send_registration(identity, client)
        return identity, client

    def spool(self, identity: HostIdentity) -> DocumentSpool:
        return DocumentSpool(self.home / "spool" / safe_name(identity.machine))

    def send_registration(
        self, identity: HostIdentity, client: SiteClient, *, same_agent: bool = False
    ) -> None:
        spool = self.spool(identity)
        fingerprint = machine.take_fingerprint().as_dict()
        answer = try_until_answered(
            lambda: client.register(
                agent_version(), fingerprint, spool.kept_runs(), self.box.describe(), same_agent
            )
        )
        pool = answer.text("pool")
        broker = usable_broker(answer.optional_text("broker") or "", pool, identity.machine)
        registration = Registration(pool, answer.integer("lease_seconds"), broker)
        write_registration(self.folder, registration)
        how = "is woken by the broker" if broker else "asks for work every other second"
        logger.info("%s of pool %s %s", identity.machine, registration.pool, how)

    def keep_working(self, identity: HostIdentity, client: SiteClient) -> str:
        """Until it is drained or retired; StopRequested where a signal ends it."""
        pause = 1.0
        while True:
            if self.worker is None:
                self.start_worker(identity)
            if self.worker_ended():
                uptime = time.monotonic() - self.started_at
                pause = 1.0 if uptime > STEADY_SECONDS else min(2 * pause, LONGEST_PAUSE)
                logger.warning("The worker has ended by itself; the next one starts in %.0f s", pause)
                time.sleep(pause)
                # What it held died with it.
                self.send_registration(identity, client, same_agent=True)
                continue
            try:
                state = client.heartbeat(machine.free_disk_bytes(self.home))
            except SiteAway as error:
                logger.warning("No heartbeat: %s", error)
            except TokenRefused as error:
                return f"{error} Join again with a new code."
            else:
                if state == "draining" and not self.is_measuring(identity):
                    return "Drained: nothing is measured here any more."
            self.wait_for_worker(HEARTBEAT_SECONDS)

    def start_worker(self, identity: HostIdentity) -> None:
        self.worker = subprocess.Popen(
            worker_command(load_configuration(self.home, self.slot).registration.pool, identity.machine),
            cwd=CHECKOUT,
            env=worker_environment(self.home, self.slot, os.environ),
            start_new_session=True,
        )
        self.started_at = time.monotonic()

    def worker_ended(self) -> bool:
        if self.worker is None or self.worker.poll() is None:
            return False
        self.worker = None
        return True

    def wait_for_worker(self, seconds: float) -> None:
        if self.worker is not None:
            with suppress(subprocess.TimeoutExpired):
                self.worker.wait(seconds)

    def is_measuring(self, identity: HostIdentity) -> bool:
        """The machine's lock tells, whoever holds it."""
        with machine.lock_machine(self.home, identity.machine) as lock:
            return lock is None

    def stop_worker(self) -> None:
        """A cold end: a warm one would wait for the measurement in progress."""
        if self.worker is None or self.worker.poll() is not None:
            return
        self.worker.send_signal(signal.SIGQUIT)
        try:
            self.worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.worker.kill()
            self.worker.wait()


def run_agent(home: Path, options: JoinOptions, slots: Sequence[Slot]) -> str:
    """Run the agent of a host, or those of its slots, until they end; why.

    A single slot that is named so is one of several, which another process started. ConfigurationError says
    what doesn't let it run.
    """
    slot = slots[0].name if options.is_slot else ""
    folder = identity_folder(home, slot)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with try_lock(folder / "agent.lock") as lock:
            if lock is None:
                raise ConfigurationError(f"An agent runs in {folder} already.")
            if len(slots) > 1:
                return run_slots(home, slots, options.site, options.code)
            if slot or slots[0].device is not None:
                pin_process(slots[0], cast("dict[str, str]", os.environ))
            return Agent(home, options, slot).run()
    except OSError as error:
        raise ConfigurationError(f"{home} can't be used: {error.strerror or error}.") from error
    except (JoinRefused, HostOutdated) as error:
        raise ConfigurationError(str(error)) from error
    except TokenRefused as error:
        raise ConfigurationError(f"{error} Join again with a new code.") from error


def try_box(home: Path, owner: OwnerSettings) -> Box:
    """The box of this machine; ConfigurationError where it gives none and nothing may go without."""
    try:
        box = open_box(owner.sandbox, home)
        reason = "" if box.encloses or owner.sandbox.mode == "off" else NO_BOX_HERE
    except BoxError as error:
        box, reason = NO_BOX, str(error)
    if reason and not owner.unboxed_project:
        raise ConfigurationError(reason)
    if reason:
        logger.warning("%s Nothing but the project %s is measured here.", reason, owner.unboxed_project)
    return box


def worker_command(pool: str, name: str) -> list[str]:
    """Celery, with one child that measures: two measurements beside each other would measure each other."""
    return [
        *(sys.executable, "-m", "celery", "--quiet", "-A", "workers.host.app", "worker"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        *("--hostname", f"measure@{safe_name(name)}"),
        *("--queues", f"{queues.pool_queue(pool)},{queues.machine_queue(name)}"),
        *("--concurrency", "1", "--pool-start-method", "spawn", "--loglevel", "INFO"),
    ]


def worker_environment(home: Path, slot: str, environ: Mapping[str, str]) -> dict[str, str]:
    return {
        **environ,
        "PACELINE_HOST_HOME": str(home.resolve()),
        "PACELINE_HOST_SLOT": slot,
        "PACELINE_AGENT_PID": str(os.getpid()),
        "PYTHONUNBUFFERED": "1",
        # Said once by the agent, not by each worker in seven lines.
        "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
    }


def usable_broker(address: str, pool: str, name: str) -> str:
    """The address, if this host can take messages there; empty where it can't."""
    if not address:
        return ""
    connection = kombu.Connection(
        address, connect_timeout=2, transport_options=queues.host_transport_options(name)
    )
    try:
        with connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=3)
            # An account whose rights don't suffice would end the worker again and again.
            kombu.Queue(queues.pool_queue(pool), channel=connection.default_channel).declare()
    except (OSError, KombuError, redis.RedisError) as error:
        logger.warning("The site's broker can't be used from here: %s", error)
        return ""
    return address


def agent_version() -> str:
    """Of the distribution that this code is part of."""
    for name in DISTRIBUTIONS:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return "unknown"


def warn_of_plain_http(site: str) -> None:
    parts = urlsplit(site)
    if parts.scheme == "http" and parts.hostname not in LOCAL_NAMES:
        logger.warning(
            "%s is reached without TLS: whoever listens on the way can read the host's token", site
        )
