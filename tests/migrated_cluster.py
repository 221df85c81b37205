"""A cluster of PostgreSQL with a migrated database of the tests, made once and copied by each process.

Where several processes share the tests (`-n`), each would make a cluster and migrate a database of its own:
five seconds of a processor each. One makes it in a process of its own while the tests are collected.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.core.management import execute_from_command_line
from psycopg import sql

from dashboard.services import embedded, postgres, service_addresses
from dashboard.services.supervisor import Supervisor

ROOT = Path(__file__).resolve().parent.parent
# Names the home of the one that is copied to the processes that run the tests.
VARIABLE = "PACELINE_MIGRATED_CLUSTER"
DATABASE = f"test_{postgres.NAME}"


def start_making(home: Path) -> subprocess.Popen[bytes]:
    """Begin to make it in `home`, in a process whose end `copy_when_made` waits for."""
    with (home / "making").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The child has the same open file, which is locked until it ends.
        return subprocess.Popen(
            [sys.executable, "-m", "tests.migrated_cluster", str(home)],
            cwd=ROOT,
            env={**os.environ, "PACELINE_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            pass_fds=[lock.fileno()],
        )


def copy_when_made(made: Path, home: Path) -> bool:
    """Copy the one that is made in `made` for the services of `home`; False where it couldn't be made."""
    with (made / "making").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
    if not (made / "made").exists():
        return False
    folder, _ = embedded.data_folder(Path(os.path.realpath(home)))
    # With its owners: PostgreSQL runs under another account where the tests run as root.
    subprocess.run(["cp", "-a", data_folder(made), folder / "postgres"], check=True)
    return True


def rename_database(home: Path, name: str) -> None:
    """Let the migrated database of the cluster that runs in `home` have the name that is looked for."""
    with connect_server(home) as connection:
        statement = sql.SQL("ALTER DATABASE {} RENAME TO {}")
        connection.execute(statement.format(sql.Identifier(DATABASE), sql.Identifier(name)))


def connect_server(home: Path) -> psycopg.Connection[Any]:
    sockets = str(service_addresses(home).socket_folder)
    return psycopg.connect(host=sockets, user=postgres.NAME, dbname="postgres", autocommit=True)


def data_folder(home: Path) -> Path:
    return Path(os.path.realpath(home / "services")) / "postgres"


def make_cluster(home: Path) -> None:
    supervisor = Supervisor(home / "logs")
    try:
        embedded.start_embedded(supervisor, home, queue=False, durable=False)
        with connect_server(home) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        address = urlsplit(service_addresses(home).database_url)
        os.environ["DATABASE_URL"] = address._replace(path=f"/{DATABASE}").geturl()
        os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
        execute_from_command_line(["manage.py", "migrate", "--no-input", "--skip-checks", "--verbosity", "0"])
    finally:
        supervisor.stop()
    (home / "made").touch()


if __name__ == "__main__":
    make_cluster(Path(sys.argv[1]))
