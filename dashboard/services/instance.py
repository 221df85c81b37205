"""One set of services per PACELINE_HOME: who runs them, who uses them, and for how long."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import psycopg

from dashboard.services import embedded
from dashboard.services.addresses import log_folder, service_addresses
from dashboard.services.errors import ServiceError
from dashboard.services.preflight import free_port
from dashboard.services.processes import CHECKOUT, Site, host_program, migration_program, process_program
from dashboard.services.supervisor import Supervisor

START_TIMEOUT = 120  # seconds for the services that another process is starting
# Those that take messages -> their queue.
WORKERS = {"service": "service", "fetch": "fetches", "sweep": "sweeps"}
QUEUE_PROCESSES = (*WORKERS, "beat", "host")
# A host that was heard of lately needs no other beside it. It says every ten seconds that it lives.
SERVED_POOL = """
    SELECT count(*) FROM dashboard_machine JOIN dashboard_pool ON dashboard_pool.id = pool_id
    WHERE dashboard_pool.name = %s AND state = 'active' AND seen_at > now() - interval '45 seconds'
"""

PrintLine = Callable[[str, str], None]


class AlreadyRunningError(ServiceError):
    """Another process runs the services of this home."""


@dataclass(frozen=True)
class HomeLock:
    """The right to run the services of a home, kept in a locked file until this process ends."""

    file: IO[str]

    def write_state(self, state: str) -> None:
        self.file.seek(0)
        self.file.truncate()
        self.file.write(f"{os.getpid()} {state}\n")
        self.file.flush()


@contextmanager
def lock_home(home: Path) -> Iterator[HomeLock]:
    """Be the process that runs `home`'s services; AlreadyRunningError if another one does."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        file = (home / "lock").open("a+")
    except OSError as error:
        raise ServiceError(f"PACELINE_HOME is {home}, which can't be written: {error.strerror}.") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunningError(
                f"Paceline runs already in {home} (process {_lock_owner(home)[0]})."
            ) from None
        lock = HomeLock(file)
        lock.write_state("starting")
        yield lock


@contextmanager
def running_services(
    site: Site, join_code: Callable[[], str], print_line: PrintLine | None = None
) -> Iterator[None]:
    """All services run inside this block; the web server, if it is started here, for this machine alone.

    `join_code` makes a code by which this machine may join, once the database is there. What runs already is
    used. What doesn't is started here, and ended when the block and its other users are through.
    `print_line(name, line)` gets the output of what is started. ServiceError, one sentence, where that fails.
    """
    site.home.mkdir(parents=True, exist_ok=True)
    with (site.home / "users").open("a") as users, ExitStack() as stack:
        fcntl.flock(users, fcntl.LOCK_SH)
        lock = _lock_or_join(site.home, stack)
        if lock is None:
            yield
            return
        supervisor = Supervisor(log_folder(site.home), print_line)
        stack.callback(supervisor.stop)
        start_services(supervisor, site)
        start_processes(supervisor, site, missing_processes(site), join_code)
        lock.write_state("ready")
        threading.Thread(target=supervisor.watch, name="supervisor", daemon=True).start()
        try:
            yield
        finally:
            _wait_for_users(users, print_line)


def start_processes(
    supervisor: Supervisor, site: Site, names: Sequence[str], join_code: Callable[[], str]
) -> None:
    for name in names:
        if name == "host":
            served = replace(site, host="127.0.0.1", web_port=free_port())
            supervisor.start(process_program("web", served))
            supervisor.start(host_program(served, join_code()))
        else:
            supervisor.start(process_program(name, site))


@contextmanager
def running_database(site: Site) -> Iterator[None]:
    """The database alone answers inside this block; only the one that holds the home's lock may ask."""
    supervisor = Supervisor(log_folder(site.home), None)
    try:
        start_services(supervisor, site)
        yield
    finally:
        supervisor.stop()


def start_services(supervisor: Supervisor, site: Site) -> None:
    """Database and queue, each unless its address is given, and the tables."""
    database, queue = not _is_configured("DATABASE_URL"), not _is_configured("BROKER_URL")
    if database or queue:
        embedded.start_embedded(supervisor, site.home, database=database, queue=queue)
    if not database:
        _check_database(os.environ["DATABASE_URL"])
    supervisor.run(migration_program(site))


def missing_processes(site: Site) -> list[str]:
    """The processes behind the queue that don't run; only the one that holds the home's lock may ask."""
    if not _is_configured("BROKER_URL"):
        # Nobody but the one that holds the lock can be on the embedded queue.
        return list(QUEUE_PROCESSES)
    served = _served_queues(site)
    absent = [name for name, queue in WORKERS.items() if queue not in served]
    # A site whose workers all answer has a scheduler too; a second one would only send each message twice.
    return [*absent, *(["beat"] if absent else []), *([] if _is_pool_served(site) else ["host"])]


def _is_pool_served(site: Site) -> bool:
    with psycopg.connect(_database_url(site), connect_timeout=10) as connection:
        row = connection.execute(SERVED_POOL, [site.pool]).fetchone()
    return bool(row and row[0])


def _database_url(site: Site) -> str:
    return os.environ.get("DATABASE_URL", "").strip() or service_addresses(site.home).database_url


def _served_queues(site: Site) -> set[str]:
    command = [sys.executable, "-m", "celery", "-A", "workers.site.app", "inspect", "active_queues"]
    answer = subprocess.run(
        [*command, "--json", "--timeout", "2"],
        cwd=CHECKOUT,
        env={**os.environ, **site.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        # Celery's way to say that no worker has answered.
        return set()
    return {queue["name"] for queues in json.loads(answer.stdout).values() for queue in queues}


def _check_database(url: str) -> None:
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise ServiceError(f"The database at DATABASE_URL can't be reached: {reason}") from error


def _is_configured(name: str) -> bool:
    return bool(os.environ.get(name, "").strip())


def _lock_owner(home: Path) -> tuple[str, str]:
    """Process id and state (starting, ready) of the process that holds the home's lock."""
    words = (home / "lock").read_text().split()
    return (words[0], words[1]) if len(words) == 2 else ("unknown", "starting")


def _lock_or_join(home: Path, stack: ExitStack) -> HomeLock | None:
    """The right to run the services, or None once another process has them ready."""
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            return stack.enter_context(lock_home(home))
        except AlreadyRunningError:
            if _lock_owner(home)[1] == "ready":
                return None
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def _wait_for_users(users: IO[str], print_line: PrintLine | None) -> None:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if print_line:
            print_line("paceline", "Another command still uses the services; they end when it is through.")
        fcntl.flock(users, fcntl.LOCK_EX)
