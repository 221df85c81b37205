"""A fresh PostgreSQL and Redis for each run of the tests, unless DATABASE_URL and BROKER_URL are given.

Loaded by `-p`, because pytest-django reads the settings before any conftest.py is imported. Where several
processes share the tests (`-n`), each has servers of its own, or a database of its own on the given ones.
What is the same for all of them is prepared once, by the one that hands the tests out.
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
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import spec_from_file_location
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import IO, Any
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dashboard.services import ServiceError, embedded, service_addresses
from dashboard.services.supervisor import Supervisor
from tests import migrated_cluster

PREFIX = "paceline-tests-"
ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("dashboard", "trainers", "workers")


@dataclass(frozen=True)
class Services:
    """What is started once the tests are collected, for the addresses that the settings have read."""

    supervisor: Supervisor
    home: Path
    database: bool
    queue: bool
    # Held until this process ends, however it ends: what isn't held is a leftover.
    lock: IO[str]


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    remove_leftovers()
    # Threads of torch that have nothing to do sleep. Else they spin, on processors that other tests wait for.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if runs_no_tests(early_config):
        if not os.environ.get("DATABASE_URL"):
            begin_cluster(early_config)
        compile_all(early_config.pluginmanager.rewrite_hook)
        return (yield)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        compile_rooms()
    home, lock = make_home()
    supervisor = Supervisor(home / "logs")
    early_config.add_cleanup(lambda: stop_services(supervisor, home))
    os.environ["PACELINE_HOME"] = str(home)
    given = {name for name in ("DATABASE_URL", "BROKER_URL") if os.environ.get(name)}
    needed = {"database": "DATABASE_URL" not in given, "queue": "BROKER_URL" not in given}
    os.environ.setdefault("DATABASE_URL", service_addresses(home).database_url)
    os.environ.setdefault("BROKER_URL", service_addresses(home).broker_url)
    if "BROKER_URL" in given:
        os.environ["BROKER_URL"] = own_queue(os.environ["BROKER_URL"])
    early_config.stash[SERVICES] = Services(supervisor, home, lock=lock, **needed)
    # Until all tests are collected: what is imported stays, and collections would walk it again and again.
    gc.disable()
    return (yield)


# First: before a process of several has said which tests it has, and is given some.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    start_services(session.config)
    freeze_imported()


def start_services(config: pytest.Config) -> None:
    services = config.stash.get(SERVICES, None)
    if services is None:
        return
    made = os.environ.pop(migrated_cluster.VARIABLE, "")
    try:
        copied = bool(made) and migrated_cluster.copy_when_made(Path(made), services.home)
        embedded.start_embedded(
            services.supervisor,
            services.home,
            durable=False,
            database=services.database,
            queue=services.queue,
        )
    except ServiceError as error:
        if "PYTEST_XDIST_WORKER" in os.environ:
            # What ends this process is told to nobody by the one that handed it its tests.
            with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
                sys.stderr.write(f"ERROR: {error}\n")
                sys.stderr.flush()
        raise pytest.UsageError(str(error)) from error
    if copied:
        # As pytest-django names it.
        name = f"{migrated_cluster.DATABASE}_{os.environ['PYTEST_XDIST_WORKER']}"
        migrated_cluster.rename_database(services.home, name)
        config.option.reuse_db = True
        # Late: nothing of Django may be imported before pytest-django has read the settings.
        from django.db import connection

        # It is migrated: to see so, Django would build the models of every migration.
        connection.settings_dict["TEST"]["MIGRATE"] = False


def freeze_imported() -> None:
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
SERVICES = pytest.StashKey[Services]()


def runs_no_tests(config: pytest.Config) -> bool:
    """Whether this process runs no test itself: it hands them out to others."""
    return bool(config.known_args_namespace.numprocesses) and "PYTEST_XDIST_WORKER" not in os.environ


def make_home() -> tuple[Path, IO[str]]:
    """A folder, and the file that is locked while it is in use."""
    home = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = (home / "held").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return home, lock


def begin_cluster(config: pytest.Config) -> None:
    """The cluster that the processes that run the tests will copy."""
    home, lock = make_home()
    making = migrated_cluster.start_making(home)
    os.environ[migrated_cluster.VARIABLE] = str(home)

    def remove_cluster() -> None:
        making.terminate()
        making.wait()
        remove_home(home)
        lock.close()

    config.add_cleanup(remove_cluster)


def compile_rooms() -> None:
    """Byte-compile what child processes import, once: most of them could keep nothing of it.

    The harness is read-only in a box, and PYTHONDONTWRITEBYTECODE, which images often set, goes to every
    child.
    """
    keep_compiled()
    compile_files(room_files())


def compile_all(hook: Any) -> None:
    """And the tests, with their asserts rewritten, by all processors.

    Else each process that collects them would do it for itself, all at the same time.
    """
    keep_compiled()
    files, tests = room_files(), [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/conftest.py")]
    if not hasattr(hook, "exec_module"):
        # With `--assert=plain` pytest rewrites none.
        tests = []
    count = os.cpu_count() or 1
    start = partial(get_context("fork").Process, target=compile_share)
    shares = [start(args=(hook, files[number::count], tests[number::count])) for number in range(count)]
    for share in shares:
        share.start()
    for share in shares:
        share.join()


def compile_share(hook: Any, files: Iterable[Path], tests: Iterable[Path]) -> None:
    for test in tests:
        rewrite_test(hook, test)
    compile_files(files)


def keep_compiled() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def room_files() -> list[Path]:
    return [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]


def compile_files(files: Iterable[Path]) -> None:
    for file in files:
        compileall.compile_file(file, quiet=2)


def rewrite_test(hook: Any, test: Path) -> None:
    """Keep it with its asserts rewritten, as pytest does before it runs what it imports."""
    module = ModuleType("rewritten")
    module.__spec__ = spec_from_file_location("rewritten", test)
    # Nothing of it runs: each begins by importing, which takes a function that isn't there.
    module.__dict__["__builtins__"] = {}
    # What can't be compiled is told when it is collected.
    with suppress(ImportError, SyntaxError):
        hook.exec_module(module)


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
