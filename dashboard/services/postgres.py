"""The embedded PostgreSQL: a cluster of its own, on a unix socket, without TCP."""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dashboard.services.accounts import Account
from dashboard.services.child import Program
from dashboard.services.errors import ServiceError
from dashboard.services.supervisor import Supervisor

MAJOR = "18"
NAME = "paceline"  # of the role and of the database


@dataclass(frozen=True)
class Postgres:
    """A cluster in `data`, with its socket in `sockets`; `account` owns both folders."""

    data: Path
    sockets: Path
    programs: Path
    account: Account
    durable: bool = True  # False trades safety against power loss for speed: for tests

    def prepare(self, supervisor: Supervisor) -> None:
        """Make the cluster if there is none, and clear what a killed server left behind."""
        if not (self.data / "PG_VERSION").exists():
            self._initialise(supervisor)
        version = (self.data / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise ServiceError(
                f"{self.data} was made by PostgreSQL {version}, and this is {MAJOR}: "
                "see the chapter on upgrades in docs/operations.md."
            )
        self._stop_orphan()

    def program(self) -> Program:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        if not self.durable:
            settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
            # A test's rows are never committed: tables would count as empty, and be joined row by row.
            settings |= {"autovacuum": "off", "track_counts": "off"}
            # Nobody else reads its log, watches its processes, or waits for a disk.
            settings |= {"wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "4GB"}
            settings |= {"checkpoint_timeout": "1d", "update_process_title": "off", "io_method": "sync"}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return Program(
            name="postgres",
            argv=[str(self.programs / "postgres"), "-D", str(self.data), *options],
            folder=self.data,
            ready=self.is_answering,
            account=self.account,
            # SIGINT ends sessions and writes everything out; SIGTERM would wait for clients to leave.
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
            grace=20,
            # After kill -9 the old server's shared memory is held until its last process has noticed.
            retry_for=10,
            quiet=True,
        )

    def is_answering(self) -> bool:
        try:
            with self._connect("postgres", "postgres"):
                return True
        except psycopg.OperationalError:
            return False

    def create_database(self) -> None:
        """The site's role and database, if they don't exist yet."""
        with self._connect("postgres", "postgres") as connection:
            connection.autocommit = True
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [NAME]).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(sql.Identifier(NAME)))
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(NAME)))
            # An archive's points refer to rows of its own transaction: each is checked as it is read, and the
            # site may say that it needn't be looked up a second time. An older server grants no parameters.
            if connection.info.server_version >= 150000:
                grant = sql.SQL("GRANT SET ON PARAMETER session_replication_role TO {}")
                connection.execute(grant.format(sql.Identifier(NAME)))

    def _connect(self, user: str, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(host=str(self.sockets), user=user, dbname=database, connect_timeout=5)

    def _initialise(self, supervisor: Supervisor) -> None:
        draft = self.data.with_name(self.data.name + ".draft")
        shutil.rmtree(draft, ignore_errors=True)
        command = [str(self.programs / "initdb"), "-D", str(draft), "-U", "postgres", "--auth-local=trust"]
        # The builtin provider sorts the same on every system: no library update can break an index.
        command += ["--auth-host=reject", "--encoding=UTF8", "--locale=C"]
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if not self.durable:
            command.append("--no-sync")
        # As a program of the supervisor, since it starts servers of its own that have to end with it.
        supervisor.run(
            Program("initdb", command, self.data.parent, account=self.account, timeout=120, quiet=True)
        )
        # Renamed when whole: an interrupted start leaves a draft, not half a cluster.
        draft.rename(self.data)

    def _stop_orphan(self) -> None:
        """Stop a server of a supervisor that was killed; forget a pid that belongs to somebody else now."""
        file = self.data / "postmaster.pid"
        try:
            pid = int(file.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        if not self._is_own_server(pid):
            file.unlink(missing_ok=True)
            return
        deadline = time.monotonic() + 20
        os.kill(pid, signal.SIGINT)
        while self._is_own_server(pid):
            if time.monotonic() > deadline:
                raise ServiceError(f"Another PostgreSQL (process {pid}) uses {self.data} and doesn't end.")
            time.sleep(0.05)

    def _is_own_server(self, pid: int) -> bool:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return os.fsencode(self.data) in command
