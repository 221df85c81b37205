"""A fresh PostgreSQL and Redis for each run of the tests, unless DATABASE_URL and BROKER_URL are given.

Loaded by `-p`, because pytest-django reads the settings before any conftest.py is imported. Where several
processes share the tests (`-n`), each has servers of its own, or a database of its own on the given ones.
"""

from __future__ import annotations

import compileall
import fcntl
import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dashboard.services import ServiceError, embedded, service_addresses
from dashboard.services.supervisor import Supervisor

PREFIX = "paceline-tests-"
ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("dashboard", "trainers", "workers")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    remove_leftovers()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        compile_rooms()
    # Threads of torch that have nothing to do sleep. Else they spin, on processors that other tests wait for.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if runs_no_tests(early_config):
        return (yield)
    home = Path(tempfile.mkdtemp(prefix=PREFIX))
    # Held until this process ends, however it ends: what isn't held is a leftover.
    lock = (home / "held").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    supervisor = Supervisor(home / "logs")
    early_config.add_cleanup(lambda: stop_services(supervisor, home))
    os.environ["PACELINE_HOME"] = str(home)
    given = {name for name in ("DATABASE_URL", "BROKER_URL") if os.environ.get(name)}
    needed = {"database": "DATABASE_URL" not in given, "queue": "BROKER_URL" not in given}
    try:
        embedded.start_embedded(supervisor, home, durable=False, **needed)
    except ServiceError as error:
        raise pytest.UsageError(str(error)) from error
    os.environ.setdefault("DATABASE_URL", service_addresses(home).database_url)
    os.environ.setdefault("BROKER_URL", service_addresses(home).broker_url)
    if "BROKER_URL" in given:
        os.environ["BROKER_URL"] = own_queue(os.environ["BROKER_URL"])
    early_config.stash[HOME_LOCK] = lock
    # Until all tests are collected: what is imported stays, and collections would walk it again and again.
    gc.disable()
    return (yield)


def pytest_collection_finish() -> None:
    """Leave what was imported out of later collections, as the site's processes do."""
    if not gc.isenabled():
        # Before a collection can begin: it would walk all of it once more.
        gc.freeze()
        gc.enable()
        # Late: nothing of Django may be imported before pytest-django has read the settings.
        from dashboard.garbage_collection import freeze_once

        freeze_once()
        # What a test made is gone with it, mostly by itself.
        gc.set_threshold(YOUNG_OBJECTS, 20, 100)


# Objects made since the last collection until the next one, ten times as many as in the site's processes.
YOUNG_OBJECTS = 200_000
HOME_LOCK = pytest.StashKey[object]()


def runs_no_tests(config: pytest.Config) -> bool:
    """Whether this process runs no test itself: it hands them out to others."""
    return bool(config.known_args_namespace.numprocesses) and "PYTEST_XDIST_WORKER" not in os.environ


def compile_rooms() -> None:
    """Byte-compile what child processes import, once: most of them could keep nothing of it.

    The harness is read-only in a box, and PYTHONDONTWRITEBYTECODE, which images often set, goes to every
    child.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for room in ROOMS:
        compileall.compile_dir(ROOT / room, quiet=2)


def own_queue(address: str) -> str:
    """Of a given Redis, the database with this process's number; pytest-django does so for PostgreSQL."""
    process = os.environ.get("PYTEST_XDIST_WORKER")
    if process is None:
        return address
    return urlsplit(address)._replace(path=f"/{process.removeprefix('gw')}").geturl()


def stop_services(supervisor: Supervisor, home: Path) -> None:
    supervisor.stop()
    remove_home(home)


def remove_home(home: Path) -> None:
    shutil.rmtree(os.path.realpath(home / "services"), ignore_errors=True)
    shutil.rmtree(service_addresses(home).socket_folder, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


def remove_leftovers() -> None:
    """Of runs that were killed: their services have ended with them, their folders have not."""
    for home in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        held = home / "held"
        # A young one may be about to be locked.
        # Another run may end and remove its own at any moment.
        with suppress(FileNotFoundError):
            if home.stat().st_uid != os.getuid() or time.time() - held.stat().st_mtime < 60:
                continue
            with held.open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                remove_home(home)
